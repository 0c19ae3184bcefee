// SPDX-License-Identifier: BSD-3-Clause
//
// Futex: a thread sleeps while a word of this process has a value. Whoever changes the word wakes.
#pragma once

#include "base/units.hpp"

#include <atomic>
#include <cstdint>

namespace gantry::futex {

// Returns at once when the word has another value; also when somebody wakes, when a signal comes,
// or when the time is over. 0: no limit.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                 Nanoseconds at_most = 0);
void wake_one(const std::atomic<std::uint32_t>& word);

}  // namespace gantry::futex
