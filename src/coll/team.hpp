// SPDX-License-Identifier: BSD-3-Clause
//
// Team: what a collective algorithm runs on. The group outlives the operation (the communicator
// holds it); the tag is this operation's own, so operations of one communicator in flight at once
// do not meet.
//
// The group of an inter-communicator's collectives holds both of its groups, one behind the other.
// Sides are the two as teams: algorithms inside one group run on `mine` as on any team; `theirs` is
// whom this rank sends to and receives from, without being one of them.
#pragma once

#include "p2p/group.hpp"
#include "p2p/messenger.hpp"
#include "plan/coll_question.hpp"
#include "transfer/context.hpp"

namespace gantry::coll {

class Planner;

// Tags of operations that are in flight beside others: nonblocking and persistent ones.
inline constexpr int kBackgroundTag = 0x2000'0000;

struct Team {
    p2p::Messenger* messenger = nullptr;
    transfer::Context* context = nullptr;  // what moves bytes without messages
    const p2p::Group* group = nullptr;
    int tag = 0;
    // The part of the group that the team is.
    int first = 0;
    int count = -1;  // -1: all
    // Of an inter-communicator: how many ranks the group that comes first has. 0: there is one group.
    int border = 0;
    Planner* planner = nullptr;  // of the communicator; null: every operation is planned anew
    // Of an operation that is made of several, one behind the other (coll/nodes.hpp): which one this
    // is, and what has failed in those before. Outlives it; null: it stands alone.
    int phase = 0;
    const Status* before = nullptr;
    // What its ranks are expected to bring, as those of the whole operation have told each other.
    plan::CollMemory memory = plan::CollMemory::unknown;

    bool in_background() const { return (tag & kBackgroundTag) != 0; }
    int rank() const { return group->rank - first; }
    int size() const { return count >= 0 ? count : group->size(); }
    // A rank of the team as a rank of the group, as messages name it.
    int in_group(int rank) const { return first + rank; }
    Executor& executor() const { return context->executor; }
    // What comes from this rank is wrong from the beginning.
    bool failed_before() const { return before != nullptr && !before->ok(); }
};

struct Sides {
    Team mine, theirs;
    explicit Sides(const Team& everybody) : mine(everybody), theirs(everybody) {
        Team &low = everybody.rank() < everybody.border ? mine : theirs,
             &high = everybody.rank() < everybody.border ? theirs : mine;
        low.count = high.first = everybody.border;
        high.count = everybody.size() - everybody.border;
        low.border = high.border = 0;
    }
    // Whether both sides agree that mine goes first where an order matters.
    bool first() const { return mine.first == 0; }
};

}  // namespace gantry::coll
