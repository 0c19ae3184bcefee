// SPDX-License-Identifier: BSD-3-Clause
//
// FaultySystem: one file in memory, and a system that fails when it is told to: short counts and
// interrupted calls at random from a seed, and one error at the n-th call of a kind.
#pragma once

#include "io/system.hpp"

#include <cstddef>
#include <functional>
#include <mutex>
#include <random>
#include <vector>

namespace gantry::io {

class FaultySystem final : public System {
  public:
    enum class Call : std::uint8_t { none, open, close, size, set_size, sync, read, write, lock };

    explicit FaultySystem(unsigned seed = 0);

    std::vector<std::byte> file;
    // The call of that kind, counted from 1, that fails, and with which errno.
    Call faulty = Call::none;
    int at = 0, error = 0;
    std::size_t room = SIZE_MAX;  // a disk of so many bytes
    bool in_memory = false;
    std::function<void()> before = [] {};  // each read or write
    int calls_of(Call kind) const { return calls_[static_cast<std::size_t>(kind)]; }

    int open(const char* path, int flags, unsigned permissions) override;
    int close(int handle) override;
    int remove(const char* path) override;
    std::int64_t size(int handle) override;
    int set_size(int handle, std::int64_t bytes) override;
    int allocate(int handle, std::int64_t bytes) override;
    int sync(int handle) override;
    int try_lock(int handle, LockKind kind, std::int64_t offset, std::int64_t bytes) override;
    std::int64_t read(int handle, const iovec* pieces, int number, std::int64_t offset) override;
    std::int64_t read_now(int handle, const iovec* pieces, int number,
                          std::int64_t offset) override;
    bool is_in_memory(int) override { return in_memory; }
    std::int64_t write(int handle, const iovec* pieces, int number, std::int64_t offset) override;

  private:
    // The error of this call, or 0.
    int next(Call kind);
    int steady(Call kind);
    std::size_t shortened(std::size_t bytes);

    std::mutex lock_;
    std::mt19937 random_;
    const bool unsteady_;
    int calls_[16] = {};
};

}  // namespace gantry::io
