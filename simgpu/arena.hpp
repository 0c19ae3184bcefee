// SPDX-License-Identifier: BSD-3-Clause
// Device memory that the host cannot touch.
//
//   device arena:  [ dev 0 window | dev 1 window | ... ]   PROT_NONE for ever: device addresses
//   alias arena:   [ dev 0 window | dev 1 window | ... ]   slices of a memfd, while allocated
//                  alias = device address + delta()
//
// A host load or store of a device address faults at once; copies, fills and kernels go through the
// alias. File offsets are never used twice, so somebody who still maps a freed slice (a stale IPC
// mapping) sees poison and never the next owner's data. Addresses, on the contrary, are reused at
// once, last freed first, to expose stale caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simgpu {

using Address = std::uintptr_t;

inline constexpr std::size_t kSmallGranule = 4096;
inline constexpr std::size_t kLargeGranule = std::size_t{2} << 20;
inline constexpr std::size_t kMostWindowBytes = std::size_t{64} << 30;
inline constexpr std::size_t kLeastWindowBytes = std::size_t{1} << 30;
inline constexpr unsigned char kPoison = 0xDB;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}
constexpr std::size_t granule_for(std::size_t bytes) {
    return bytes >= kLargeGranule ? kLargeGranule : kSmallGranule;
}

// A part of a memfd: what an allocation's pages are.
struct Slice {
    int fd = -1;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
};

enum class KeepPages { no, poisoned };

class Arena {
  public:
    // False when address space or a memfd cannot be had.
    bool open(int windows);

    std::ptrdiff_t delta() const { return delta_; }
    bool contains(Address address) const { return address - base_ < size_; }
    int window_of(Address address) const {
        return static_cast<int>((address - base_) / window_bytes_);
    }

    // Addresses only: 0 when the window is full. `bytes` is a multiple of the granule; a guard
    // granule follows.
    Address take_addresses(int window, std::size_t bytes);
    void give_addresses(int window, Address address, std::size_t bytes);

    // Fresh pages of this process's memfd of that window; fd -1 when there are none.
    Slice new_slice(int window, std::size_t bytes);
    // Poisoned pages stay readable for importers; otherwise they go back to the system.
    void drop_slice(const Slice& slice, KeepPages keep);

    bool map(Address address, const Slice& slice);
    void unmap(Address address, std::size_t bytes);

    char* alias(Address address) const { return reinterpret_cast<char*>(address + delta_); }

  private:
    struct Hole {
        Address address;
        std::size_t bytes;
    };
    struct Window {
        Address bump = 0;
        Address end = 0;
        std::vector<Hole> holes;  // the last freed is the last element
        int fd = -1;
        std::uint64_t file_end = 0;
    };
    Address take_hole(Window& window, std::size_t bytes);

    Address base_ = 0;
    std::size_t size_ = 0;
    std::ptrdiff_t delta_ = 0;
    std::vector<Window> windows_;
    std::size_t window_bytes_ = kMostWindowBytes;
};

}  // namespace simgpu
