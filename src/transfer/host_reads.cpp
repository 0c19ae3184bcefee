// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/host_reads.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <atomic>

namespace gantry::transfer {
namespace {

using Word = std::atomic_ref<std::uint64_t>;

transport::HostRates* rates_of(const Endpoint& peer) {
    return peer.own_shared != nullptr ? peer.own_shared->host_rates() : nullptr;
}

// Who measured first is believed.
void store_once(std::uint64_t& word, std::uint64_t value) {
    std::uint64_t none = 0;
    // Pairs with the acquire in state(): a rate comes with what was stored before it.
    Word(word).compare_exchange_strong(none, std::max<std::uint64_t>(value, 1),
                                       std::memory_order_release, std::memory_order_relaxed);
}

}  // namespace

void HostReads::Best::add(Bytes bytes, Nanoseconds time) {
    ++samples;
    const double rate =
        static_cast<double>(bytes) * 1e9 / static_cast<double>(std::max<Nanoseconds>(time, 1));
    bytes_per_second = std::max(bytes_per_second, rate);
}

plan::Reads HostReads::state(Endpoint& peer) {
    if (!enabled_ || peer.facts.self || !peer.facts.shared_memory || peer.refuses_reads ||
        !peer.transport->reads_memory(peer.rank))
        return plan::Reads::refused;
    if (peer.facts.read_bytes_per_second > 0) return plan::Reads::measured;
    transport::HostRates* const rates = rates_of(peer);
    if (rates == nullptr) return plan::Reads::refused;
    // Pairs with the release in store_once().
    const std::uint64_t slot = Word(rates->slot_bytes_per_second).load(std::memory_order_acquire);
    const std::uint64_t read = Word(rates->read_bytes_per_second).load(std::memory_order_acquire);
    if (slot == 0) return plan::Reads::unmeasured;
    if (read == 0) return plan::Reads::trial;
    peer.facts.slot_bytes_per_second = static_cast<double>(slot);
    peer.facts.read_bytes_per_second = static_cast<double>(read);
    peer.facts.read_latency =
        static_cast<Nanoseconds>(Word(rates->read_latency).load(std::memory_order_relaxed));
    return plan::Reads::measured;
}

void HostReads::copied_from_slot(Endpoint& peer, Bytes bytes, Nanoseconds time) {
    slots_.add(bytes, time);
    transport::HostRates* const rates = rates_of(peer);
    if (slots_.samples != kSamples || rates == nullptr) return;
    store_once(rates->slot_bytes_per_second, static_cast<std::uint64_t>(slots_.bytes_per_second));
    log::info("p2p: {:.1f} GB/s out of slots of the node", slots_.bytes_per_second / 1e9);
}

void HostReads::tried_call(Nanoseconds time) {
    call_ = call_ == 0 ? time : std::min(call_, time);
}

void HostReads::read(Endpoint& peer, Bytes bytes, Nanoseconds time) {
    reads_.add(bytes, time - std::min(time / 2, call_));
    transport::HostRates* const rates = rates_of(peer);
    if (reads_.samples != kSamples || rates == nullptr) return;
    store_once(rates->read_latency, static_cast<std::uint64_t>(call_));
    store_once(rates->read_bytes_per_second, static_cast<std::uint64_t>(reads_.bytes_per_second));
    log::info("p2p: {:.1f} GB/s and {} ns by reading memory of other ranks of the node",
              reads_.bytes_per_second / 1e9, call_);
}

}  // namespace gantry::transfer
