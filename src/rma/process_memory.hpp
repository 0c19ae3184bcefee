// SPDX-License-Identifier: BSD-3-Clause
//
// Host memory of another process of the node that nobody mapped (the program's own, of
// MPI_Win_create), by base/process_memory.hpp.
#pragma once

#include "base/status.hpp"
#include "transfer/buffer.hpp"

namespace gantry::rma {

// Data bytes [first, first + bytes) of a buffer at addresses of that process, from or to packed memory.
Status write_process(int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                     const std::byte* packed);
Status read_process(int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                    std::byte* packed);

}  // namespace gantry::rma
