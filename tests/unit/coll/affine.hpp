// SPDX-License-Identifier: BSD-3-Clause
//
// A reduction whose result shows in which order it was made.
#pragma once

#include "coll/reducer.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gantry::coll {

// x -> a x + b, modulo 2^32: composing two of them depends on their order.
struct Affine {
    std::uint32_t a, b;
    bool operator==(const Affine&) const = default;
};
inline Affine compose(Affine first, Affine second) {
    return {first.a * second.a, first.b * second.a + second.b};
}
inline Affine of_process(int process, std::size_t index) {
    return {static_cast<std::uint32_t>(2 * process + 3),
            static_cast<std::uint32_t>(7 * process) + static_cast<std::uint32_t>(index)};
}
inline Affine composed(const std::vector<int>& processes, std::size_t index) {
    Affine result = of_process(processes.front(), index);
    for (std::size_t i = 1; i < processes.size(); ++i)
        result = compose(result, of_process(processes[i], index));
    return result;
}
inline void compose_all(void* first, void* second, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i) {
        Affine& result = static_cast<Affine*>(second)[i];
        result = compose(static_cast<Affine*>(first)[i], result);
    }
}
inline Reducer composition() {
    Reducer reducer;
    reducer.function = compose_all;
    reducer.extent = sizeof(Affine);
    reducer.commutative = false;
    return reducer;
}

}  // namespace gantry::coll
