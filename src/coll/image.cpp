// SPDX-License-Identifier: BSD-3-Clause
#include "coll/image.hpp"

namespace gantry::coll {

Status Image::allocate(const Team& team, std::uint64_t count, const layout::Layout& layout,
                       const Reducer& reducer) {
    if (reducer.place.on_device()) {
        const layout::Span span = layout::span_of(layout, count);
        on_device_ = DeviceScratch(team, reducer.place.like, span.bytes());
        if (on_device_.data() != nullptr) {
            buffer_ = {on_device_.data() - span.low, count, &layout};
            return success();
        }
    }
    GANTRY_TRY(on_host_.allocate(team, count, layout));
    buffer_ = on_host_.buffer();
    return success();
}

}  // namespace gantry::coll
