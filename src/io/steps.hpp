// SPDX-License-Identifier: BSD-3-Clause
//
// Steps: a transfer as system calls, one after the other: which is next, and what follows from what the
// system returned. Who makes the calls, a thread or the kernel's ring, is not known here.
#pragma once

#include "io/transfer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace gantry::io {

// One read or write of a run of the file, to or from pieces of memory.
struct Call {
    // Few enough for the stack, and for every system (IOV_MAX).
    static constexpr std::size_t kMostPieces = 256;
    std::array<iovec, kMostPieces> pieces;
    int number = 0;
    Bytes bytes = 0;
    std::int64_t offset = 0;
};

class Steps {
  public:
    // The transfer outlives this; how it ended stands there.
    explicit Steps(Transfer& transfer);
    Steps(const Steps&) = delete;
    Steps& operator=(const Steps&) = delete;

    // Stays until the next one is asked for; null: the transfer has ended.
    const Call* next();
    // Whether the call that next() gave first is all of the transfer, if it is not cut short.
    bool is_one_call() const;
    // Of the call that next() gave: bytes, or -errno.
    void returned(std::int64_t moved);

  private:
    bool sieves() const { return transfer_.direction == Direction::read && transfer_.sieve > 0; }
    void begin_group();
    void exactly(std::int64_t moved);
    void with_gaps(std::int64_t moved);
    void keep_wanted();
    void fail(std::int64_t error, std::int64_t offset);
    void meet_end(std::int64_t offset);

    Transfer& transfer_;
    std::size_t at_ = 0;         // the first segment that is not whole
    Bytes skip_ = 0;             // what has moved of it
    std::size_t group_end_ = 0;  // segments up to there are moved alike: one by one, or
    bool gaps_ = false;          // read with what lies between them, into
    std::unique_ptr<std::byte[]> scratch_;
    Bytes wanted_ = 0, have_ = 0;  // of the scratch memory
    bool ended_ = false;
    Call call_;
};

// The first segments of a transfer as one call, as far as they adjoin.
void gather(const Transfer& transfer, std::size_t at, std::size_t end, Bytes skip, Call& call);

}  // namespace gantry::io
