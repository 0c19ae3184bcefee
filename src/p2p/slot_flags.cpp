// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/slot_flags.hpp"

#include <algorithm>

namespace gantry::p2p {

std::optional<AwaitedFlags::Awaited> AwaitedFlags::next_raised() {
    const auto raised = std::ranges::find_if(
        awaited_, [](const Awaited& each) { return shows(*each.flag, each.number); });
    if (raised == awaited_.end()) return std::nullopt;
    const Awaited found = *raised;
    awaited_.erase(raised);
    return found;
}

void AwaitedFlags::drop(int from, std::uint64_t send_id) {
    std::erase_if(awaited_, [&](const Awaited& each) {
        return each.from == from && each.chunk.send_id == send_id;
    });
}

void AwaitedFlags::drop(int from) {
    std::erase_if(awaited_, [&](const Awaited& each) { return each.from == from; });
}

void AwaitedFlags::disown(const FlaggedReceive& receive) {
    for (Awaited& each : awaited_)
        if (each.receive == &receive) each.receive = nullptr;
}

}  // namespace gantry::p2p
