// SPDX-License-Identifier: BSD-3-Clause
//
// Handles of 32 bits for objects that the library knows by address: every address that was ever a
// handle has a number, for ever. The library uses addresses of handles again, so there are as many
// as objects lived at a time; nothing has to be told when one ends, and no two objects that live
// share a number.
//
// Both directions are reads without a lock: an array in chunks gives the address of a number; the
// number of an address is guessed by a hash and confirmed by that array. Only an address that was
// never seen, or a wrong guess, takes the lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gantry::personality::numbers {

inline constexpr std::size_t kPerChunk = 4096;
inline constexpr std::size_t kChunks = (std::size_t{1} << 26) / kPerChunk;
inline constexpr unsigned kGuesses = 4096;

using Chunk = std::atomic<void*>[kPerChunk];
extern std::atomic<Chunk*> chunks[kChunks];
extern std::atomic<std::uint32_t> guesses[kGuesses];

// Null for a number that nobody has.
inline void* address(std::uint32_t number) {
    // The chunk is published by number() of the thread that made the handle; whoever gave the handle
    // to this thread has synchronised with it.
    const Chunk* chunk = chunks[number / kPerChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr
                            : (*chunk)[number % kPerChunk].load(std::memory_order_relaxed);
}

std::uint32_t look_up(void* address);

inline std::uint32_t number(void* of) {
    const auto bits = reinterpret_cast<std::uintptr_t>(of);
    // Objects lie some hundred bytes apart.
    const auto hash = static_cast<unsigned>((bits >> 4) * 0x9e3779b97f4a7c15u >> 52);
    const std::uint32_t guess = guesses[hash % kGuesses].load(std::memory_order_relaxed);
    if (address(guess) == of) [[likely]]
        return guess;
    const std::uint32_t found = look_up(of);
    guesses[hash % kGuesses].store(found, std::memory_order_relaxed);
    return found;
}

}  // namespace gantry::personality::numbers
