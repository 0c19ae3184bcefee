// SPDX-License-Identifier: BSD-3-Clause
// Making and freeing ranges of memory, and looking pointers up for a copy. The driver's lock is
// held throughout.
#pragma once

#include "driver.hpp"

namespace simgpu {

struct Made {
    Range* range = nullptr;
    CUresult result = CUDA_SUCCESS;
};

// Device memory out of fresh pages; filled with poison, as real device memory is not zeroed.
Made new_device_range(Driver& d, Device& device, Context* context, MemoryKind kind,
                      std::size_t bytes, std::size_t suballocation);
// Pages of another process, or of cuMemCreate, at a new device address.
Made map_range(Driver& d, Device& device, MemoryKind kind, const Slice& slice, std::size_t bytes,
               std::size_t base_offset);
// Page-locked or managed host memory: the device address is the host address.
Made new_host_range(Driver& d, Context& context, MemoryKind kind, std::size_t bytes,
                    unsigned flags);

// Where bytes are, for the one who moves them.
enum class Residence { device, managed, pinned, pageable };
struct Place {
    CUresult result = CUDA_SUCCESS;
    char* bytes = nullptr;  // the host's view
    Residence residence = Residence::pageable;
    const Device* device = nullptr;
    bool sync_memops = false;
};
Place locate(Driver& d, Address address, std::size_t bytes);
// The same for a pointer that must not be pageable host memory.
Place locate_known(Driver& d, Address address, std::size_t bytes);

}  // namespace simgpu
