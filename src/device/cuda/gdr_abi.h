// SPDX-License-Identifier: BSD-3-Clause
//
// The few functions of GDRCopy's libgdrapi (major version 2) that Gantry calls, as its public
// interface documents them; written from the documentation, nothing is copied. The library is
// loaded at run time alone. Results are errno values; 0 is success.
#pragma once

#include <cstddef>
#include <cstdint>

struct gdr;  // the library's connection to its kernel module
struct GdrHandle {
    unsigned long value = 0;  // passed by value
};

// The beginning is the same in every version; newer ones append fields, hence the room.
struct GdrInfo {
    std::uint64_t address = 0;  // device address of the mapping's first byte, a page's beginning
    std::uint64_t mapped_bytes = 0;
    std::uint32_t page_bytes = 0;
    std::uint32_t rest[29] = {};
};

extern "C" {
using PFN_gdr_open = gdr* (*)();
using PFN_gdr_close = int (*)(gdr*);
using PFN_gdr_pin_buffer = int (*)(gdr*, unsigned long address, std::size_t bytes,
                                   std::uint64_t p2p_token, std::uint32_t va_space, GdrHandle*);
using PFN_gdr_pin_buffer_v2 = int (*)(gdr*, unsigned long address, std::size_t bytes,
                                      std::uint32_t flags, GdrHandle*);
using PFN_gdr_unpin_buffer = int (*)(gdr*, GdrHandle);
using PFN_gdr_get_info = int (*)(gdr*, GdrHandle, GdrInfo*);
using PFN_gdr_map = int (*)(gdr*, GdrHandle, void** mapping, std::size_t bytes);
using PFN_gdr_unmap = int (*)(gdr*, GdrHandle, void* mapping, std::size_t bytes);
using PFN_gdr_copy_to_mapping = int (*)(GdrHandle, void* mapping, const void* from,
                                        std::size_t bytes);
using PFN_gdr_copy_from_mapping = int (*)(GdrHandle, void* to, const void* mapping,
                                          std::size_t bytes);
}
