// SPDX-License-Identifier: BSD-3-Clause
// The entry points as numbers, names and call counters; made from the same list as the ABI header.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace simgpu {

enum class EntryId : int {
#define GANTRY_CUDA_FUNCTION(symbol, base, version, twin, args) symbol,
#include "device/cuda/driver_functions.def"
#include "compiler_functions.def"
#undef GANTRY_CUDA_FUNCTION
    count
};
inline constexpr int kEntries = static_cast<int>(EntryId::count);

const char* name_of(EntryId entry);
// EntryId::count when there is no such entry point.
EntryId entry_named(std::string_view name);

inline std::atomic<std::uint64_t> g_calls[kEntries];

}  // namespace simgpu
