// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/claim_words.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace gantry::transfer {
namespace {

std::uint32_t value(std::uint64_t id, Claimant who) {
    return static_cast<std::uint32_t>(id) << 2 | static_cast<std::uint32_t>(who);
}

}  // namespace

void name_claim(std::uint32_t& word, std::uint64_t id) {
    std::atomic_ref(word).store(value(id, Claimant::nobody), std::memory_order_release);
}

bool take_claim(std::uint32_t& word, std::uint64_t id, Claimant who) {
    std::uint32_t found = value(id, Claimant::nobody);
    return std::atomic_ref(word).compare_exchange_strong(found, value(id, who),
                                                         std::memory_order_acq_rel) ||
           found == value(id, who);
}

bool ClaimWords::reserve(std::uint64_t id) {
    return !std::exchange(used_[id % kClaimWords], true);
}

void ClaimClock::wait(int from, std::uint64_t id, Nanoseconds until) {
    waiting_.push_back({from, id, until});
}

std::optional<ClaimClock::Waiting> ClaimClock::next(Nanoseconds now) {
    const auto due =
        std::ranges::find_if(waiting_, [&](const Waiting& each) { return each.until <= now; });
    if (due == waiting_.end()) return std::nullopt;
    const Waiting found = *due;
    waiting_.erase(due);
    return found;
}

}  // namespace gantry::transfer
