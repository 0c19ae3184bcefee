// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/host_reads.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <atomic>

namespace gantry::transfer {
namespace {

// One rank writes the word and others read it whole: no order with other memory is needed.
using Word = std::atomic_ref<std::uint64_t>;

std::uint64_t word_of(const plan::HostRates& rates) {
    return std::uint64_t{rates.slots} | std::uint64_t{rates.reads} << 8 |
           std::uint64_t{rates.call} << 16;
}
plan::HostRates rates_of(std::uint64_t word) {
    return {static_cast<plan::Step>(word), static_cast<plan::Step>(word >> 8),
            static_cast<plan::Step>(word >> 16)};
}

double rate(Bytes bytes, Nanoseconds time) {
    return static_cast<double>(bytes) * 1e9 / static_cast<double>(std::max<Nanoseconds>(time, 1));
}

}  // namespace

double HostReads::Window::most() const {
    return *std::ranges::max_element(values_);
}
double HostReads::Window::least() const {
    const auto count = static_cast<std::ptrdiff_t>(std::min(added_, kSamples));
    return count == 0 ? 0 : *std::min_element(values_.begin(), values_.begin() + count);
}

HostReads::Known HostReads::known(Endpoint& peer, transport::SharedSegment* measured_by) {
    if (!enabled_ || peer.facts.self || !peer.facts.shared_memory || peer.refuses_reads ||
        !peer.transport->reads_memory(peer.rank))
        return {};
    std::uint64_t* const word = measured_by != nullptr ? measured_by->host_rates() : nullptr;
    if (word == nullptr) return {};
    const plan::HostRates rates = rates_of(Word(*word).load(std::memory_order_relaxed));
    if (rates.slots == 0) return {plan::Reads::unmeasured, rates};
    return {rates.reads == 0 ? plan::Reads::trial : plan::Reads::measured, rates};
}

void HostReads::copied_from_slot(Endpoint& peer, Bytes bytes, Nanoseconds began) {
    slots_.add(rate(bytes, clock_->now() - began));
    say(peer);
}

void HostReads::read(Endpoint& peer, Bytes bytes, Nanoseconds time) {
    const auto call = static_cast<Nanoseconds>(calls_.least());
    reads_.add(rate(bytes, time - std::min(time / 2, call)));
    say(peer);
}

void HostReads::say(Endpoint& peer) {
    std::uint64_t* const word =
        peer.own_shared != nullptr ? peer.own_shared->host_rates() : nullptr;
    if (word == nullptr) return;
    const plan::HostRates said = rates_of(Word(*word).load(std::memory_order_relaxed));
    plan::HostRates now = said;
    if (slots_.full())
        now.slots = plan::moved(said.slots, plan::step_of(slots_.most(), plan::kRateUnit));
    if (reads_.full())
        now.reads = plan::moved(said.reads, plan::step_of(reads_.most(), plan::kRateUnit));
    if (reads_.full() && !calls_.empty())
        now.call = plan::moved(said.call, plan::step_of(calls_.least(), plan::kTimeUnit));
    if (now == said) return;
    Word(*word).store(word_of(now), std::memory_order_relaxed);
    if (now.reads != 0)
        log::debug(
            "p2p: {:.1f} GB/s out of slots of the node, {:.1f} by reading memory of its ranks",
            now.slot_bytes_per_second() / 1e9, now.read_bytes_per_second() / 1e9);
}

}  // namespace gantry::transfer
