// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/endpoint.hpp"

#include <algorithm>

namespace gantry::transfer {

Endpoints::Endpoints(const std::vector<transport::Transport*>& transports, int world_rank,
                     int world_size, plan::Machine& machine)
    : transports_(transports),
      world_rank_(world_rank),
      world_size_(world_size),
      machine_(machine),
      endpoints_(static_cast<std::size_t>(world_size)) {
    machine_.networks.assign(endpoints_.size(), nullptr);
}

int Endpoints::add() {
    const auto free = std::find(added_.begin(), added_.end(), false);
    const auto index = static_cast<std::size_t>(free - added_.begin());
    if (free == added_.end()) {
        added_.push_back(true);
        endpoints_.emplace_back();
        machine_.networks.push_back(nullptr);
    }
    added_[index] = true;
    return world_size_ + static_cast<int>(index);
}

void Endpoints::drop(int number) {
    const auto at = static_cast<std::size_t>(number);
    added_[at - static_cast<std::size_t>(world_size_)] = false;
    machine_.networks[at] = nullptr;
    endpoints_[at].reset();
}

transport::Transport* Endpoints::transport_to(int rank) const {
    for (transport::Transport* candidate : transports_)
        if (candidate->reaches(rank)) return candidate;
    return nullptr;
}

Endpoint& Endpoints::make(int rank) {
    auto made = std::make_unique<Endpoint>();
    made->rank = rank;
    made->transport = transport_to(rank);
    if (made->transport != nullptr) {
        made->facts = made->transport->facts(rank);
        made->shared = made->transport->shared_segment(rank);
        made->own_shared = made->transport->shared_segment(world_rank_);
        const transport::PeerFacts& facts = made->facts;
        if (facts.put && facts.rails > 1)
            made->rails = std::make_unique<RailShares>(
                facts.rails, facts.home_rail, facts.bytes_per_second, facts.message_latency);
    } else {
        made->lost = failure(MPI_ERR_OTHER,
                             "no transport reaches rank {}: it runs on another node and no network "
                             "engine (UCX) is available",
                             rank);
    }
    const auto at = static_cast<std::size_t>(rank);
    machine_.networks[at] = &made->facts;
    endpoints_[at] = std::move(made);
    return *endpoints_[at];
}

}  // namespace gantry::transfer
