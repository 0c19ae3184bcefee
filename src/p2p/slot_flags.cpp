// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/slot_flags.hpp"

#include <algorithm>

namespace gantry::p2p {
namespace {

// Behind what was told before, piece by piece.
Bytes has_come(const AwaitedFlags::Awaited& awaited) {
    const auto is_there = [&awaited](Bytes piece) {
        const Flag& flag = awaited.flag[piece / transport::kPiecesOfSlotUnit];
        return __atomic_load_n(&flag.pieces[piece % transport::kPiecesOfSlotUnit],
                               __ATOMIC_ACQUIRE) == awaited.number;
    };
    Bytes end = awaited.told;
    while (end < awaited.chunk.bytes && is_there(end / kFlowPiece))
        end += kFlowPiece;
    return std::min(end, awaited.chunk.bytes) - awaited.told;
}

}  // namespace

std::optional<AwaitedFlags::Raised> AwaitedFlags::next_raised() {
    for (auto each = awaited_.begin(); each != awaited_.end(); ++each) {
        const Bytes offset = each->receive != nullptr ? each->told : 0;
        if (shows(*each->flag, each->number)) {
            const Raised all{
                each->from, each->receive, each->chunk, offset, each->chunk.bytes - offset, true};
            awaited_.erase(each);
            return all;
        }
        if (each->receive == nullptr || each->least == 0) continue;
        const Bytes bytes = has_come(*each);
        if (bytes == 0 || (bytes < each->least && offset + bytes < each->chunk.bytes)) continue;
        each->told += bytes;
        return Raised{each->from, each->receive, each->chunk, offset, bytes, false};
    }
    return std::nullopt;
}

void AwaitedFlags::tell_more(const FlaggedReceive& receive, Bytes least) {
    for (Awaited& each : awaited_)
        if (each.receive == &receive) each.least = least;
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
