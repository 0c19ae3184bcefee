// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/notify_flags.hpp"

#include <algorithm>

namespace gantry::transfer {

Bytes has_come(const Flag* flags, std::uint32_t number, Bytes begin, Bytes bytes) {
    Bytes end = begin;
    while (end < bytes) {
        const Bytes piece = end / kCutThroughPiece;
        const Flag& flag = flags[piece / transport::kPiecesOfSlotUnit];
        if (__atomic_load_n(&flag.pieces[piece % transport::kPiecesOfSlotUnit], __ATOMIC_ACQUIRE) !=
            number)
            break;
        end += kCutThroughPiece;
    }
    return std::min(end, bytes) - begin;
}

std::optional<AwaitedFlags::Raised> AwaitedFlags::next_raised(std::size_t& at) {
    for (; at < awaited_.size(); ++at) {
        Awaited* const each = &awaited_[at];
        const Bytes all = each->chunk.bytes;
        bool whole = shows(*each->flag, each->number);
        Bytes come = whole ? all - each->told : 0;
        if (!whole && each->cuts_through) {
            come = has_come(each->flag, each->number, each->told, all);
            whole = each->told + come == all;
        }
        const bool enough = each->waiter != nullptr && come > 0 && come >= each->least;
        if (!whole && !enough) continue;
        const Raised raised{each->from, each->waiter, each->chunk, each->told, come, whole};
        each->told += come;
        if (whole) awaited_.erase(awaited_.begin() + static_cast<std::ptrdiff_t>(at));
        return raised;
    }
    return std::nullopt;
}

void AwaitedFlags::tell_more(const FlagWaiter& waiter, Bytes least) {
    for (Awaited& each : awaited_)
        if (each.waiter == &waiter) each.least = least;
}

void AwaitedFlags::drop(int from, std::uint64_t send_id) {
    std::erase_if(awaited_, [&](const Awaited& each) {
        return each.from == from && each.chunk.send_id == send_id;
    });
}

void AwaitedFlags::drop(int from) {
    std::erase_if(awaited_, [&](const Awaited& each) { return each.from == from; });
}

void AwaitedFlags::disown(const FlagWaiter& waiter) {
    for (Awaited& each : awaited_)
        if (each.waiter == &waiter) each.waiter = nullptr;
}

}  // namespace gantry::transfer
