// SPDX-License-Identifier: BSD-3-Clause
//
// The steps that algorithms are made of: send to one rank, receive from one, both at once.
//
// A Run is one operation on one rank. Where a step fails, the rank goes on (others would wait for it
// for ever), but what it has is wrong from then on, and so is what others make of it. So it says so:
// in place of every further message it sends one without data (of one byte, where none is expected),
// and who gets such a message fails as well and passes it on. Every rank then has the right bytes or
// an error, in no more messages than without the failure.
#pragma once

#include "base/first_failure.hpp"
#include "base/task.hpp"
#include "coll/team.hpp"

#include <vector>

namespace gantry::coll {

struct Run {
    explicit Run(const Team& its_team) : team(its_team) {
        if (team.failed_before()) note(*team.before);
    }
    const Team team;
    FirstFailure failure;

    int rank() const { return team.rank(); }
    int size() const { return team.size(); }
    bool failed() const { return !failure.status().ok(); }
    void note(Status status) { failure.note(std::move(status)); }
    const Status& status() const { return failure.status(); }
    // What a step cannot go on without: `status` itself, which is noted.
    Status after(Status status) {
        note(Status(status));
        return status;
    }
};

// Of a run, which outlives the step. They return its status.
Task<Status> send(Executor& executor, Run& run, p2p::Buffer buffer, int to);
Task<Status> receive(Executor& executor, Run& run, p2p::Buffer buffer, int from);
Task<Status> exchange(Executor& executor, Run& run, p2p::Buffer outgoing, int to,
                      p2p::Buffer incoming, int from);

// A message alone.
Task<Status> send(Executor& executor, Team team, p2p::Buffer buffer, int to);
Task<Status> receive(Executor& executor, Team team, p2p::Buffer buffer, int from);
Task<Status> exchange(Executor& executor, Team team, p2p::Buffer outgoing, int to,
                      p2p::Buffer incoming, int from);
// Messages of a run that start now and are awaited later, in any number.
class InFlight {
  public:
    explicit InFlight(Run& run) : run_(run) {}
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
    void send(const p2p::Buffer& buffer, int to);
    void receive(const p2p::Buffer& buffer, int from);
    std::size_t count() const { return messages_.size() - ended_; }
    // Ends when the oldest one has ended; when all have.
    Task<Status> oldest(Executor& executor);
    Task<Status> all(Executor& executor);

  private:
    struct Message {
        p2p::Request* request;
        Bytes expected;
        bool incoming;
    };
    void started(Result<p2p::Request*> request, Bytes expected, bool incoming);
    Run& run_;
    std::vector<Message> messages_;
    std::size_t ended_ = 0;
};

}  // namespace gantry::coll
