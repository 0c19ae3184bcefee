// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoint: one peer as transfers see it: which transport reaches it, what that costs, whether it is
// lost, and what is mapped between its memory and ours. Made at the first use of the peer, so a rank
// pays for those that it talks to.
#pragma once

#include "plan/looks.hpp"
#include "transfer/rail_shares.hpp"
#include "transfer/remote_memory.hpp"
#include "transfer/slots.hpp"
#include "transport/transport.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace gantry::transfer {

class SharedMapping;

struct Endpoint {
    int rank = -1;
    transport::Transport* transport = nullptr;  // null: none reaches it, and it is lost
    transport::PeerFacts facts;
    // What the peer shares with this rank, and this rank with it; null: nothing.
    transport::SharedSegment* shared = nullptr;
    transport::SharedSegment* own_shared = nullptr;
    Status lost;  // why it cannot be reached any more
    RemoteMemory memory;
    std::unique_ptr<RailShares> rails;  // null: there is one rail, or shared memory
    // The first word of hints about messages between this rank and the peer. It changes with whatever
    // may change the facts about them.
    std::uint64_t hint_word() const {
        return static_cast<std::uint64_t>(rank) << 32 | memory.epoch();
    }
    SharedMapping* recent_mapping = nullptr;  // while copies use it (transfer/shared_mapping.hpp)
    bool refuses_reads = false;  // the peer may not read this rank's memory: it said so
    plan::Looks looks;           // of messages to it: at what the slower of slots and reading takes
    std::optional<LockedRegions>
        locked_slots[2];  // of its pools, as mapped here; from the first slot on
};

class Endpoints {
  public:
    // `transports` in order of preference: each peer uses the first that reaches it. `machine` learns
    // the networks.
    Endpoints(const std::vector<transport::Transport*>& transports, int world_rank, int world_size,
              plan::Machine& machine);
    Endpoint& to(int rank) {
        Endpoint* const known = endpoints_[static_cast<std::size_t>(rank)].get();
        return known != nullptr ? *known : make(rank);
    }
    // Null: it was never used.
    const Endpoint* known(int rank) const {
        return endpoints_[static_cast<std::size_t>(rank)].get();
    }
    // Peers are numbered: first the ranks of this job, then ranks of other jobs as they come.
    int size() const { return static_cast<int>(endpoints_.size()); }
    int world_size() const { return world_size_; }
    // A number for a rank of another job, the lowest that is free.
    int add();
    // It is free again: nothing is under way with that peer, or will be.
    void drop(int number);
    // Messages to all peers cost something else from now on.
    void prices_changed() {
        for (const std::unique_ptr<Endpoint>& each : endpoints_)
            if (each != nullptr) each->memory.prices_changed();
    }
    // The transport that reaches a rank; null: none does.
    transport::Transport* transport_to(int rank) const;

  private:
    Endpoint& make(int rank);

    const std::vector<transport::Transport*>& transports_;
    const int world_rank_;
    const int world_size_;
    plan::Machine& machine_;
    std::vector<std::unique_ptr<Endpoint>> endpoints_;
    std::vector<bool> added_;  // by number behind the world; false: it is free
};

}  // namespace gantry::transfer
