// SPDX-License-Identifier: BSD-3-Clause
//
// Addresses that are seen for the first time, or whose guess was wrong.
#include "common/numbers.hpp"

#include "common/fatal.hpp"

#include <map>
#include <mutex>
#include <new>

namespace gantry::personality::numbers {

std::atomic<Chunk*> chunks[kChunks];
std::atomic<std::uint32_t> guesses[kGuesses];

namespace {

// Never destroyed: programs free handles when they end.
struct Seen {
    std::mutex lock;
    std::map<void*, std::uint32_t> numbers;
};
Seen& seen() {
    static Seen* const made = new Seen;
    return *made;
}

}  // namespace

std::uint32_t look_up(void* address) {
    Seen& all = seen();
    const std::lock_guard held(all.lock);
    const auto known = all.numbers.find(address);
    if (known != all.numbers.end()) return known->second;
    const std::size_t number = all.numbers.size();
    if (number >= kChunks * kPerChunk)
        fatal(
            "more than 67 million objects of MPI live at a time; handles of this ABI have no more");
    std::atomic<Chunk*>& chunk = chunks[number / kPerChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr)
        chunk.store(reinterpret_cast<Chunk*>(new std::atomic<void*>[kPerChunk]()),
                    std::memory_order_release);
    (*chunk.load(std::memory_order_relaxed))[number % kPerChunk].store(address,
                                                                       std::memory_order_relaxed);
    all.numbers.emplace(address, static_cast<std::uint32_t>(number));
    return static_cast<std::uint32_t>(number);
}

}  // namespace gantry::personality::numbers
