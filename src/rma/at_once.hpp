// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of Window that make an operation a few loads and stores inside its call: on one run of
// bytes that is mapped here as host memory. They take no part in queues, and what they refuse is judged,
// and told, by Window::begin() or the task that the caller then takes. For the one file that calls them
// from entry points (mpi/rma/at_once.cpp).
#pragma once

#include "rma/windows.hpp"

#include <cstring>

namespace gantry::rma {

[[gnu::always_inline]] inline std::byte* Window::reached(int of_rank, std::int64_t displacement,
                                                         Bytes bytes) {
    Target& of = target(of_rank);
    std::int64_t first = 0;
    if (__builtin_mul_overflow(displacement, of.unit, &first) || first < 0) return nullptr;
    if (static_cast<Bytes>(first) > of.bytes || bytes > of.bytes - static_cast<Bytes>(first))
        return nullptr;
    if (of.lock == Lock::none && !of.in_started) {
        if (epochs.fence == Epochs::Fence::none) return nullptr;
        epochs.fence = Epochs::Fence::used;
    }
    return of.loads_and_stores + first;
}

// An item is mostly a word.
inline void copy_at_once(void* to, const void* from, Bytes bytes) {
    if (bytes == sizeof(std::uint64_t))
        std::memcpy(to, from, sizeof(std::uint64_t));
    else
        std::memcpy(to, from, bytes);
}

[[gnu::always_inline]] inline bool Window::change_at_once(int of_rank, std::int64_t displacement,
                                                          const ItemChange& change) {
    Target& of = target(of_rank);
    const Bytes bytes = change.bytes();
    // Those that wait for their turn come first.
    if (of.carrying || bytes > Origin::kMostUnderLock) return false;
    std::byte* const items = reached(of_rank, displacement, bytes);
    const auto low_bits = [](const void* address) {
        return reinterpret_cast<std::uintptr_t>(address) % alignof(std::max_align_t);
    };
    if (items == nullptr ||
        ((low_bits(items) | low_bits(change.operand)) & (change.item_bytes - 1)) != 0)
        return false;
    if (!of.control->try_accumulate(rank()) && !locks.try_accumulate(*of.control)) return false;
    const bool swaps = change.compare != nullptr && std::memcmp(items, change.compare, bytes) == 0;
    if (change.result != nullptr) copy_at_once(change.result, items, bytes);
    if (change.reduce != nullptr) change.reduce(change.operand, items, change.count);
    if (swaps) copy_at_once(items, change.operand, bytes);
    of.control->end_accumulate();
    return true;
}

inline bool Window::is_quiet(int of_rank) const {
    const Target& of = *targets[static_cast<std::size_t>(of_rank)];
    if (of.lock == Lock::none || of.busy != 0 || !of.failure.ok()) return false;
    // Nothing goes by message to where loads and stores reach.
    return of.loads_and_stores != nullptr ||
           (of.gone.ok() && of.rendezvous == 0 && of.batch.empty() && of.executed >= of.sent);
}

}  // namespace gantry::rma
