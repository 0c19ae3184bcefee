// SPDX-License-Identifier: BSD-3-Clause
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace simgpu {
namespace {

constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// The kernel chooses the place: ThreadSanitizer accepts no fixed address of ours.
Address reserve(std::size_t bytes) {
    void* place = mmap(nullptr, bytes + kLargeGranule, PROT_NONE, kReserve, -1, 0);
    if (place == MAP_FAILED) {
        return 0;
    }
    // A forked child has no device; its copy of the address space must not keep pages alive.
    madvise(place, bytes + kLargeGranule, MADV_DONTFORK);
    return round_up(reinterpret_cast<Address>(place), kLargeGranule);
}

}  // namespace

bool Arena::open(int windows) {
    Address alias_base = 0;
    // Under valgrind there are no more than 128 GB of addresses.
    for (; window_bytes_ >= kLeastWindowBytes; window_bytes_ /= 4) {
        size_ = static_cast<std::size_t>(windows) * window_bytes_;
        base_ = reserve(size_);
        alias_base = base_ != 0 ? reserve(size_) : 0;
        if (alias_base != 0) {
            break;
        }
        if (base_ != 0) {
            munmap(reinterpret_cast<void*>(base_), size_);
        }
    }
    if (base_ == 0 || alias_base == 0) {
        return false;
    }
    delta_ = static_cast<std::ptrdiff_t>(alias_base - base_);
    for (int index = 0; index < windows; ++index) {
        Window window;
        window.bump = base_ + static_cast<std::size_t>(index) * window_bytes_;
        window.end = window.bump + window_bytes_;
        window.fd = memfd_create("simgpu-memory", MFD_CLOEXEC);
        if (window.fd < 0) {
            return false;
        }
        windows_.push_back(std::move(window));
    }
    return true;
}

Address Arena::take_hole(Window& window, std::size_t bytes) {
    // Exact size first, newest first: freed and allocated again gives the same address.
    for (std::size_t index = window.holes.size(); index-- > 0;) {
        if (window.holes[index].bytes == bytes) {
            const Address address = window.holes[index].address;
            window.holes.erase(window.holes.begin() + static_cast<std::ptrdiff_t>(index));
            return address;
        }
    }
    return 0;
}

Address Arena::take_addresses(int window_index, std::size_t bytes) {
    Window& window = windows_[static_cast<std::size_t>(window_index)];
    const std::size_t granule = granule_for(bytes);
    const std::size_t need = bytes + granule;
    if (const Address reused = take_hole(window, need); reused != 0) {
        return reused;
    }
    const Address start = round_up(window.bump, granule);
    if (start + need <= window.end) {
        window.bump = start + need;
        return start;
    }
    // The window is used up once: merge the holes and take the first that fits.
    std::sort(window.holes.begin(), window.holes.end(),
              [](const Hole& a, const Hole& b) { return a.address < b.address; });
    std::vector<Hole> merged;
    for (const Hole& hole : window.holes) {
        if (!merged.empty() && merged.back().address + merged.back().bytes == hole.address) {
            merged.back().bytes += hole.bytes;
        } else {
            merged.push_back(hole);
        }
    }
    window.holes = std::move(merged);
    for (Hole& hole : window.holes) {
        const Address aligned = round_up(hole.address, granule);
        const std::size_t lost = aligned - hole.address;
        if (hole.bytes < lost + need) {
            continue;
        }
        const Hole rest{aligned + need, hole.bytes - lost - need};
        hole.bytes = lost;
        window.holes.push_back(rest);
        std::erase_if(window.holes, [](const Hole& empty) { return empty.bytes == 0; });
        return aligned;
    }
    return 0;
}

void Arena::give_addresses(int window, Address address, std::size_t bytes) {
    windows_[static_cast<std::size_t>(window)].holes.push_back(
        {address, bytes + granule_for(bytes)});
}

Slice Arena::new_slice(int window_index, std::size_t bytes) {
    Window& window = windows_[static_cast<std::size_t>(window_index)];
    const std::uint64_t offset = round_up(window.file_end, granule_for(bytes));
    if (ftruncate(window.fd, static_cast<off_t>(offset + bytes)) != 0) {
        return {};
    }
    window.file_end = offset + bytes;
    return {window.fd, offset, bytes};
}

void Arena::drop_slice(const Slice& slice, KeepPages keep) {
    if (keep == KeepPages::no) {
        fallocate(slice.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(slice.offset), static_cast<off_t>(slice.bytes));
    }
}

bool Arena::map(Address address, const Slice& slice) {
    void* place = alias(address);
    if (mmap(place, slice.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, slice.fd,
             static_cast<off_t>(slice.offset)) == MAP_FAILED) {
        return false;
    }
    madvise(place, slice.bytes, MADV_DONTFORK);
    return true;
}

void Arena::unmap(Address address, std::size_t bytes) {
    mmap(alias(address), bytes, PROT_NONE, kReserve | MAP_FIXED, -1, 0);
    madvise(alias(address), bytes, MADV_DONTFORK);
}

}  // namespace simgpu
