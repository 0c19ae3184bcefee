// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/imports.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::device::cuda {

namespace {

constexpr std::size_t kMostWaiting = 64;  // descriptors that nobody has used yet
constexpr std::size_t kMostPools = 16;

void* as_argument(const Descriptor& descriptor) {
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.number()));
}

CUmemAccessDesc access_by(int gpu) {
    return {{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

}  // namespace

void Imports::look_into_inbox() {
    DescriptorLetter letter;
    DescriptorInbox::Letter arrived;
    while (inbox_.take(std::as_writable_bytes(std::span(&letter, 1)), arrived)) {
        if (arrived.bytes != sizeof letter) continue;
        // A put brings its pool's descriptor again: it may not know that the pool is here.
        if (letter.kind == IpcKind::pool && has_pool(letter.origin, letter.key)) continue;
        std::erase_if(waiting_, [&](const Waiting& each) {
            return each.letter.origin == letter.origin && each.letter.kind == letter.kind &&
                   each.letter.key == letter.key;
        });
        if (waiting_.size() >= kMostWaiting) waiting_.erase(waiting_.begin());
        waiting_.push_back({letter, std::move(arrived.descriptor)});
    }
}

Imports::Waiting* Imports::waiting(const IpcHandle& handle) {
    for (Waiting& each : waiting_)
        if (each.letter.origin == handle.origin && each.letter.kind == handle.kind &&
            each.letter.key == descriptor_key(handle))
            return &each;
    return nullptr;
}

void Imports::drop(const Waiting* waiting) {
    waiting_.erase(waiting_.begin() + (waiting - waiting_.data()));
}

bool Imports::has_pool(std::uint64_t origin, std::uint64_t id) const {
    return std::any_of(pools_.begin(), pools_.end(),
                       [&](const Pool& pool) { return pool.origin == origin && pool.id == id; });
}

Imports::Pool* Imports::pool_of(const IpcHandle& handle) {
    for (Pool& pool : pools_)
        if (pool.origin == handle.origin && pool.id == handle.pool) return &pool;
    return nullptr;
}

Imports::Ready Imports::ready(const IpcHandle& handle) {
    if (handle.kind == IpcKind::legacy) return Ready::yes;
    if (handle.kind == IpcKind::none) return Ready::never;
    if (handle.kind == IpcKind::pool && pool_of(handle) != nullptr) return Ready::yes;
    Waiting* found = waiting(handle);
    if (found == nullptr) {
        look_into_inbox();
        found = waiting(handle);
    }
    if (found == nullptr) return Ready::not_yet;
    return found->letter.refused ? Ready::never : Ready::yes;
}

Imports::Mapped Imports::map(const IpcHandle& handle, int gpu) {
    switch (handle.kind) {
        case IpcKind::legacy: return map_legacy(handle);
        case IpcKind::vmm: return map_virtual(handle, gpu);
        case IpcKind::pool: return map_pooled(handle, gpu);
        case IpcKind::none: break;
    }
    return {CUDA_ERROR_NOT_SUPPORTED, "opening memory that cannot be shared", 0};
}

Imports::Mapped Imports::map_legacy(const IpcHandle& handle) {
    CUipcMemHandle name;
    static_assert(sizeof name == sizeof handle.bytes);
    std::memcpy(&name, handle.bytes.data(), sizeof name);
    Mapped mapped{CUDA_SUCCESS, "cuIpcOpenMemHandle", 0};
    mapped.result = driver_.call(driver_.cu.cuIpcOpenMemHandle_v2, &mapped.address, name,
                                 static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return mapped;
}

Imports::Mapped Imports::map_virtual(const IpcHandle& handle, int gpu) {
    if (ready(handle) != Ready::yes)
        return {CUDA_ERROR_INVALID_HANDLE, "waiting for the file descriptor", 0};
    Waiting* found = waiting(handle);
    CUmemGenericAllocationHandle memory = 0;
    Mapped mapped{CUDA_SUCCESS, "cuMemImportFromShareableHandle", 0};
    mapped.result =
        driver_.call(driver_.cu.cuMemImportFromShareableHandle, &memory,
                     as_argument(found->descriptor), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    drop(found);
    if (mapped.result != CUDA_SUCCESS) return mapped;
    mapped.call = "cuMemAddressReserve";
    mapped.result = driver_.call(driver_.cu.cuMemAddressReserve, &mapped.address, handle.size,
                                 std::size_t{0}, CUdeviceptr{0}, 0ull);
    if (mapped.result == CUDA_SUCCESS) {
        mapped.call = "cuMemMap";
        mapped.result = driver_.call(driver_.cu.cuMemMap, mapped.address, handle.size,
                                     std::size_t{0}, memory, 0ull);
        if (mapped.result != CUDA_SUCCESS)
            driver_.call(driver_.cu.cuMemAddressFree, mapped.address, handle.size);
    }
    driver_.call(driver_.cu.cuMemRelease, memory);  // the mapping holds it
    if (mapped.result != CUDA_SUCCESS) return mapped;
    mapped.call = "cuMemSetAccess";
    const CUmemAccessDesc access = access_by(gpu);
    mapped.result = driver_.call(driver_.cu.cuMemSetAccess, mapped.address, handle.size, &access,
                                 std::size_t{1});
    if (mapped.result != CUDA_SUCCESS) unmap_virtual(handle, mapped.address);
    return mapped;
}

void Imports::unmap_virtual(const IpcHandle& handle, CUdeviceptr address) {
    driver_.call(driver_.cu.cuMemUnmap, address, handle.size);
    driver_.call(driver_.cu.cuMemAddressFree, address, handle.size);
}

Imports::Mapped Imports::import_pool(const IpcHandle& handle, Pool** pool) {
    *pool = pool_of(handle);
    if (*pool != nullptr) return {};
    if (ready(handle) != Ready::yes)
        return {CUDA_ERROR_INVALID_HANDLE, "waiting for the file descriptor", 0};
    Waiting* found = waiting(handle);
    Pool fresh{handle.origin, handle.pool, nullptr, 0, {}};
    const CUresult result = driver_.call(driver_.cu.cuMemPoolImportFromShareableHandle, &fresh.pool,
                                         as_argument(found->descriptor),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull);
    drop(found);
    if (result != CUDA_SUCCESS) return {result, "cuMemPoolImportFromShareableHandle", 0};
    if (pools_.size() >= kMostPools) destroy_idle_pool();
    pools_.push_back(std::move(fresh));
    *pool = &pools_.back();
    return {};
}

Imports::Mapped Imports::map_pooled(const IpcHandle& handle, int gpu) {
    look_into_inbox();  // nobody else may, once the pool is here, and it is small
    Pool* pool = nullptr;
    Mapped mapped = import_pool(handle, &pool);
    if (mapped.result != CUDA_SUCCESS) return mapped;
    if (std::find(pool->gpus.begin(), pool->gpus.end(), gpu) == pool->gpus.end()) {
        const CUmemAccessDesc access = access_by(gpu);
        mapped.call = "cuMemPoolSetAccess";
        mapped.result =
            driver_.call(driver_.cu.cuMemPoolSetAccess, pool->pool, &access, std::size_t{1});
        if (mapped.result != CUDA_SUCCESS) return mapped;
        pool->gpus.push_back(gpu);
    }
    CUmemPoolPtrExportData name;
    std::memcpy(&name, handle.bytes.data(), sizeof name);
    mapped.call = "cuMemPoolImportPointer";
    mapped.result =
        driver_.call(driver_.cu.cuMemPoolImportPointer, &mapped.address, pool->pool, &name);
    if (mapped.result == CUDA_SUCCESS) {
        ++pool->mappings;
        had_pool_ = true;
    } else if (pool->mappings == 0) {
        // Its owner may have made another pool where this one was: the next allocation asks again.
        driver_.call(driver_.cu.cuMemPoolDestroy, pool->pool);
        pools_.erase(pools_.begin() + (pool - pools_.data()));
    }
    return mapped;
}

void Imports::unmap(const IpcHandle& handle, CUdeviceptr address) {
    switch (handle.kind) {
        case IpcKind::legacy: driver_.call(driver_.cu.cuIpcCloseMemHandle, address); return;
        case IpcKind::vmm: unmap_virtual(handle, address); return;
        case IpcKind::pool:
            driver_.call(driver_.cu.cuMemFree_v2, address);
            if (Pool* pool = pool_of(handle)) --pool->mappings;
            return;
        case IpcKind::none: return;
    }
}

void Imports::context_lost(const IpcHandle& handle, CUdeviceptr address) {
    // What pools gave is freed by the call that frees everything of theirs: the pool's end.
    if (handle.kind == IpcKind::vmm) unmap_virtual(handle, address);
    if (handle.kind != IpcKind::pool) return;
    if (Pool* pool = pool_of(handle)) --pool->mappings;
}

void Imports::destroy_idle_pool() {
    const auto idle = std::find_if(pools_.begin(), pools_.end(),
                                   [](const Pool& pool) { return pool.mappings == 0; });
    if (idle == pools_.end()) return;
    driver_.call(driver_.cu.cuMemPoolDestroy, idle->pool);
    pools_.erase(idle);
}

// The allocation is gone; a pool may have more.
void Imports::forget(std::uint64_t buffer_id) {
    look_into_inbox();  // a descriptor that was sent before its memory was freed is here by now
    std::erase_if(waiting_, [buffer_id](const Waiting& each) {
        return each.letter.kind == IpcKind::vmm && each.letter.key == buffer_id;
    });
}

void Imports::clear() {
    for (const Pool& pool : pools_)
        driver_.call(driver_.cu.cuMemPoolDestroy, pool.pool);
    pools_.clear();
    waiting_.clear();
}

}  // namespace gantry::device::cuda
