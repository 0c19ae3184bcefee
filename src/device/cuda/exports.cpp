// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/exports.hpp"

#include <unistd.h>

#include <chrono>
#include <cstring>

namespace gantry::device::cuda {

namespace {

constexpr std::size_t kMaxExports = 4096;  // remembered handles; beyond it they are made again

// The process and when this object was made: no two devices of a node have the same.
std::uint64_t new_origin(const void* self) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const auto place = reinterpret_cast<std::uintptr_t>(self);
    return static_cast<std::uint64_t>(getpid()) << 32 |
           static_cast<std::uint32_t>(static_cast<std::uint64_t>(now) ^ (place >> 4));
}

bool refused_for_good(CUresult result) {
    return !is_lost(result) && result != CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

int process_of(std::uint64_t origin) {
    return static_cast<int>(origin >> 32);
}

Exports::Exports(Driver& driver) : driver_(driver), origin_(new_origin(this)) {}

Result<IpcHandle> Exports::name(const Location& location, const Context& context, const Uuid& gpu,
                                bool* lost) {
    if (const auto known = handles_.find(location.buffer_id); known != handles_.end()) {
        if (known->second.kind != IpcKind::none) return known->second;
        return failure(MPI_ERR_OTHER, "exporting the allocation at {:#x}: refused before",
                       location.base);
    }
    IpcHandle handle;
    handle.kind = location.ipc;
    handle.buffer_id = location.buffer_id;
    handle.base = location.base;
    handle.size = location.size;
    handle.gpu = gpu;
    handle.origin = origin_;
    handle.pool = location.pool;
    const char* call = "cuCtxPushCurrent";
    const Current current(driver_, context);
    const CUresult result = current.ok() ? describe(location, handle, &call) : current.result();
    *lost = is_lost(result);
    if (result == CUDA_SUCCESS || refused_for_good(result)) {
        if (handles_.size() >= kMaxExports) handles_.clear();
        if (result != CUDA_SUCCESS) handle.kind = IpcKind::none;
        handles_[location.buffer_id] = handle;
    }
    if (result == CUDA_SUCCESS) return handle;
    return driver_.failed(
        call, result,
        fmt::format("of {} bytes at {:#x} on GPU {}", location.size, location.base, location.gpu));
}

CUresult Exports::describe(const Location& location, IpcHandle& handle, const char** call) {
    const auto address = static_cast<CUdeviceptr>(location.base);
    if (location.ipc == IpcKind::legacy) {
        *call = "cuIpcGetMemHandle";
        CUipcMemHandle name{};
        const CUresult result = driver_.call(driver_.cu.cuIpcGetMemHandle, &name, address);
        static_assert(sizeof name == sizeof handle.bytes);
        std::memcpy(handle.bytes.data(), &name, sizeof name);
        return result;
    }
    if (location.ipc == IpcKind::pool) {
        *call = "cuMemPoolExportPointer";
        CUmemPoolPtrExportData name{};
        const CUresult result = driver_.call(driver_.cu.cuMemPoolExportPointer, &name, address);
        static_assert(sizeof name == sizeof handle.bytes);
        std::memcpy(handle.bytes.data(), &name, sizeof name);
        return result;
    }
    return CUDA_SUCCESS;
}

CUresult Exports::make_descriptor(const IpcHandle& handle, int* descriptor, const char** call) {
    void* const out = descriptor;
    const Relaxed relaxed(driver_);
    if (handle.kind == IpcKind::pool) {
        *call = "cuMemPoolExportToShareableHandle";
        return driver_.call(driver_.cu.cuMemPoolExportToShareableHandle, out,
                            reinterpret_cast<CUmemoryPool>(handle.pool),
                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull);
    }
    *call = "cuMemRetainAllocationHandle";
    CUmemGenericAllocationHandle memory = 0;
    CUresult result = driver_.call(driver_.cu.cuMemRetainAllocationHandle, &memory,
                                   reinterpret_cast<void*>(handle.base));
    if (result != CUDA_SUCCESS) return result;
    *call = "cuMemExportToShareableHandle";
    result = driver_.call(driver_.cu.cuMemExportToShareableHandle, out, memory,
                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull);
    driver_.call(driver_.cu.cuMemRelease, memory);
    return result;
}

Status Exports::send_descriptor(const IpcHandle& handle, std::uint32_t inbox) {
    if (!is_own(handle) || handle.kind == IpcKind::legacy)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "memory of {} bytes at {:#x} does not travel by file descriptor",
                       handle.size, handle.base);
    int number = -1;
    const char* call = "";
    const CUresult result = make_descriptor(handle, &number, &call);
    const Descriptor descriptor(result == CUDA_SUCCESS ? number : -1);
    if (result != CUDA_SUCCESS && !refused_for_good(result))
        return driver_.failed(call, result, fmt::format("of {} bytes", handle.size));
    // A refusal is told, too: it is not asked for again.
    const DescriptorLetter letter{handle.origin, descriptor_key(handle), handle.kind,
                                  result != CUDA_SUCCESS};
    GANTRY_TRY(
        DescriptorInbox::send(inbox, std::as_bytes(std::span(&letter, 1)), descriptor.number()));
    if (result == CUDA_SUCCESS) return success();
    return driver_.failed(call, result,
                          fmt::format("of {} bytes at {:#x}", handle.size, handle.base));
}

bool Exports::is_own(const IpcHandle& handle) const {
    return handle.origin == origin_ && handles_.contains(handle.buffer_id);
}

}  // namespace gantry::device::cuda
