// SPDX-License-Identifier: BSD-3-Clause
//
// Attachments: what one rank has attached to a dynamic window, written where the ranks of its node see it.
// Its owner alone writes. Others look at a region while others come and go; MPI forbids them to look at one
// that does.
//
//   | used | entry 0: base, bytes, memory | entry 1 | ... | names of device memory |
//
// An entry of no bytes is free. Its bytes are written last when it is filled, and first when it is freed.
// What finds no place here is reached by message.
#pragma once

#include "device/device.hpp"

#include <atomic>
#include <array>
#include <cstdint>

namespace gantry::rma {

class Attachments {
  public:
    static constexpr std::uint32_t kMost = 2048, kMostNames = 16;

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
    const device::IpcHandle& name(std::int32_t number) const {
        return names_[static_cast<std::size_t>(number)];
    }

  private:
    struct Entry {
        std::atomic<std::uint64_t> base{0}, bytes{0};
        std::atomic<std::int32_t> name{-1};
    };
    Region at(std::uint32_t number) const;
    int name_of(const device::IpcHandle& handle);

    std::atomic<std::uint32_t> used_{0};  // entries from here on were never filled
    std::uint32_t names_used_ = 0;
    std::array<Entry, kMost> entries_{};
    std::array<device::IpcHandle, kMostNames> names_{};
};

}  // namespace gantry::rma
