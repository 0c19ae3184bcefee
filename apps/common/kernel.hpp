// SPDX-License-Identifier: BSD-3-Clause
//
// A kernel as the host knows it: its name in the PTX, and the same work as a loop.
#pragma once

#include "cells.hpp"

#include <cstdint>

namespace gantry::apps {

struct Kernel {
    const char* name;
    void (*on_host)(const void* work);
    // For the simulated GPU's clock: items of a launch, and bytes of memory that one moves.
    Whole (*items)(const void* work);
    Whole bytes_per_item;
};

// Addresses that lie in tables in device memory, as the caller may touch them: only the simulated GPU
// has another idea of them than the program, and sets this.
using Translate = void* (*)(std::uint64_t address);
Translate& table_address();

template <class Work, void (*one)(const Work&, Whole)>
void all_items(const void* memory) {
    const Work& work = *static_cast<const Work*>(memory);
    const Whole items = work.items();
    for (Whole item = 0; item < items; ++item)
        one(work, item);
}

template <class Work>
Whole items_of(const void* work) {
    return static_cast<const Work*>(work)->items();
}

template <class Work, void (*one)(const Work&, Whole)>
constexpr Kernel kernel_of(const char* name, Whole bytes_per_item) {
    return {name, &all_items<Work, one>, &items_of<Work>, bytes_per_item};
}

}  // namespace gantry::apps
