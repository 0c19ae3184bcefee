// SPDX-License-Identifier: BSD-3-Clause
//
// StagedVector: a vector of device memory that goes between nodes in short pieces, in page-locked memory on
// its way. A copy of each piece would cost more than the piece, so one copy moves several pieces:
//
//     root      | read 0       | read 1 ...                out of the GPU, all asked for at once
//                              | send 0 | send 1 ...       pieces, as soon as they have been read
//     others    | receive 0 | receive 1 ...                pieces, which go on from here
//                                 | store 0 ...            into the GPU, when several have come
//
// A rank decides for itself: messages have the same sizes and tags whether it stages or not.
#pragma once

#include "coll/exchange.hpp"
#include "transfer/pipeline/stage.hpp"

#include <memory>
#include <vector>

namespace gantry::coll {

// Whether messages with that rank of the team are staged: it is on another node, and network cards do not
// reach device memory.
bool is_staged_to(const Team& team, int rank);

class StagedVector {
  public:
    enum class Reads : std::uint8_t { nothing, from_the_start, from_the_end };
    // `reads`: in which order this rank's data is copied out of the GPU; `nothing`: it is received. Off
    // where it is host memory or too long for slots.
    StagedVector(Executor& executor, const Team& team, const p2p::Buffer& vector, Reads reads);

    bool on() const { return static_cast<bool>(whole_.slot); }
    // What messages send and receive: the slot, or the vector itself.
    p2p::Buffer bytes() const;
    // Waits until bytes [begin, end) can be sent.
    Task<Status> wait_read(Executor& executor, Bytes begin, Bytes end);
    // They have come.
    void came(Bytes begin, Bytes end);
    // All that came is in the GPU; all that was read has been.
    Task<Status> all(Executor& executor);

  private:
    // Bytes on their way out of the GPU, all into one slot.
    struct Read {
        explicit Read(Executor& executor) : copies(executor) {}
        Bytes begin = 0, end = 0;
        Scope copies;
    };
    void start_reading(Executor& executor, Reads reads);
    void store(Bytes begin, Bytes end);
    const Team team_;
    const p2p::Buffer vector_;
    std::vector<std::unique_ptr<Read>> reads_;
    transfer::Stage whole_;              // its copies go into the GPU
    Bytes run_begin_ = 0, run_end_ = 0;  // received, and not being stored so far
};

}  // namespace gantry::coll
