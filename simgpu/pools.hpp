// SPDX-License-Identifier: BSD-3-Clause
// Memory pools. A pool made for it can be exported by file descriptor; the default pool of a device
// cannot.
#pragma once

#include <cstddef>
#include <cstdint>

#include "objects.hpp"

namespace simgpu {

struct Driver;

struct Pool {
    Device* device = nullptr;
    bool is_default = false;
    bool imported = false;
    unsigned handle_types = 0;
    std::uint64_t id = 0;
    std::size_t used_bytes = 0;
    std::size_t used_high = 0;
    std::uint64_t release_threshold = 0;
};

Pool* new_default_pool(Device& device);
// A range of the pool was freed.
void pool_lost(Pool& pool, std::size_t bytes);

}  // namespace simgpu
