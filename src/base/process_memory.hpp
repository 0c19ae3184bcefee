// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of another process of the node that nobody shares: the kernel copies it at once, without the
// other process (cross-memory attach, CMA). A system call of about half a microsecond and one copy;
// refused where a process may not look into another (containers, the ptrace_scope of Yama).
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace gantry {

enum class ProcessAccess : std::uint8_t { read, write };

// Moves all bytes of `there`, in that process, from or to `here`, which has as many; a part that the
// kernel moved alone is continued. At most IOV_MAX (1024) pieces on either side. 0, or the errno of
// what was refused: EFAULT when something is not there, ESRCH when the process is not.
int access_process(ProcessAccess access, int process, std::span<iovec> there,
                   std::span<iovec> here);

// A number in this process's memory, by which others find out whether they may.
struct Probe {
    std::int32_t process = 0;
    std::uint64_t address = 0, number = 0;
};
Probe own_probe();
bool reaches(const Probe& probe);

}  // namespace gantry
