// SPDX-License-Identifier: BSD-3-Clause
//
// The step that most algorithms are made of: send to one rank and receive from another at the same
// time.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// Remembers the first failure of an algorithm that goes on: a rank that stopped in the middle
// (because a peer's message did not fit, say) would leave others waiting for ever.
class FirstFailure {
  public:
    void note(Status status) {
        if (first_.ok()) first_ = std::move(status);
    }
    const Status& status() const { return first_; }

  private:
    Status first_;
};

p2p::Buffer bytes_buffer(const void* address, Bytes bytes);

Task<Status> send(Executor& executor, Team team, p2p::Buffer buffer, int to);
Task<Status> receive(Executor& executor, Team team, p2p::Buffer buffer, int from);
Task<Status> exchange(Executor& executor, Team team, p2p::Buffer outgoing, int to,
                      p2p::Buffer incoming, int from);
// Between two buffers of this process, of any layout and memory kind, with equal data bytes (or
// fewer in the source).
Task<Status> copy_local(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink);

}  // namespace gantry::coll
