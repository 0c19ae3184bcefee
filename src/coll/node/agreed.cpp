// SPDX-License-Identifier: BSD-3-Clause
#include "coll/node/agreed.hpp"

#include "coll/node/reduce.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

using plan::CollMemory;

bool all_bring(const Offers& offers, Held how, int first, int end) {
    for (int member = first; member < end; ++member)
        if (const Held its = offers[member].source; its != Held::nothing && its != how)
            return false;
    return true;
}

// Long blocks where they lie, short ones in cells.
bool all_send_from_host(const Offers& offers, int first, int end) {
    for (int member = first; member < end; ++member)
        if (const Held its = offers[member].source;
            its == Held::device || its == Held::other || offers[member].on_device)
            return false;
    return true;
}

CollMemory memory_of_exchange(const Offers& offers, int first, int end) {
    const bool taken = end - first < offers.size() || all_take_on_devices(offers);
    if (all_bring(offers, Held::in_cell, first, end)) return CollMemory::cells;
    if (all_bring(offers, Held::device, first, end) && taken) return CollMemory::device;
    return all_send_from_host(offers, first, end) ? CollMemory::host : CollMemory::other;
}

CollMemory memory_of_reduction(const Offers& offers) {
    const int all = offers.size();
    // Ranks that call with different counts are told so by their messages.
    for (int member = 0; member < all; ++member)
        if (offers[member].bytes != offers[0].bytes) return CollMemory::other;
    if (all_bring(offers, Held::in_cell, 0, all)) return CollMemory::cells;
    if (all_bring(offers, Held::host, 0, all)) return CollMemory::host;
    return all_bring(offers, Held::device, 0, all) && all_take_on_devices(offers)
               ? CollMemory::device
               : CollMemory::other;
}

}  // namespace

AgreedQuestion::AgreedQuestion(const plan::CallQuestion& call, const Offers& offers, int first,
                               int end, int only_receiver)
    : asked_(plan::question_of(call)) {
    asked_.memory = memory_of_exchange(offers, first, end);
    Bytes most = 0;
    for (int member = first; member < end; ++member) {
        asked_.node_segment.time_sliced |= offers[member].time_sliced;
        asked_.node_segment.on_devices |=
            offers[member].source == Held::in_cell && offers[member].on_device;
        most = std::max<Bytes>(most, offers[member].bytes);
        if (asked_.memory == CollMemory::host) ask_with(asked_.node_segment, offers[member].reads);
    }
    if (asked_.memory == CollMemory::host && asked_.bytes == 0)
        asked_.bytes = only_receiver >= 0 ? most : most / static_cast<Bytes>(offers.size() - 1);
}

AgreedQuestion::AgreedQuestion(const plan::CallQuestion& call, const Offers& offers,
                               const ReductionCall& reduction)
    : asked_(plan::question_of(call)) {
    asked_.memory = memory_of_reduction(offers);
    asked_.node_segment.in_place = any_in_place(offers, reduction);
    for (int member = 0; member < offers.size(); ++member) {
        const MemoryOffer& its = offers[member];
        asked_.node_segment.time_sliced |= worker_of(offers, member) != member;
        asked_.node_segment.on_devices |= its.source == Held::in_cell && its.on_device;
        if (asked_.memory == CollMemory::host) ask_with(asked_.node_segment, its.reads);
    }
}

AgreedQuestion AgreedQuestion::by_messages() const {
    AgreedQuestion other = *this;
    other.asked_.memory = CollMemory::other;
    return other;
}

bool all_take_on_devices(const Offers& offers) {
    for (int member = 0; member < offers.size(); ++member)
        if (const Held its = offers[member].sink; its != Held::device && its != Held::nothing)
            return false;
    return true;
}

int worker_of(const Offers& offers, int member) {
    const MemoryOffer& its = offers[member];
    if (!its.time_sliced || its.source_handle.kind == device::IpcKind::none) return member;
    for (int other = 0; other < member; ++other)
        if (offers[other].source == Held::device &&
            offers[other].source_handle.gpu == its.source_handle.gpu)
            return other;
    return member;
}

bool any_in_place(const Offers& offers, const ReductionCall& reduction) {
    for (int member = 0; member < offers.size(); ++member)
        if (reduction.is_for(member) && offers[member].in_place) return true;
    return false;
}

Brought brought_to(const Offers& offers) {
    Brought brought;
    bool host = false, devices = false;
    for (int member = 0; member < offers.size(); ++member) {
        const MemoryOffer& its = offers[member];
        brought.time_sliced |= its.time_sliced;
        devices |= its.source == Held::device || its.on_device;
        host |= its.source == Held::in_cell && !its.on_device;
    }
    brought.mixed = host && devices;
    return brought;
}

}  // namespace gantry::coll
