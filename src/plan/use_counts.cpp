// SPDX-License-Identifier: BSD-3-Clause
#include "plan/use_counts.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace gantry::plan {

int UseCounts::count(std::uint64_t buffer_id) {
    if (2 * (taken_ + 1) > places_.size()) make_room();
    Place& place = places_[place_of(buffer_id)];
    if (!place.taken) {
        place = {buffer_id, 0, true};
        ++taken_;
    }
    return ++place.uses;
}

void UseCounts::make_room() {
    constexpr std::size_t kFirst = 64;
    std::vector<Place> kept = std::exchange(places_, {});
    std::erase_if(kept, [](const Place& place) { return place.uses == 0; });
    if (kept.size() >= kRemembered) kept.clear();
    places_.resize(std::max(kFirst, std::bit_ceil(3 * kept.size())));
    for (const Place& place : kept)
        places_[place_of(place.buffer_id)] = place;
    taken_ = kept.size();
}

}  // namespace gantry::plan
