// SPDX-License-Identifier: BSD-3-Clause
//
// How many libraries were ever loaded into and unloaded from the process: while the two counters
// stand still, no library came or went. Reading them costs about 30 ns and no system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <link.h>

namespace gantry::device {

struct LoadedObjects {
    std::uint64_t added = 0;
    std::uint64_t removed = 0;
    bool operator==(const LoadedObjects&) const = default;
};

inline LoadedObjects loaded_objects() {
    LoadedObjects counters;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t bytes, void* data) {
            // The counters are the same in every row, so the first is enough.
            if (bytes >= offsetof(dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
                auto* out = static_cast<LoadedObjects*>(data);
                out->added = info->dlpi_adds;
                out->removed = info->dlpi_subs;
            }
            return 1;
        },
        &counters);
    return counters;
}

}  // namespace gantry::device
