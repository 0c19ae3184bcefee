// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pools.hpp"

namespace simgpu {
namespace {

constexpr std::size_t kSuballocationUnit = 512;
constexpr std::size_t kPopulateBytes = std::size_t{64} << 20;

// Also populates the pages: a first-touch fault would add to the first copy.
void poison(Driver& d, char* bytes, std::size_t count) {
    if (d.settings.poison && count <= kPopulateBytes) {
        memset(bytes, kPoison, count);
    }
}

}  // namespace

Made new_device_range(Driver& d, Device& device, Context* context, MemoryKind kind,
                      std::size_t bytes, std::size_t suballocation) {
    const std::size_t offset = suballocation * kSuballocationUnit;
    const std::size_t block_bytes = round_up(bytes + offset, granule_for(bytes + offset));
    if (device.used_bytes + block_bytes > d.settings.device_bytes) {
        return {nullptr, CUDA_ERROR_OUT_OF_MEMORY};
    }
    const Slice slice = d.arena.new_slice(device.window, block_bytes);
    const Address block = slice.fd < 0 ? 0 : d.arena.take_addresses(device.window, block_bytes);
    if (block == 0 || !d.arena.map(block, slice)) {
        return {nullptr, CUDA_ERROR_OUT_OF_MEMORY};
    }
    poison(d, d.arena.alias(block), block_bytes);
    device.used_bytes += block_bytes;
    Range range;
    range.base = block + offset;
    range.bytes = bytes;
    range.kind = kind;
    range.device = &device;
    range.context = context;
    range.block = block;
    range.block_bytes = block_bytes;
    range.slice = slice;
    return {d.memory.insert(range), CUDA_SUCCESS};
}

Made map_range(Driver& d, Device& device, MemoryKind kind, const Slice& slice, std::size_t bytes,
               std::size_t base_offset) {
    const Address block = d.arena.take_addresses(device.window, slice.bytes);
    if (block == 0 || !d.arena.map(block, slice)) {
        return {nullptr, CUDA_ERROR_MAP_FAILED};
    }
    Range range;
    range.base = block + base_offset;
    range.bytes = bytes;
    range.kind = kind;
    range.device = &device;
    range.block = block;
    range.block_bytes = slice.bytes;
    range.slice = slice;
    return {d.memory.insert(range), CUDA_SUCCESS};
}

Made new_host_range(Driver& d, Context& context, MemoryKind kind, std::size_t bytes,
                    unsigned flags) {
    const std::size_t mapped = round_up(bytes, kSmallGranule);
    void* place =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (mapped <= kPopulateBytes ? MAP_POPULATE : 0), -1, 0);
    if (place == MAP_FAILED) {
        return {nullptr, CUDA_ERROR_OUT_OF_MEMORY};
    }
    Range range;
    range.base = reinterpret_cast<Address>(place);
    range.bytes = bytes;
    range.kind = kind;
    range.device = context.device;
    range.context = &context;
    range.host_flags = flags;
    range.block = range.base;
    range.block_bytes = mapped;
    return {d.memory.insert(range), CUDA_SUCCESS};
}

void release_range(Driver& d, Range& range) {
    switch (range.kind) {
        case MemoryKind::device:
        case MemoryKind::pooled:
            if (d.on_free != nullptr) d.on_free(range.block, range.block_bytes);
            if (range.exported && d.settings.poison) {
                memset(d.arena.alias(range.block), kPoison, range.block_bytes);
                keep_poisoned(d, range.slice);
            } else {
                d.arena.drop_slice(range.slice, KeepPages::no);
            }
            d.arena.unmap(range.block, range.block_bytes);
            d.arena.give_addresses(range.device->window, range.block, range.block_bytes);
            range.device->used_bytes -= range.block_bytes;
            break;
        case MemoryKind::imported:
            d.arena.unmap(range.block, range.block_bytes);
            d.arena.give_addresses(range.device->window, range.block, range.block_bytes);
            break;
        case MemoryKind::mapped:
            d.arena.unmap(range.block, range.block_bytes);  // the addresses stay reserved
            break;
        case MemoryKind::pinned:
        case MemoryKind::managed:
            munmap(reinterpret_cast<void*>(range.block), range.block_bytes);
            break;
        case MemoryKind::registered: break;
    }
    if (range.pool != nullptr) {
        pool_lost(*range.pool, range.block_bytes);
    }
    d.memory.erase(range.base);
}

Place locate(Driver& d, Address address, std::size_t bytes) {
    Range* range = d.memory.find(address);
    if (range == nullptr) {
        if (address == 0 || d.arena.contains(address)) {
            return {CUDA_ERROR_INVALID_VALUE, nullptr, Residence::pageable, nullptr, false};
        }
        return {CUDA_SUCCESS, reinterpret_cast<char*>(address), Residence::pageable, nullptr,
                false};
    }
    if (!d.memory.covers(address, bytes)) {
        return {CUDA_ERROR_INVALID_VALUE, nullptr, Residence::pageable, nullptr, false};
    }
    if (range->on_device()) {
        return {CUDA_SUCCESS, d.arena.alias(address), Residence::device, range->device,
                range->sync_memops};
    }
    const Residence residence =
        range->kind == MemoryKind::managed ? Residence::managed : Residence::pinned;
    return {CUDA_SUCCESS, reinterpret_cast<char*>(address), residence, range->device,
            range->sync_memops};
}

Place locate_known(Driver& d, Address address, std::size_t bytes) {
    Place place = locate(d, address, bytes);
    if (place.residence == Residence::pageable) {
        place.result = CUDA_ERROR_INVALID_VALUE;
    }
    return place;
}

}  // namespace simgpu
