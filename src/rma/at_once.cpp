// SPDX-License-Identifier: BSD-3-Clause
//
// Short ways of operations that are a few loads and stores: those on one run of bytes that is mapped
// here as host memory. They take no part in queues, and what they refuse is judged, and told, by
// Window::begin() or the task that the caller then takes.
#include "rma/windows.hpp"

#include <cstring>

namespace gantry::rma {

std::byte* Window::reached(int of_rank, std::int64_t displacement, Bytes bytes) {
    Target& of = target(of_rank);
    const bool mapped = of.direct && of.process == 0 && transfer::in_host_memory(of.location);
    if (!mapped || flavor == Flavor::dynamic || !lost_.ok()) return nullptr;
    std::int64_t first = 0;
    if (__builtin_mul_overflow(displacement, of.unit, &first) || first < 0) return nullptr;
    if (static_cast<Bytes>(first) > of.bytes || bytes > of.bytes - static_cast<Bytes>(first))
        return nullptr;
    if (of.lock == Lock::none && !of.in_started) {
        if (epochs.fence == Epochs::Fence::none) return nullptr;
        epochs.fence = Epochs::Fence::used;
    }
    return of.memory + first;
}

bool Window::change_at_once(int of_rank, std::int64_t displacement, const ItemChange& change) {
    const Bytes bytes = change.items.size;
    Target& of = target(of_rank);
    // Those that wait for their turn come first.
    if (change.items.padded() || of.carrying || of.control == nullptr) return false;
    std::byte* const item = reached(of_rank, displacement, bytes);
    const auto low_bits = [](const void* address) {
        return reinterpret_cast<std::uintptr_t>(address) % alignof(std::max_align_t);
    };
    if (item == nullptr || ((low_bits(item) | low_bits(change.operand)) & (bytes - 1)) != 0)
        return false;
    if (!try_accumulate(*of.control)) return false;
    if (change.verb == Verb::compare_and_swap) {
        const bool same = std::memcmp(item, change.compare, bytes) == 0;
        std::memcpy(change.result, item, bytes);
        if (same) std::memcpy(item, change.operand, bytes);
    } else {
        std::memcpy(change.result, item, bytes);
        change.reduce(change.operand, item, 1);
    }
    of.control->end_accumulate();
    return true;
}

bool Window::is_quiet(int of_rank) {
    const Target& of = target(of_rank);
    return of.lock != Lock::none && of.busy == 0 && of.announced == 0 && of.batch.empty() &&
           of.executed >= of.sent && of.failure.ok();
}

}  // namespace gantry::rma
