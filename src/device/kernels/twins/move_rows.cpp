// SPDX-License-Identifier: BSD-3-Clause
//
// Host twin of gantry_move_rows.
#include "device/kernels/move_rows.hpp"
#include "kernels.hpp"
#include "twins.hpp"

#include <cstring>

namespace gantry::kernels {
namespace {

// Calls visit(work, set, planes) for each set.
template <class Visitor>
void for_each_set(const simgpu_launch* launch, Visitor visit) {
    MoveRows work;
    std::memcpy(&work, launch->parameters[0], sizeof work);
    const RowSet* sets = work.table != 0 ? reinterpret_cast<const RowSet*>(work.table) : work.set;
    for (Word s = 0; s < work.sets; ++s)
        visit(work, sets[s], work.boxes != 0 ? work.planes[s] : Planes{1, 0, 0});
}

void move_rows(const simgpu_launch* launch) {
    for_each_set(launch, [](const MoveRows& work, const RowSet& set, const Planes& planes) {
        for (Word plane = 0; plane < planes.count; ++plane) {
            const Word to = work.destination + set.destination + plane * planes.destination_pitch;
            const Word from = work.source + set.source + plane * planes.source_pitch;
            for (Word row = 0; row < set.count; ++row)
                std::memcpy(reinterpret_cast<void*>(to + row * set.destination_pitch),
                            reinterpret_cast<const void*>(from + row * set.source_pitch),
                            set.width);
        }
    });
}

// One end may be the host's, which addresses do not say: all of it counts as over the link, so the
// simulated GPU packs more slowly inside itself than a real one.
void traffic(const simgpu_launch* launch, uint64_t* device_bytes, uint64_t* link_bytes) {
    *device_bytes = 0;
    for_each_set(launch, [device_bytes](const MoveRows&, const RowSet& set, const Planes& planes) {
        *device_bytes += set.width * set.count * planes.count;
    });
    *link_bytes = *device_bytes;
}

}  // namespace

void add_move_rows(void (*add)(const simgpu_twin* twin)) {
    static const simgpu_twin kTwin = {"gantry_move_rows", &move_rows, &traffic, 0};
    add(&kTwin);
}

}  // namespace gantry::kernels
