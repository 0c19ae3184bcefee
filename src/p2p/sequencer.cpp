// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/sequencer.hpp"

namespace gantry::p2p {

void Sequencer::park(std::uint32_t sequence, transport::MessageKind kind,
                     transport::ConstSpan header, transport::ConstSpan payload) {
    parked_.try_emplace(
        sequence, Parked{kind, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
}

bool Sequencer::park_follower(std::uint64_t send_id, transport::MessageKind kind,
                              transport::ConstSpan header, transport::ConstSpan payload) {
    if (send_id <= last_taken(send_id)) return false;
    followers_[send_id].push_back(
        {kind, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
    return true;
}

std::vector<Sequencer::Parked> Sequencer::take_followers(std::uint64_t send_id) {
    if (followers_.empty()) return {};
    auto found = followers_.extract(send_id);
    return found.empty() ? std::vector<Parked>{} : std::move(found.mapped());
}

}  // namespace gantry::p2p
