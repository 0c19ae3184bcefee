// SPDX-License-Identifier: BSD-3-Clause
//
// UseCounts: how often each allocation was used, by its buffer id. Every staged message counts, so
// counting takes no memory of its own: open addressing in one array, where what is forgotten keeps
// its place until there is need of it. Of kRemembered allocations, or up to twice as many, all are
// forgotten at once: nothing here is needed for right data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gantry::plan {

class UseCounts {
  public:
    static constexpr std::size_t kRemembered = 4096;  // allocations

    // One more; how many there are now.
    int count(std::uint64_t buffer_id);
    int of(std::uint64_t buffer_id) const {
        return places_.empty() ? 0 : places_[place_of(buffer_id)].uses;
    }
    void forget(std::uint64_t buffer_id) {
        if (!places_.empty()) places_[place_of(buffer_id)].uses = 0;
    }

  private:
    struct Place {
        std::uint64_t buffer_id = 0;
        int uses = 0;
        bool taken = false;
    };

    // Where it is, or would be. At least every second place is free.
    std::size_t place_of(std::uint64_t buffer_id) const {
        constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
        const std::size_t mask = places_.size() - 1;
        auto at = static_cast<std::size_t>((buffer_id * kSpread) >> 32) & mask;
        while (places_[at].taken && places_[at].buffer_id != buffer_id)
            at = (at + 1) & mask;
        return at;
    }
    void make_room();  // for one more at least

    std::vector<Place> places_;  // a power of two, or none
    std::size_t taken_ = 0;
};

}  // namespace gantry::plan
