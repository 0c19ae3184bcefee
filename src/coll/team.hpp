// SPDX-License-Identifier: BSD-3-Clause
//
// Team: what a collective algorithm runs on. The group outlives the operation (the communicator
// holds it); the tag is this operation's own, so operations of one communicator in flight at once
// do not meet.
#pragma once

#include "p2p/group.hpp"
#include "p2p/messenger.hpp"

namespace gantry::coll {

struct Team {
    p2p::Messenger* messenger = nullptr;
    const p2p::Group* group = nullptr;
    int tag = 0;
    int rank() const { return group->rank; }
    int size() const { return group->size(); }
    Executor& executor() const { return messenger->executor(); }
};

}  // namespace gantry::coll
