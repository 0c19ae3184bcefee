// SPDX-License-Identifier: BSD-3-Clause
#include "pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gantry::bench {
namespace {

// splitmix64: neighbouring inputs give unrelated words.
std::uint64_t mixed(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

std::uint64_t seed(const Pattern& pattern) {
    return mixed(mixed(mixed(pattern.bytes) + pattern.sample) +
                 static_cast<std::uint64_t>(pattern.message) * 2 +
                 static_cast<std::uint64_t>(pattern.from));
}

// Calls visit(offset, word, bytes of it) for the whole message.
template <class Visit>
void words(const Pattern& pattern, Visit visit) {
    std::uint64_t state = seed(pattern);
    for (Bytes offset = 0; offset < pattern.bytes; offset += sizeof state) {
        // One multiplication per word: a full mix would cost more than the messages.
        state = state * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t word = state ^ (state >> 29);
        visit(offset, word, std::min<Bytes>(sizeof word, pattern.bytes - offset));
    }
}

}  // namespace

void fill(std::byte* memory, const Pattern& pattern) {
    words(pattern, [memory](Bytes offset, std::uint64_t word, Bytes bytes) {
        std::memcpy(memory + offset, &word, bytes);
    });
}

std::optional<std::string> mistake(const std::byte* memory, const Pattern& pattern) {
    Bytes wrong = 0, first = 0;
    unsigned expected_there = 0;
    words(pattern, [&](Bytes offset, std::uint64_t word, Bytes bytes) {
        if (std::memcmp(memory + offset, &word, bytes) == 0) return;
        std::byte expected[sizeof word];
        std::memcpy(expected, &word, sizeof word);
        for (Bytes i = 0; i < bytes; ++i) {
            if (memory[offset + i] == expected[i]) continue;
            if (wrong++ == 0) {
                first = offset + i;
                expected_there = std::to_integer<unsigned>(expected[i]);
            }
        }
    });
    if (wrong == 0) return std::nullopt;
    return fmt::format("byte {} is 0x{:02x} and should be 0x{:02x}; {} of {} bytes are wrong",
                       first, std::to_integer<unsigned>(memory[first]), expected_there, wrong,
                       pattern.bytes);
}

}  // namespace gantry::bench
