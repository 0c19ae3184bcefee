// SPDX-License-Identifier: BSD-3-Clause
//
// The first number, and those of addresses that are not near the first.
#include "common/numbers.hpp"

#include "common/fatal.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>

namespace gantry::personality::numbers {

std::atomic<std::uintptr_t> origin = kNowhere;
std::atomic<Chunk*> chunks[kChunks];
std::atomic<std::uint32_t> guesses[kGuesses];

namespace {

constexpr std::uintptr_t kLowest = 4096;

// Never destroyed: programs free handles when they end.
struct Seen {
    std::mutex lock;
    std::map<void*, std::uint32_t> numbers;
};
Seen& seen() {
    static Seen* const made = new Seen;
    return *made;
}

void set_origin(void* first) {
    std::uintptr_t nowhere = kNowhere;
    const auto place = reinterpret_cast<std::uintptr_t>(first) & ~std::uintptr_t{7};
    // The heap grows upwards, but the first object may lie in a gap.
    origin.compare_exchange_strong(nowhere, std::max(place, kLowest + kNear / 4) - kNear / 4);
}

std::uint32_t look_up(void* address) {
    Seen& all = seen();
    const std::lock_guard held(all.lock);
    const auto known = all.numbers.find(address);
    if (known != all.numbers.end()) return known->second;
    const std::size_t number = all.numbers.size();
    if (number >= kChunks * kPerChunk)
        fatal(
            "more than 33 million objects of MPI live at a time; handles of this ABI have no more");
    std::atomic<Chunk*>& chunk = chunks[number / kPerChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr)
        chunk.store(reinterpret_cast<Chunk*>(new std::atomic<void*>[kPerChunk]()),
                    std::memory_order_release);
    (*chunk.load(std::memory_order_relaxed))[number % kPerChunk].store(address,
                                                                       std::memory_order_relaxed);
    all.numbers.emplace(address, static_cast<std::uint32_t>(number));
    return static_cast<std::uint32_t>(number);
}

}  // namespace

std::uint32_t seen_number(void* of) {
    if (origin.load(std::memory_order_relaxed) == kNowhere) {
        set_origin(of);
        return number(of);
    }
    const auto bits = reinterpret_cast<std::uintptr_t>(of);
    // Objects lie some hundred bytes apart.
    const auto hash = static_cast<unsigned>((bits >> 4) * 0x9e3779b97f4a7c15u >> 52);
    const std::uint32_t guess = guesses[hash % kGuesses].load(std::memory_order_relaxed);
    if (seen_address(guess) == of) [[likely]]
        return kSeen | guess;
    const std::uint32_t found = look_up(of);
    guesses[hash % kGuesses].store(found, std::memory_order_relaxed);
    return kSeen | found;
}

}  // namespace gantry::personality::numbers
