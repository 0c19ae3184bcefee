// SPDX-License-Identifier: BSD-3-Clause
//
// Host memory of another process of the node that nobody mapped (the program's own, of
// MPI_Win_create): the kernel copies it at once, without the other process. A system call of about half
// a microsecond and one copy; refused where a process may not look into another (containers, the
// ptrace_scope of Yama).
#pragma once

#include "base/status.hpp"
#include "transfer/buffer.hpp"

namespace gantry::rma {

// Data bytes [first, first + bytes) of a buffer at addresses of that process, from or to packed memory.
Status write_process(int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                     const std::byte* packed);
Status read_process(int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                    std::byte* packed);

// A number in this process's memory, by which others find out whether they may.
struct Probe {
    std::int32_t process = 0;
    std::uint64_t address = 0, number = 0;
};
Probe own_probe();
bool reaches(const Probe& probe);

}  // namespace gantry::rma
