// SPDX-License-Identifier: BSD-3-Clause
#include "coll/agreed.hpp"

#include "coll/direct_offer.hpp"
#include "coll/direct_reduce.hpp"
#include "coll/reduce_offer.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

using plan::CollMemory;

// --- of exchanges --------------------------------------------------------------------------------

using Sends = DirectOffer::Sends;

bool all_send(const Offers<DirectOffer>& offers, Sends how, int first, int end) {
    for (int member = first; member < end; ++member)
        if (offers[member].sends != Sends::nothing && offers[member].sends != how) return false;
    return true;
}

// Long blocks where they lie, short ones in cells.
bool all_send_from_host(const Offers<DirectOffer>& offers, int first, int end) {
    for (int member = first; member < end; ++member)
        if (const Sends its = offers[member].sends;
            its == Sends::device || its == Sends::other || offers[member].on_device)
            return false;
    return true;
}

CollMemory memory_of(const Offers<DirectOffer>& offers, int first, int end) {
    const bool taken = end - first < offers.size() || all_take_on_devices(offers);
    if (all_send(offers, Sends::in_cell, first, end)) return CollMemory::cells;
    if (all_send(offers, Sends::device, first, end) && taken) return CollMemory::device;
    return all_send_from_host(offers, first, end) ? CollMemory::host : CollMemory::other;
}

}  // namespace

AgreedQuestion::AgreedQuestion(const plan::CallQuestion& call, const Offers<DirectOffer>& offers,
                               int first, int end, int only_receiver)
    : asked_(plan::question_of(call)) {
    asked_.memory = memory_of(offers, first, end);
    Bytes most = 0;
    for (int member = first; member < end; ++member) {
        asked_.board.time_sliced |= offers[member].time_sliced;
        asked_.board.on_devices |= offers[member].on_device;
        most = std::max<Bytes>(most, offers[member].bytes);
        if (asked_.memory == CollMemory::host) ask_with(asked_.board, offers[member].reads);
    }
    if (asked_.memory == CollMemory::host && asked_.bytes == 0)
        asked_.bytes = only_receiver >= 0 ? most : most / static_cast<Bytes>(offers.size() - 1);
}

bool all_take_on_devices(const Offers<DirectOffer>& offers) {
    for (int member = 0; member < offers.size(); ++member)
        if (offers[member].takes == DirectOffer::Takes::other) return false;
    return true;
}

Brought brought_to(const Offers<DirectOffer>& offers) {
    Brought brought;
    bool host = false, devices = false;
    for (int member = 0; member < offers.size(); ++member) {
        const DirectOffer& its = offers[member];
        brought.time_sliced |= its.time_sliced;
        devices |= its.sends == Sends::device || its.on_device;
        host |= its.sends == Sends::in_cell && !its.on_device;
    }
    brought.mixed = host && devices;
    return brought;
}

// --- of reductions -------------------------------------------------------------------------------

namespace {

using Vector = ReduceOffer::Vector;

// Ranks that call with different counts are told so by their messages.
bool all_are_as_long(const Offers<ReduceOffer>& offers) {
    for (int member = 0; member < offers.size(); ++member)
        if (offers[member].bytes != offers[0].bytes) return false;
    return true;
}

bool all_sources(const Offers<ReduceOffer>& offers, Vector kind) {
    for (int member = 0; member < offers.size(); ++member)
        if (const Vector its = offers[member].source; its != kind && its != Vector::nothing)
            return false;
    return true;
}

bool all_sinks_on_devices(const Offers<ReduceOffer>& offers) {
    for (int member = 0; member < offers.size(); ++member)
        if (const Vector its = offers[member].sink; its != Vector::device && its != Vector::nothing)
            return false;
    return true;
}

CollMemory memory_of(const Offers<ReduceOffer>& offers) {
    if (!all_are_as_long(offers)) return CollMemory::other;
    if (all_sources(offers, Vector::in_cell)) return CollMemory::cells;
    if (all_sources(offers, Vector::host)) return CollMemory::host;
    return all_sources(offers, Vector::device) && all_sinks_on_devices(offers) ? CollMemory::device
                                                                               : CollMemory::other;
}

}  // namespace

AgreedQuestion::AgreedQuestion(const plan::CallQuestion& call, const Offers<ReduceOffer>& offers,
                               const ReductionCall& reduction)
    : asked_(plan::question_of(call)) {
    asked_.memory = memory_of(offers);
    asked_.board.in_place = any_in_place(offers, reduction);
    for (int member = 0; member < offers.size(); ++member) {
        const ReduceOffer& its = offers[member];
        asked_.board.time_sliced |= worker_of(offers, member) != member;
        asked_.board.on_devices |= its.source == Vector::in_cell && its.on_device;
        if (asked_.memory == CollMemory::host) ask_with(asked_.board, its.reads);
    }
}

AgreedQuestion AgreedQuestion::by_messages() const {
    AgreedQuestion other = *this;
    other.asked_.memory = CollMemory::other;
    return other;
}

int worker_of(const Offers<ReduceOffer>& offers, int member) {
    const ReduceOffer& its = offers[member];
    for (int other = 0; its.time_sliced && other < member; ++other)
        if (offers[other].source_handle.gpu == its.source_handle.gpu) return other;
    return member;
}

bool any_in_place(const Offers<ReduceOffer>& offers, const ReductionCall& reduction) {
    for (int member = 0; member < offers.size(); ++member)
        if (reduction.is_for(member) && offers[member].in_place) return true;
    return false;
}

// Short vectors, of the host and of devices.
Brought brought_to(const Offers<ReduceOffer>& offers) {
    Brought brought;
    bool host = false, devices = false;
    for (int member = 0; member < offers.size(); ++member) {
        const ReduceOffer& its = offers[member];
        brought.time_sliced |= its.time_sliced;
        if (its.source == Vector::nothing) continue;
        (its.on_device ? devices : host) |= its.source == Vector::in_cell || its.on_device;
    }
    brought.mixed = host && devices;
    return brought;
}

}  // namespace gantry::coll
