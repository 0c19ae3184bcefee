// SPDX-License-Identifier: BSD-3-Clause
//
// Copies inside this process with a strided end in device memory, by kernels: a message of this rank
// to itself, MPI_Pack and MPI_Unpack, the own block of a collective. What is packed lies in memory of
// the same GPU meanwhile, so the number of driver calls does not depend on the number of blocks
// (beyond one launch for each few thousand that have no pattern).
#pragma once

#include "transfer/mover.hpp"

namespace gantry::transfer {

// Whether it should be tried: an end is strided device memory, and copy engines are no quicker.
bool suits_kernels(Context& context, const Side& source, const Side& sink, Bytes bytes);
// MPI_ERR_UNSUPPORTED_OPERATION: kernels cannot, or there is no memory aside; the copy is still to be
// made.
Task<Status> copy_by_kernels(Executor& executor, Context& context, Side source, Side sink,
                             Bytes bytes);

}  // namespace gantry::transfer
