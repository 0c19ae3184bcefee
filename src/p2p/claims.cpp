// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/claims.hpp"

namespace gantry::p2p {
namespace {

constexpr std::uint32_t kWords = 1024;

std::uint32_t value(std::uint64_t id, Claimant who) {
    return (static_cast<std::uint32_t>(id) << 2) | static_cast<std::uint32_t>(who);
}

}  // namespace

bool claim(std::uint32_t* word, std::uint64_t id, Claimant who) {
    std::uint32_t expected = value(id, Claimant::nobody);
    // Acquire and release: what the loser did before it lost is seen by the winner, and the other
    // way round.
    return __atomic_compare_exchange_n(word, &expected, value(id, who), false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

std::uint32_t Claims::take(std::uint32_t* words, std::uint64_t id) {
    if (words == nullptr) return 0;
    if (!filled_) {
        filled_ = true;
        for (std::uint32_t number = kWords; number > 0; --number)
            free_.push_back(number);
    }
    if (free_.empty()) return 0;
    const std::uint32_t number = free_.back();
    free_.pop_back();
    // Pairs with the acquire in claim(): the RTS that names it follows.
    __atomic_store_n(words + number - 1, value(id, Claimant::nobody), __ATOMIC_RELEASE);
    return number;
}

void Claims::give_back(std::uint32_t number) {
    if (number != 0) free_.push_back(number);
}

}  // namespace gantry::p2p
