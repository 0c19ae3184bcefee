// SPDX-License-Identifier: BSD-3-Clause
//
// Handles of 32 bits for objects that the library knows by address: every address has one number, for
// ever. Nothing has to be told when an object ends, and no two objects that live share a number.
//
//     0 x25   address = origin + 8 x: objects lie in the heap, most of them near the first one
//     1 x25   anything else: a number by the order in which addresses were first seen. The library uses
//             addresses of handles again, so there are as many as objects lived at a time
//
// All directions are reads without a lock: an array in chunks gives the address of a number of the second
// kind; the number of an address is guessed by a hash and confirmed by that array. Only an address that
// was never seen, or a wrong guess, takes the lock.
#pragma once

#include "common/export.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gantry::personality::numbers {

// The first kind.
inline constexpr unsigned kBits = 26;
inline constexpr std::uint32_t kSeen = 1u << (kBits - 1);  // set in numbers of the second kind
inline constexpr std::uintptr_t kNear = std::uintptr_t{kSeen} * 8;
// Set once, by the first number that somebody asks for; before, nothing is near. Constants of the
// standard never are.
GANTRY_HIDDEN extern std::atomic<std::uintptr_t> origin;
inline constexpr std::uintptr_t kNowhere = std::uintptr_t{1} << 63;

// The second.
inline constexpr std::size_t kPerChunk = 4096;
inline constexpr std::size_t kChunks = kSeen / kPerChunk;
inline constexpr unsigned kGuesses = 4096;

using Chunk = std::atomic<void*>[kPerChunk];
GANTRY_HIDDEN extern std::atomic<Chunk*> chunks[kChunks];
GANTRY_HIDDEN extern std::atomic<std::uint32_t> guesses[kGuesses];

// Null for a number that nobody has; of the first kind some address, which the library judges.
inline void* seen_address(std::uint32_t number) {
    // The chunk is published by seen_number() of the thread that made the handle; whoever gave the
    // handle to this thread has synchronised with it.
    const Chunk* chunk = chunks[number / kPerChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr
                            : (*chunk)[number % kPerChunk].load(std::memory_order_relaxed);
}
inline void* near_address(std::uint32_t number) {
    return reinterpret_cast<void*>(origin.load(std::memory_order_relaxed) +
                                   std::uintptr_t{number} * 8);
}
inline void* address(std::uint32_t number) {
    return (number & kSeen) != 0 ? seen_address(number & (kSeen - 1)) : near_address(number);
}

// Less than kNear: the number is an eighth of it.
inline std::uintptr_t distance(const void* of) {
    return reinterpret_cast<std::uintptr_t>(of) - origin.load(std::memory_order_relaxed);
}
std::uint32_t seen_number(void* of);
inline std::uint32_t number(void* of) {
    const std::uintptr_t far = distance(of);
    return far < kNear ? static_cast<std::uint32_t>(far / 8) : seen_number(of);
}

}  // namespace gantry::personality::numbers
