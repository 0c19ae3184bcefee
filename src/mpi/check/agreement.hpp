// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_CHECK=1: before a collective operation runs, its ranks compare what must be the same on
// all of them. Where it is not, all of them fail with the same sentence and the operation does not
// run: nobody waits for ever, nothing is overwritten.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"
#include "mpi/check/signature.hpp"

#include <array>

namespace gantry::mpi {

struct Comm;
struct Datatype;
struct Op;

struct Agreement {
    static constexpr std::int32_t kNothing = -1;
    // A rank's part of the data, where all have the same; the datatype is null where there is none.
    struct Part {
        const Datatype* datatype = nullptr;
        std::int64_t count = 0;
    };
    const char* function = nullptr;  // of the blocking form; null: nothing is compared
    std::int32_t root = kNothing;
    std::int32_t op = kNothing;   // a predefined one's number, or what is known of another
    std::array<Part, 2> parts{};  // what the rank sends, or receives, or both

    // The same with one part more.
    Agreement also(Part part) const {
        Agreement both = *this;
        both.parts[1] = part;
        return both;
    }
};

// What a call says; nothing while there are no checks. `root` kNothing, `op` and `datatype` null:
// the operation has none, or they may differ.
Agreement agreement(const Comm& comm, const char* function, int root = Agreement::kNothing,
                    const Op* op = nullptr, const Datatype* datatype = nullptr,
                    std::int64_t count = 0);

Task<Status> agree(Executor& executor, coll::Team team, Agreement mine);

}  // namespace gantry::mpi
