// SPDX-License-Identifier: BSD-3-Clause
#include "coll/image.hpp"

namespace gantry::coll {

Status Image::allocate(const Team& team, std::uint64_t count, const layout::Layout& layout,
                       const Reducer& reducer) {
    if (reducer.place.on_device()) {
        device::Device& device = team.messenger->device();
        const layout::Span span = layout::span_of(layout, count);
        void* const memory = device.borrow(reducer.place.like, span.bytes());
        on_device_ = std::unique_ptr<void, GiveBack>(memory, GiveBack{team});
        // The device knows what it was asked about.
        if (memory != nullptr && device.classify(memory, span.bytes()).ok()) {
            buffer_ = {static_cast<std::byte*>(memory) - span.low, count, &layout};
            return success();
        }
    }
    GANTRY_TRY(on_host_.allocate(team, count, layout));
    buffer_ = on_host_.buffer();
    return success();
}

// A rank that is lost may write into it still: then nobody gets it again.
void Image::GiveBack::operator()(void* memory) const {
    for (int rank = 0; rank < team.group->size(); ++rank)
        if (!team.messenger->nothing_comes(*team.group, rank).ok()) return;
    team.messenger->device().give_back(memory);
}

}  // namespace gantry::coll
