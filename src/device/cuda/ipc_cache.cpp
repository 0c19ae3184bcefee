// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/ipc_cache.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::device::cuda {

namespace {

constexpr std::size_t kMaxRefused = 64;

bool same(const IpcHandle& left, const IpcHandle& right) {
    return left.buffer_id == right.buffer_id && left.base == right.base && left.gpu == right.gpu &&
           left.bytes == right.bytes;
}

bool overlap(const IpcHandle& left, const IpcHandle& right) {
    return left.gpu == right.gpu && left.base < right.base + right.size &&
           right.base < left.base + left.size;
}

}  // namespace

IpcCache::Iterator IpcCache::lookup(const IpcHandle& handle, int gpu) {
    return std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& mapping) {
        return !mapping.doomed && mapping.gpu == gpu && same(mapping.handle, handle);
    });
}

Result<void*> IpcCache::open(const IpcHandle& handle, const Context& context) {
    Iterator hit = lookup(handle, context.gpu);
    if (hit != mappings_.end() && hit->context != context && !Current(driver_, hit->context).ok()) {
        drop(hit);  // The context that it was opened in is gone, and the mapping with it.
        hit = mappings_.end();
    }
    if (hit != mappings_.end()) {
        ++hit->users;
        mappings_.splice(mappings_.begin(), mappings_, hit);
        return reinterpret_cast<void*>(hit->address);
    }
    for (const IpcHandle& refused : refused_)
        if (same(refused, handle))
            return failure(MPI_ERR_OTHER,
                           "cuIpcOpenMemHandle of {} bytes of a peer: refused before", handle.size);
    GANTRY_TRY(make_room(handle.size));
    CUdeviceptr address = 0;
    CUresult result = map(handle, context, address);
    // An older mapping of memory that its owner has freed meanwhile can stand in the way.
    if (result == CUDA_ERROR_ALREADY_MAPPED && unmap_overlapping(handle))
        result = map(handle, context, address);
    if (result != CUDA_SUCCESS) {
        if (result != CUDA_ERROR_OUT_OF_MEMORY && !is_lost(result)) {
            refused_.push_front(handle);
            if (refused_.size() > kMaxRefused) refused_.pop_back();
        }
        return driver_.failed(
            "cuIpcOpenMemHandle", result,
            fmt::format("of {} bytes of a peer for GPU {}", handle.size, context.gpu));
    }
    mappings_.push_front(
        {handle, context.gpu, context, static_cast<std::uintptr_t>(address), 1, false});
    bytes_ += handle.size;
    return reinterpret_cast<void*>(address);
}

CUresult IpcCache::map(const IpcHandle& handle, const Context& context, CUdeviceptr& address) {
    const Current current(driver_, context);
    if (!current.ok()) return current.result();
    CUipcMemHandle name;
    static_assert(sizeof(name) == sizeof(handle.bytes));
    std::memcpy(&name, handle.bytes.data(), sizeof(name));
    return driver_.call(driver_.cu.cuIpcOpenMemHandle_v2, &address, name,
                        static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

Status IpcCache::make_room(Bytes bytes) {
    auto oldest = mappings_.end();
    while (mappings_.size() + 1 > max_entries_ || bytes_ + bytes > max_bytes_) {
        if (oldest == mappings_.begin())
            return failure(MPI_ERR_NO_MEM,
                           "mapping {} bytes of a peer: {} mappings of {} bytes are in use, and "
                           "GANTRY_IPC_CACHE_ENTRIES is {}, "
                           "GANTRY_IPC_CACHE_BYTES is {}",
                           bytes, mappings_.size(), bytes_, max_entries_, max_bytes_);
        --oldest;
        if (oldest->users == 0) oldest = unmap(oldest);
    }
    return success();
}

bool IpcCache::unmap_overlapping(const IpcHandle& handle) {
    bool any = false;
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end();) {
        if (mapping->users == 0 && overlap(mapping->handle, handle)) {
            mapping = unmap(mapping);
            any = true;
        } else {
            ++mapping;
        }
    }
    return any;
}

void IpcCache::close(const IpcHandle& handle, int gpu) {
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end(); ++mapping) {
        if (mapping->gpu != gpu || mapping->users == 0 || !same(mapping->handle, handle)) continue;
        if (--mapping->users == 0 && mapping->doomed) unmap(mapping);
        return;
    }
}

bool IpcCache::is_open(const IpcHandle& handle, int gpu) const {
    return std::any_of(mappings_.begin(), mappings_.end(), [&](const Mapping& mapping) {
        return !mapping.doomed && mapping.gpu == gpu && same(mapping.handle, handle);
    });
}

void IpcCache::forget(std::uint64_t buffer_id, const Uuid& gpu) {
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end();) {
        const bool meant = mapping->handle.buffer_id == buffer_id && mapping->handle.gpu == gpu;
        if (meant && mapping->users == 0) {
            mapping = unmap(mapping);
        } else {
            if (meant) mapping->doomed = true;
            ++mapping;
        }
    }
    refused_.remove_if([&](const IpcHandle& handle) {
        return handle.buffer_id == buffer_id && handle.gpu == gpu;
    });
}

const IpcCache::Mapping* IpcCache::find(const void* address) const {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    for (const Mapping& mapping : mappings_)
        if (value - mapping.address < mapping.handle.size) return &mapping;
    return nullptr;
}

IpcCache::Iterator IpcCache::unmap(Iterator mapping) {
    {
        const Current current(driver_, mapping->context);
        if (current.ok())
            driver_.call(driver_.cu.cuIpcCloseMemHandle,
                         static_cast<CUdeviceptr>(mapping->address));
    }
    return drop(mapping);
}

IpcCache::Iterator IpcCache::drop(Iterator mapping) {
    bytes_ -= mapping->handle.size;
    return mappings_.erase(mapping);
}

// The mappings went with their context.
void IpcCache::forget_context(CUcontext context) {
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end();)
        mapping = mapping->context.handle == context ? drop(mapping) : std::next(mapping);
}

void IpcCache::clear() {
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end();)
        mapping = unmap(mapping);
    refused_.clear();
}

}  // namespace gantry::device::cuda
