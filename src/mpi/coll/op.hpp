// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operations: the fourteen of the standard and those of the program.
#pragma once

#include "base/status.hpp"
#include "coll/reducer.hpp"
#include "layout/reduce.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/object.hpp"

namespace gantry::mpi {

struct Op : Object<MPI_Op> {
    layout::Operation operation = layout::Operation::sum;  // predefined ones
    MPI_User_function* function = nullptr;
    MPI_User_function_c* function_c = nullptr;
    MPIX_User_function_x* function_x = nullptr;
    void* extra_state = nullptr;  // of function_x
    bool commutative = true;
    const char* name = "user operation";
};

inline constexpr int kPredefinedOps = 0x40 - 0x20;
void fill_predefined(Slab<Op>& slab, Op* (&table)[kPredefinedOps]);
void release(Op* op);

// What applies `op` to elements of `datatype`, or the sentence that says why it cannot
// (MPI_ERR_OP).
Result<coll::Reducer> reducer(const Op& op, Datatype& datatype);

}  // namespace gantry::mpi
