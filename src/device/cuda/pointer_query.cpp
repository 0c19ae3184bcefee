// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/pointer_query.hpp"

#include "device/cuda/context.hpp"

#include <fmt/format.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace gantry::device::cuda {

namespace {

// Order matters: the first kOldest are known to every driver we accept, newer ones follow.
enum Index {
    kType,
    kManaged,
    kOrdinal,
    kBufferId,
    kContext,
    kStart,
    kSize,
    kLegacyIpc,
    kMappingStart,
    kMappingSize,
    kHandleTypes,
    kPool,
    kCount
};
constexpr int kOldest = kLegacyIpc + 1;

// How other processes could map device memory outside of pools. What has no handle type for file
// descriptors cannot travel.
IpcKind ipc_kind(bool legacy, std::uint64_t handle_types, bool mapping) {
    if (legacy) return IpcKind::legacy;
    const bool travels = (handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
    return travels && mapping ? IpcKind::vmm : IpcKind::none;
}

}  // namespace

// The handle types of memory say nothing about its pool (an H200's driver answers 0), so a pool is
// tried once. The default pool has no descriptor.
bool DriverQuery::pool_travels(std::uint64_t pool) {
    const auto known = pools_.find(pool);
    if (known != pools_.end()) return known->second;
    int descriptor = -1;
    const Relaxed relaxed(driver_);
    const CUresult result = driver_.call(
        driver_.cu.cuMemPoolExportToShareableHandle, static_cast<void*>(&descriptor),
        reinterpret_cast<CUmemoryPool>(pool), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull);
    if (result == CUDA_SUCCESS) close(descriptor);
    return pools_[pool] = result == CUDA_SUCCESS;
}

Result<Allocation> DriverQuery::describe(std::uintptr_t address) {
    CUpointer_attribute attributes[kCount] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_BUFFER_ID,
        CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
        CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
    };
    // The driver writes 1 to 8 bytes per attribute; zeroed words make every width read the same.
    std::uint64_t values[kCount] = {};
    void* targets[kCount];
    for (int i = 0; i < kCount; ++i)
        targets[i] = &values[i];
    const int count = attributes_ != 0 ? attributes_ : static_cast<int>(kCount);
    CUresult result = driver_.call(driver_.cu.cuPointerGetAttributes, static_cast<unsigned>(count),
                                   attributes, targets, static_cast<CUdeviceptr>(address));
    if (result == CUDA_ERROR_INVALID_VALUE && attributes_ == 0) {
        attributes_ = kOldest;
        return describe(address);
    }
    if (is_lost(result)) return Allocation{};  // No driver, no device memory.
    if (result != CUDA_SUCCESS)
        return driver_.failed("cuPointerGetAttributes", result,
                              fmt::format("of address {:#x}", address));
    if (attributes_ == 0) attributes_ = kCount;

    Allocation answer;
    Location& location = answer.location;
    const auto type = static_cast<CUmemorytype>(values[kType] & 0xffffffff);
    if ((values[kManaged] & 0xff) != 0)
        location.kind = MemoryKind::managed;
    else if (type == CU_MEMORYTYPE_DEVICE)
        location.kind = MemoryKind::device;
    else if (type == CU_MEMORYTYPE_HOST)
        location.kind = MemoryKind::pinned;
    else
        return answer;
    if (location.kind != MemoryKind::pinned)
        location.gpu = static_cast<int>(static_cast<std::uint32_t>(values[kOrdinal]));
    location.buffer_id = values[kBufferId];
    location.base = values[kStart];
    location.size = values[kSize];
    // A reservation of virtual memory may hold several mappings with holes between; a buffer id
    // covers one of them. (The mapping around small or pooled allocations is the block that they
    // were cut from: larger than the range, and no business of ours.)
    const std::uintptr_t mapping = values[kMappingStart];
    const Bytes mapped = values[kMappingSize];
    const bool mapping_known = address - mapping < mapped && mapping >= location.base &&
                               mapping + mapped <= location.base + location.size;
    if (mapping_known) {
        location.base = mapping;
        location.size = mapped;
    }
    // Without a range only the byte asked about is sure; the page around it is the smallest unit of
    // any allocation.
    if (location.size == 0 || address - location.base >= location.size) {
        location.base = address & ~std::uintptr_t{4095};
        location.size = 4096;
    }
    location.pool = values[kPool];
    if (location.kind == MemoryKind::device)
        location.ipc = location.pool == 0            ? ipc_kind((values[kLegacyIpc] & 0xff) != 0,
                                                                values[kHandleTypes], mapping_known)
                       : pool_travels(location.pool) ? IpcKind::pool
                                                     : IpcKind::none;
    answer.context = values[kContext];
    return answer;
}

std::uint64_t buffer_id_at(Driver& driver, std::uintptr_t address, std::uint64_t Calls::*group) {
    unsigned long long id = 0;
    const CUresult result =
        driver.call_for(group, driver.cu.cuPointerGetAttribute, static_cast<void*>(&id),
                        CU_POINTER_ATTRIBUTE_BUFFER_ID, static_cast<CUdeviceptr>(address));
    return result == CUDA_SUCCESS ? id : 0;
}

std::uint64_t DriverQuery::buffer_id(std::uintptr_t address) {
    return buffer_id_at(driver_, address, &Calls::queries);
}

// The kernel looks at the signals before it looks at what shall be done with them, which is nothing.
bool DriverQuery::is_readable(std::uintptr_t address) {
    constexpr long kNoSuchAction = -1;
    constexpr std::uintptr_t kSignals = 8;  // bytes
    const std::uintptr_t aligned = address / kSignals * kSignals;
    const int before = errno;
    const long result = syscall(SYS_rt_sigprocmask, kNoSuchAction, aligned, nullptr, kSignals);
    const bool readable = result == 0 || errno != EFAULT;
    errno = before;
    return readable;
}

bool DriverQuery::still_is(std::uintptr_t address, std::uint64_t id) {
    return buffer_id_at(driver_, address, &Calls::rechecks) == id;
}

// Makes the program's later "synchronous" copies and fills of this memory really finished when they
// return, and those that it made before finished now. Some kinds of memory refuse the first; then the
// rule of docs/user/getting-started.md holds: the program synchronises.
void DriverQuery::first_use(const Allocation& allocation, std::uintptr_t address) {
    if (allocation.location.kind != MemoryKind::device) return;
    ++first_uses_;
    unsigned int on = 1;
    {
        const Relaxed relaxed(driver_);
        driver_.call(driver_.cu.cuPointerSetAttribute, static_cast<const void*>(&on),
                     CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, static_cast<CUdeviceptr>(address));
    }
    finish_earlier_copies(reinterpret_cast<CUcontext>(allocation.context));
}

// A copy from pageable memory returns when the driver has a copy of the bytes, and those are on their
// way in the legacy default stream. While a stream that waits for the legacy one is captured, nobody may wait
// for that: asked, the driver says so without harm to the capture. Memory of pools has no context: the
// program's own is as good.
void DriverQuery::finish_earlier_copies(CUcontext context) {
    if (context == nullptr) driver_.call(driver_.cu.cuCtxGetCurrent, &context);
    if (context == nullptr) return;
    const Current current(driver_, context);
    if (!current.ok()) return;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult asked = driver_.call(driver_.cu.cuStreamIsCapturing, CU_STREAM_LEGACY, &status);
    if (asked != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE) return;
    driver_.call_for(&Calls::setups, driver_.cu.cuStreamSynchronize, CU_STREAM_LEGACY);
}

}  // namespace gantry::device::cuda
