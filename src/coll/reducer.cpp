// SPDX-License-Identifier: BSD-3-Clause
//
// Applying a reduction. A program's function may take an int count: longer vectors are given to it
// in pieces.
#include "coll/reducer.hpp"

#include <algorithm>
#include <climits>
#include <cstddef>

namespace gantry::coll {

void Reducer::apply(const void* first, void* second, std::uint64_t count) const {
    if (count == 0) return;
    if (predefined != nullptr) {
        predefined(first, second, count * items);
        return;
    }
    if (function_x != nullptr) {
        function_x(const_cast<void*>(first), second, static_cast<MPI_Count>(count), datatype,
                   extra_state);
        return;
    }
    // A copy each time: the function gets a pointer to the handle and may write through it.
    MPI_Datatype handle = datatype;
    if (function_c != nullptr) {
        MPI_Count length = static_cast<MPI_Count>(count);
        function_c(const_cast<void*>(first), second, &length, &handle);
        return;
    }
    constexpr std::uint64_t most = INT_MAX;
    auto* in = static_cast<std::byte*>(const_cast<void*>(first));
    auto* inout = static_cast<std::byte*>(second);
    for (std::uint64_t done = 0; done < count;) {
        int length = static_cast<int>(std::min(most, count - done));
        const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(done) * extent;
        handle = datatype;
        function(in + offset, inout + offset, &length, &handle);
        done += static_cast<std::uint64_t>(length > 0 ? length : 1);
    }
}

}  // namespace gantry::coll
