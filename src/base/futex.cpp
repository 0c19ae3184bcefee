// SPDX-License-Identifier: BSD-3-Clause
#include "base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace gantry::futex {

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, Nanoseconds at_most) {
    const timespec relative{at_most / kSecond, at_most % kSecond};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, at_most > 0 ? &relative : nullptr, nullptr,
            0);
}

void wake_one(const std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace gantry::futex
