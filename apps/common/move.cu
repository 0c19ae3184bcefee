// SPDX-License-Identifier: BSD-3-Clause
//
// The copying kernels. One thread: one element of one box; a block: a tile of a box.
#include "move.hpp"

namespace gantry::apps {
namespace {

struct AsItIs {
    GANTRY_DEVICE void* operator()(Word address) const { return reinterpret_cast<void*>(address); }
};

template <class Unit>
GANTRY_DEVICE inline void move_one(const MoveWork& work, Whole item) {
    move_item<Unit>(reinterpret_cast<const Move*>(work.table), work, item, AsItIs{});
}

}  // namespace

APPS_KERNEL(apps_move_8, MoveWork, move_one<double>)
APPS_KERNEL(apps_move_4, MoveWork, move_one<float>)

}  // namespace gantry::apps
