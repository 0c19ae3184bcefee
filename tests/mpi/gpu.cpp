// SPDX-License-Identifier: BSD-3-Clause
#include "gpu.hpp"

#include "simgpu/simgpu.h"
#include "test.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

namespace mpi_tests {
namespace {

// One driver call that must succeed.
template <class... Args>
void must(const char* symbol, Args... args) {
    auto* function = gpu().get<CUresult(Args...)>(symbol);
    const CUresult result = function != nullptr ? function(args...) : CUDA_ERROR_NOT_FOUND;
    if (result != CUDA_SUCCESS) {
        fail(__FILE__, __LINE__,
             std::string(symbol) + " returned " + std::to_string(static_cast<int>(result)));
        std::abort();
    }
}

Gpu start() {
    Gpu gpu;
    gpu.library = dlopen("libcuda.so.1", RTLD_NOW);
    if (gpu.library == nullptr) skip("there is no CUDA driver (libcuda.so.1)");
    auto* init = gpu.get<CUresult(unsigned)>("cuInit");
    auto* count = gpu.get<CUresult(int*)>("cuDeviceGetCount");
    if (init(0) != CUDA_SUCCESS || count(&gpu.count) != CUDA_SUCCESS || gpu.count == 0)
        skip("there is no GPU");
    gpu.simulated = gpu.find("simgpu_calls") != nullptr;
    if (one_gpu_each()) gpu.count = size();  // one of them is seen
    return gpu;
}

// Of a rank that sees one GPU, its own, that is the first one.
int ordinal_of(int device) {
    return one_gpu_each() ? 0 : device;
}

CUdeviceptr address(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

CUmemAllocationProp vmm_properties(int device) {
    CUmemAllocationProp properties;
    std::memset(&properties, 0, sizeof properties);
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    return properties;
}

// One for each device that can travel by file descriptor, for the whole life of the process.
CUmemoryPool shared_pool(int device) {
    static std::map<int, CUmemoryPool> pools;
    CUmemoryPool& pool = pools[device];
    if (pool == nullptr) {
        CUmemPoolProps properties;
        std::memset(&properties, 0, sizeof properties);
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device;
        must<CUmemoryPool*, const CUmemPoolProps*>("cuMemPoolCreate", &pool, &properties);
    }
    return pool;
}

// Copies to and from it are the driver's.
bool on_device(Kind kind) {
    return kind == Kind::device || kind == Kind::pool || kind == Kind::vmm ||
           kind == Kind::shared_pool;
}

}  // namespace

void* Gpu::find(const char* symbol) const {
    return dlsym(library, symbol);
}

const Gpu& gpu() {
    static const Gpu the_gpu = start();
    return the_gpu;
}

const char* name(Kind kind) {
    constexpr const char* kNames[] = {"host",    "pinned", "registered", "device",
                                      "managed", "pool",   "vmm",        "shared pool"};
    return kNames[static_cast<int>(kind)];
}

std::vector<Kind> every_kind() {
    return {Kind::host,    Kind::pinned, Kind::registered, Kind::device,
            Kind::managed, Kind::pool,   Kind::vmm,        Kind::shared_pool};
}

void use_device(int ordinal) {
    gpu();
    CUcontext context = nullptr;
    must<CUcontext*, CUdevice>("cuDevicePrimaryCtxRetain", &context, ordinal_of(ordinal));
    must<CUcontext>("cuCtxSetCurrent", context);
}

Memory::Memory(Kind kind, std::size_t bytes, int device, void* where)
    : kind_(kind), bytes_(bytes), device_(ordinal_of(device)) {
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    if (kind != Kind::host) use_device(device);
    switch (kind) {
        case Kind::host:
            host_.reset(new std::byte[size]);
            data_ = host_.get();
            break;
        case Kind::registered:
            host_.reset(new std::byte[size]);
            data_ = host_.get();
            must<void*, size_t, unsigned>("cuMemHostRegister_v2", data_, size, 0u);
            break;
        case Kind::pinned: {
            void* pointer = nullptr;
            must<void**, size_t, unsigned>("cuMemHostAlloc", &pointer, size, 0u);
            data_ = static_cast<std::byte*>(pointer);
            break;
        }
        case Kind::device: {
            CUdeviceptr pointer = 0;
            must<CUdeviceptr*, size_t>("cuMemAlloc_v2", &pointer, size);
            data_ = reinterpret_cast<std::byte*>(pointer);
            break;
        }
        case Kind::managed: {
            CUdeviceptr pointer = 0;
            must<CUdeviceptr*, size_t, unsigned>("cuMemAllocManaged", &pointer, size, 1u);
            data_ = reinterpret_cast<std::byte*>(pointer);
            break;
        }
        case Kind::pool: {
            CUdeviceptr pointer = 0;
            must<CUdeviceptr*, size_t, CUstream>("cuMemAllocAsync", &pointer, size, nullptr);
            must<CUstream>("cuStreamSynchronize", nullptr);
            data_ = reinterpret_cast<std::byte*>(pointer);
            break;
        }
        case Kind::shared_pool: {
            CUdeviceptr pointer = 0;
            must<CUdeviceptr*, size_t, CUmemoryPool, CUstream>("cuMemAllocFromPoolAsync", &pointer,
                                                               size, shared_pool(device_), nullptr);
            must<CUstream>("cuStreamSynchronize", nullptr);
            data_ = reinterpret_cast<std::byte*>(pointer);
            break;
        }
        case Kind::vmm: {
            constexpr std::size_t kGranularity = 2u << 20;
            vmm_bytes_ = (size + kGranularity - 1) / kGranularity * kGranularity;
            const CUmemAllocationProp properties = vmm_properties(device_);
            CUdeviceptr pointer = 0;
            must<CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                 unsigned long long>("cuMemCreate", &vmm_handle_, vmm_bytes_, &properties, 0ull);
            must<CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long>(
                "cuMemAddressReserve", &pointer, vmm_bytes_, size_t{0}, address(where), 0ull);
            must<CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long>(
                "cuMemMap", pointer, vmm_bytes_, size_t{0}, vmm_handle_, 0ull);
            CUmemAccessDesc access;
            access.location = properties.location;
            access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            must<CUdeviceptr, size_t, const CUmemAccessDesc*, size_t>(
                "cuMemSetAccess", pointer, vmm_bytes_, &access, size_t{1});
            data_ = reinterpret_cast<std::byte*>(pointer);
            break;
        }
    }
}

void Memory::release() {
    if (data_ == nullptr) return;
    if (kind_ != Kind::host) use_device(device_);
    switch (kind_) {
        case Kind::host: break;
        case Kind::registered: must<void*>("cuMemHostUnregister", data_); break;
        case Kind::pinned: must<void*>("cuMemFreeHost", data_); break;
        case Kind::device:
        case Kind::managed: must<CUdeviceptr>("cuMemFree_v2", address(data_)); break;
        case Kind::pool:
        case Kind::shared_pool:
            must<CUdeviceptr, CUstream>("cuMemFreeAsync", address(data_), nullptr);
            must<CUstream>("cuStreamSynchronize", nullptr);
            break;
        case Kind::vmm:
            must<CUdeviceptr, size_t>("cuMemUnmap", address(data_), vmm_bytes_);
            must<CUdeviceptr, size_t>("cuMemAddressFree", address(data_), vmm_bytes_);
            must<CUmemGenericAllocationHandle>("cuMemRelease", vmm_handle_);
            break;
    }
    host_.reset();
    data_ = nullptr;
}

Memory::~Memory() {
    release();
}

void Memory::write(const void* from, std::size_t bytes, std::size_t offset) {
    if (bytes == 0) return;
    if (on_device(kind_)) {
        use_device(device_);
        must<CUdeviceptr, const void*, size_t>("cuMemcpyHtoD_v2", address(data_ + offset), from,
                                               bytes);
        must<CUstream>("cuStreamSynchronize", nullptr);
    } else {
        std::memcpy(data_ + offset, from, bytes);
    }
}

void Memory::read(void* to, std::size_t bytes, std::size_t offset) const {
    if (bytes == 0) return;
    if (on_device(kind_)) {
        use_device(device_);
        must<void*, CUdeviceptr, size_t>("cuMemcpyDtoH_v2", to, address(data_ + offset), bytes);
    } else {
        std::memcpy(to, data_ + offset, bytes);
    }
}

void Memory::fill(unsigned seed) {
    std::vector<std::byte> bytes(bytes_);
    fill_with_pattern(seed, bytes);
    write(bytes.data(), bytes_);
}

std::ptrdiff_t Memory::differs(unsigned seed, std::size_t bytes) const {
    std::vector<std::byte> got(bytes);
    read(got.data(), bytes);
    return differs_from_pattern(seed, got);
}

void only_on_the_simulator(const char* why) {
    if (!gpu().simulated) skip(why);
}

std::uint64_t sum_of_both(std::uint64_t mine) {
    std::uint64_t both = 0;
    OK(MPI_Allreduce(&mine, &both, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    return both;
}

std::uint64_t calls(const char* symbol) {
    return gpu().get<std::uint64_t(const char*)>("simgpu_calls")(symbol);
}
void reset_calls() {
    gpu().get<void()>("simgpu_reset_calls")();
}
void clear_operations() {
    gpu().get<void()>("simgpu_clear_operations")();
}

Calls calls() {
    const auto sum = [](std::initializer_list<const char*> symbols) {
        std::uint64_t total = 0;
        for (const char* symbol : symbols) {
            const std::uint64_t number = calls(symbol);
            if (number == UINT64_MAX)
                fail(__FILE__, __LINE__, std::string("the simulator has no ") + symbol);
            total += number;
        }
        return total;
    };
    Calls found;
    found.attribute = sum({"cuPointerGetAttribute"});
    found.attributes = sum({"cuPointerGetAttributes"});
    found.copies =
        sum({"cuMemcpy", "cuMemcpyAsync", "cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2",
             "cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2",
             "cuMemcpy2D_v2", "cuMemcpy2DAsync_v2", "cuMemcpyPeer", "cuMemcpyPeerAsync",
             "cuMemcpy3D_v2", "cuMemcpy3DAsync_v2", "cuMemcpyBatchAsync"});
    found.ends = sum({"cuEventRecord", "cuStreamWriteValue32_v2", "cuStreamWriteValue64_v2",
                      "cuStreamBatchMemOp_v2"});
    found.queries = sum({"cuEventQuery", "cuStreamQuery"});
    found.around = sum({"cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent_v2",
                        "cuCtxPopCurrent_v2", "cuCtxGetId", "cuThreadExchangeStreamCaptureMode"});
    found.launches = sum({"cuLaunchKernel"});
    found.synchronise = sum({"cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"});
    found.set_up = sum({"cuStreamCreate",
                        "cuStreamCreateWithPriority",
                        "cuStreamDestroy_v2",
                        "cuEventCreate",
                        "cuEventDestroy_v2",
                        "cuMemHostRegister_v2",
                        "cuMemHostUnregister",
                        "cuMemHostAlloc",
                        "cuMemFreeHost",
                        "cuMemAlloc_v2",
                        "cuMemFree_v2",
                        "cuMemAllocAsync",
                        "cuMemFreeAsync",
                        "cuMemAllocManaged",
                        "cuMemCreate",
                        "cuMemMap",
                        "cuMemUnmap",
                        "cuMemSetAccess",
                        "cuMemAddressReserve",
                        "cuIpcGetMemHandle",
                        "cuIpcOpenMemHandle_v2",
                        "cuIpcCloseMemHandle",
                        "cuIpcGetEventHandle",
                        "cuIpcOpenEventHandle",
                        "cuDevicePrimaryCtxRetain",
                        "cuDevicePrimaryCtxRelease_v2",
                        "cuCtxCreate_v2",
                        "cuCtxDestroy_v2",
                        "cuPointerSetAttribute"});
    found.all = calls("*");
    return found;
}

Operations operations() {
    auto* read = gpu().get<std::size_t(simgpu_operation*, std::size_t)>("simgpu_operations");
    std::vector<simgpu_operation> all(65536);  // as many as it keeps
    all.resize(read(all.data(), all.size()));
    Operations found;
    for (const simgpu_operation& each : all) {
        if (each.kind == SIMGPU_COPY) {
            ++found.copies;
            found.bytes += each.bytes;
        } else if (each.kind == SIMGPU_VALUE_WRITE) {
            ++found.flags;
        } else if (each.kind != SIMGPU_EVENT && each.kind != SIMGPU_MARKER) {
            ++found.others;
        }
    }
    return found;
}

Census census() {
    simgpu_census taken{};
    gpu().get<void(simgpu_census*)>("simgpu_take_census")(&taken);
    return {taken.device_ranges, taken.host_ranges, taken.imported_ranges, taken.streams,
            taken.events};
}

void inject(const char* fault) {
    gpu().get<int(const char*)>("simgpu_fault")(fault);
}

}  // namespace mpi_tests
