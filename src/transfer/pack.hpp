// SPDX-License-Identifier: BSD-3-Clause
//
// Strided buffers in device memory: where they lie, and how pieces of them come to packed host
// memory and back. A receive writes what its type describes and nothing between: other receives, the
// program or its kernels may be writing there.
#pragma once

#include "base/task.hpp"
#include "plan/strided.hpp"
#include "transfer/buffer.hpp"

namespace gantry::transfer {

class Context;

// Where the blocks of a strided buffer lie: one kind of memory, mostly one allocation. Blocks of
// several (absolute addresses, MPI_BOTTOM) count as device memory of no allocation if any is that.
Result<device::Location> locate_blocks(device::Device& device, const Buffer& buffer);

// Whether all of its blocks lie in the allocation of its location.
bool in_one_allocation(const Piece& piece);

Task<Status> pack_from_device(Executor& executor, Context& context, Piece piece, std::byte* packed,
                              plan::Movers movers, device::Notice notice = device::Notice::event);
Task<Status> unpack_to_device(Executor& executor, Context& context, Piece piece,
                              const std::byte* packed, plan::Movers movers,
                              device::Notice notice = device::Notice::event);

// The same where what is packed is memory of that GPU, too, or memory of a peer that is mapped for it:
// a launch for each kMostSetsOfKernel sets, shared with others that wait meanwhile (row_batch.hpp). MPI_ERR_UNSUPPORTED_OPERATION: kernels cannot.
Task<Status> pack_inside_gpu(Executor& executor, Context& context, Piece piece, std::byte* packed,
                             device::Notice notice = device::Notice::event);
Task<Status> unpack_inside_gpu(Executor& executor, Context& context, Piece piece, std::byte* packed,
                               device::Notice notice = device::Notice::event);
enum class Way : std::uint8_t { to_device, from_device };
// Whether kernels and a copy to or from memory that they do not reach are quicker than copy engines.
bool pays_aside(Context& context, const Piece& piece, Way way);

}  // namespace gantry::transfer
