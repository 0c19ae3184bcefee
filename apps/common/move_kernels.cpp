// SPDX-License-Identifier: BSD-3-Clause
#include "move_kernels.hpp"

#include <cstring>

namespace gantry::apps {
namespace {

void* as_it_is(std::uint64_t address) {
    return reinterpret_cast<void*>(address);
}

template <class Unit>
void move_all(const void* memory) {
    const MoveWork& work = *static_cast<const MoveWork*>(memory);
    const Translate at = table_address();
    const auto* moves = static_cast<const Move*>(at(work.table));
    for (Whole m = 0; m < work.moves; ++m) {
        const Move& move = moves[m];
        const auto* from = static_cast<const Unit*>(at(move.from));
        auto* to = static_cast<Unit*>(at(move.to));
        for (Whole z = 0; z < move.n[2]; ++z)
            for (Whole y = 0; y < move.n[1]; ++y)
                std::memcpy(to + y * move.to_row + z * move.to_plane,
                            from + y * move.from_row + z * move.from_plane,
                            static_cast<std::size_t>(move.n[0]) * sizeof(Unit));
    }
}

}  // namespace

Translate& table_address() {
    static Translate translate = &as_it_is;
    return translate;
}

const Kernel kMove8 = {"apps_move_8", &move_all<double>, &items_of<MoveWork>, 16};
const Kernel kMove4 = {"apps_move_4", &move_all<float>, &items_of<MoveWork>, 8};

}  // namespace gantry::apps
