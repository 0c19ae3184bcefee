// SPDX-License-Identifier: BSD-3-Clause
#include "device/loaded_objects.hpp"

#include <cstddef>
#include <link.h>

namespace gantry::device {

LoadedObjects loaded_objects() {
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
