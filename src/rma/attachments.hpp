// SPDX-License-Identifier: BSD-3-Clause
//
// Attachments: what one rank has attached to a dynamic window, written where the ranks of its node see it.
// Its owner alone writes. Others look at a region while others come and go; MPI forbids them to look at one
// that does.
//
//   | used | entry 0: base, bytes, memory | entry 1 | ... | names of device memory |
//
// The table is a view of that memory, where zeros are an empty one; whoever looks at it has the same Room.
// An entry of no bytes is free. Its bytes are written last when it is filled, and first when it is freed.
// What finds no place here is reached by message.
#pragma once

#include "device/device.hpp"

#include <atomic>
#include <cstdint>

namespace gantry::rma {

class Attachments {
  public:
    // What a table has places for: regions, and allocations of device memory that they lie in.
    struct Room {
        std::uint32_t regions = 0, names = 0;
    };
    static Bytes bytes_of(Room room);
    Attachments(std::byte* memory, Room room);

    struct Region {
        std::uint64_t base = 0;
        Bytes bytes = 0;
        std::int32_t name = -1;  // of device memory; -1: host memory
    };

    // --- the owner
    // False: there is no place for it.
    bool add(std::uint64_t base, Bytes bytes, const device::IpcHandle* of_device);
    void remove(std::uint64_t base);

    // --- everybody
    // The region that holds the byte at that address; without bytes: none. `hint` is where the last one
    // was found.
    Region find(std::uint64_t address, std::uint32_t& hint) const;
    // Whether something of that allocation is attached.
    bool has_named(const device::IpcHandle& handle) const;
    const device::IpcHandle& name(std::int32_t number) const { return names_[number]; }

  private:
    struct alignas(64) Used {
        std::atomic<std::uint32_t> entries;  // from here on they were never filled
        std::uint32_t names;
    };
    struct Entry {
        std::atomic<std::uint64_t> base, bytes;
        std::atomic<std::int32_t> name;
    };
    Region at(std::uint32_t number) const;
    int name_of(const device::IpcHandle& handle);

    Room room_;
    Used* used_;
    device::IpcHandle* names_;
    Entry* entries_;
};

}  // namespace gantry::rma
