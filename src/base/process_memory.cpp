// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_memory.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace gantry {
namespace {

// Without the first `bytes`.
std::span<iovec> behind(std::span<iovec> pieces, std::size_t bytes) {
    while (!pieces.empty() && bytes >= pieces.front().iov_len) {
        bytes -= pieces.front().iov_len;
        pieces = pieces.subspan(1);
    }
    if (bytes > 0 && !pieces.empty()) {
        pieces.front().iov_base = static_cast<std::byte*>(pieces.front().iov_base) + bytes;
        pieces.front().iov_len -= bytes;
    }
    return pieces;
}

}  // namespace

int access_process(ProcessAccess access, int process, std::span<iovec> there,
                   std::span<iovec> here) {
    there = behind(there, 0);
    here = behind(here, 0);
    while (!there.empty()) {
        const ssize_t moved =
            access == ProcessAccess::read
                ? process_vm_readv(process, here.data(), here.size(), there.data(), there.size(), 0)
                : process_vm_writev(process, here.data(), here.size(), there.data(), there.size(),
                                    0);
        if (moved < 0) return errno;
        if (moved == 0) return EFAULT;
        there = behind(there, static_cast<std::size_t>(moved));
        here = behind(here, static_cast<std::size_t>(moved));
    }
    return 0;
}

Probe own_probe() {
    // Another process with the same address space lay-out, or in another process namespace, has
    // another number there.
    static const std::uint64_t number = static_cast<std::uint64_t>(getpid()) << 32 ^
                                        reinterpret_cast<std::uintptr_t>(&number) ^
                                        0x9e37'79b9'7f4a'7c15;
    return {getpid(), reinterpret_cast<std::uintptr_t>(&number), number};
}

bool reaches(const Probe& probe) {
    if (probe.process == 0) return false;
    std::uint64_t seen = 0;
    iovec there{reinterpret_cast<void*>(probe.address), sizeof seen}, here{&seen, sizeof seen};
    return access_process(ProcessAccess::read, probe.process, {&there, 1}, {&here, 1}) == 0 &&
           seen == probe.number;
}

}  // namespace gantry
