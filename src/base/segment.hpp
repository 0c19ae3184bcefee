// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that processes of one node share. A segment is a memfd, or an unlinked file in /dev/shm
// where memfds are not allowed: nothing is ever left behind, however a process dies. Others reach
// it through /proc/<process>/fd, as long as its maker lives; who has mapped it keeps it. It is
// sparse: pages must be reserved before they are touched, so that a full node is an error and not
// SIGBUS.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gantry {

// A mapping that unmaps itself, but not in a forked child, which has no part in the job.
class SegmentMapping {
  public:
    SegmentMapping() = default;
    SegmentMapping(void* address, Bytes bytes);
    SegmentMapping(SegmentMapping&& other) noexcept;
    SegmentMapping& operator=(SegmentMapping&& other) noexcept;
    ~SegmentMapping();
    std::byte* address() const { return static_cast<std::byte*>(address_); }
    Bytes bytes() const { return bytes_; }
    explicit operator bool() const { return address_ != nullptr; }

  private:
    void* address_ = nullptr;
    Bytes bytes_ = 0;
    pid_t owner_process_ = 0;
};

// How another process finds a segment. The inode tells whether it still is the same one.
struct SegmentName {
    std::int32_t process = 0;
    std::int32_t descriptor = -1;
    std::uint64_t inode = 0;
};

enum class Backing { memory_file, shared_folder };

class Segment {
  public:
    Segment() = default;
    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&& other) noexcept;
    ~Segment();

    // `what` names it in errors. With `memory_file` the shared folder is the fallback.
    static Result<Segment> create(const char* what, Bytes bytes,
                                  Backing backing = Backing::memory_file);
    // Opens what another process (or this one) has made; `bytes` is its size.
    static Result<Segment> open(const char* what, const SegmentName& name);

    explicit operator bool() const { return descriptor_ >= 0; }
    Bytes bytes() const { return bytes_; }
    SegmentName name() const;
    Status reserve(Bytes offset, Bytes bytes) const;
    // At a multiple of `alignment`, a power of two.
    Result<SegmentMapping> map(Bytes offset, Bytes bytes, Bytes alignment = 1) const;
    // The same bytes twice in a row, so that what runs over the end of a ring is contiguous.
    Result<SegmentMapping> map_twice(Bytes offset, Bytes bytes) const;

  private:
    Segment(const char* what, int descriptor, Bytes bytes, std::uint64_t inode);
    const char* what_ = "";
    int descriptor_ = -1;
    pid_t owner_process_ = 0;
    Bytes bytes_ = 0;
    std::uint64_t inode_ = 0;
};

// Whether the segment's maker still lives. One system call for a living process.
bool maker_is_alive(const SegmentName& name, std::uint64_t start_time);
// When this process started (clock ticks since boot): tells it from a later one with the same id.
std::uint64_t own_start_time();

Bytes page_bytes();

}  // namespace gantry
