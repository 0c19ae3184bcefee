// SPDX-License-Identifier: BSD-3-Clause
#include "io/fake/faulty_system.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gantry::io {

FaultySystem::FaultySystem(unsigned seed) : random_(seed), unsteady_(seed != 0) {}

int FaultySystem::open(const char*, int, unsigned) {
    constexpr int kHandle = 3;
    const int failed = steady(Call::open);
    return failed != 0 ? failed : kHandle;
}

int FaultySystem::close(int) {
    return steady(Call::close);
}

int FaultySystem::remove(const char*) {
    return 0;
}

std::int64_t FaultySystem::size(int) {
    const int failed = steady(Call::size);
    return failed != 0 ? failed : static_cast<std::int64_t>(file.size());
}

int FaultySystem::set_size(int, std::int64_t bytes) {
    const int failed = steady(Call::set_size);
    if (failed == 0) file.resize(static_cast<std::size_t>(bytes));
    return failed;
}

int FaultySystem::allocate(int handle, std::int64_t bytes) {
    return set_size(handle, bytes);
}

int FaultySystem::sync(int) {
    return steady(Call::sync);
}

int FaultySystem::try_lock(int, LockKind, std::int64_t, std::int64_t) {
    return steady(Call::lock);
}

std::int64_t FaultySystem::read(int, const iovec* pieces, int number, std::int64_t offset) {
    before();
    const std::lock_guard hold(lock_);
    if (const int failed = next(Call::read); failed != 0) return failed;
    const auto begin = static_cast<std::size_t>(offset);
    std::size_t left = begin < file.size() ? shortened(file.size() - begin) : 0, at_byte = begin;
    for (int i = 0; i < number && left > 0; ++i) {
        const std::size_t bytes = std::min(left, pieces[i].iov_len);
        std::memcpy(pieces[i].iov_base, file.data() + at_byte, bytes);
        at_byte += bytes;
        left -= bytes;
    }
    return static_cast<std::int64_t>(at_byte - begin);
}

std::int64_t FaultySystem::read_now(int, const iovec*, int, std::int64_t) {
    return -EAGAIN;
}

std::int64_t FaultySystem::write(int, const iovec* pieces, int number, std::int64_t offset) {
    before();
    const std::lock_guard hold(lock_);
    if (const int failed = next(Call::write); failed != 0) return failed;
    std::size_t all = 0;
    for (int i = 0; i < number; ++i)
        all += pieces[i].iov_len;
    const auto begin = static_cast<std::size_t>(offset);
    if (begin >= room) return -ENOSPC;
    std::size_t left = std::min(shortened(all), room - begin), at_byte = begin;
    file.resize(std::max(file.size(), begin + left));
    for (int i = 0; i < number && left > 0; ++i) {
        const std::size_t bytes = std::min(left, pieces[i].iov_len);
        std::memcpy(file.data() + at_byte, pieces[i].iov_base, bytes);
        at_byte += bytes;
        left -= bytes;
    }
    return static_cast<std::int64_t>(at_byte - begin);
}

int FaultySystem::steady(Call kind) {
    const std::lock_guard hold(lock_);
    ++calls_[static_cast<std::size_t>(kind)];
    return kind == faulty && calls_of(kind) == at ? -error : 0;
}

int FaultySystem::next(Call kind) {
    ++calls_[static_cast<std::size_t>(kind)];
    if (kind == faulty && calls_of(kind) == at) return -error;
    return unsteady_ && random_() % 4 == 0 ? -EINTR : 0;
}

std::size_t FaultySystem::shortened(std::size_t bytes) {
    return unsteady_ && bytes > 1 && random_() % 2 == 0 ? 1 + random_() % bytes : bytes;
}

}  // namespace gantry::io
