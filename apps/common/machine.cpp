// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include "mistake.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace gantry::apps {
namespace {

constexpr std::size_t kPage = 4096;
constexpr unsigned kThreads = 256;
constexpr Whole kMostBlocks = 1 << 20;

CUdeviceptr address(const void* device) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(device));
}

void* host_memory(std::size_t bytes) {
    const std::size_t whole = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
    void* memory = std::aligned_alloc(kPage, whole);
    if (memory == nullptr)
        throw Failure("no host memory for " + std::to_string(bytes) + " bytes: use a smaller grid");
    return memory;
}

void copy_rows(std::byte* to, const std::byte* from, const Rows& rows, bool packs) {
    for (std::size_t plane = 0; plane < rows.planes; ++plane)
        for (std::size_t row = 0; row < rows.rows; ++row) {
            const std::size_t packed = (plane * rows.rows + row) * rows.width;
            const std::size_t strided = (plane * rows.plane_rows + row) * rows.row_pitch;
            std::memcpy(to + (packs ? packed : strided), from + (packs ? strided : packed),
                        rows.width);
        }
}

CUDA_MEMCPY3D strided_copy(const Rows& rows) {
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = rows.width;
    copy.Height = rows.rows;
    copy.Depth = rows.planes;
    copy.srcPitch = copy.dstPitch = rows.width;
    copy.srcHeight = copy.dstHeight = rows.rows;
    return copy;
}

}  // namespace

Machine::Machine(Memory memory, int number, std::vector<const char*> images) : memory_(memory) {
    if (!on_device()) return;
    std::string why_not;
    if (!driver().present(&why_not))
        throw Failure("--memory device needs a GPU, and there is " + why_not +
                      ". Use --memory host, or the simulated GPU (LD_LIBRARY_PATH=.../simgpu)");
    driver().start(number);
    driver_call(cuStreamCreate, &edge_, CU_STREAM_NON_BLOCKING);
    driver_call(cuStreamCreate, &inside_, CU_STREAM_NON_BLOCKING);
    driver_call(cuEventCreate, &edge_event_, CU_EVENT_DISABLE_TIMING);
    driver_call(cuEventCreate, &inside_event_, CU_EVENT_DISABLE_TIMING);
    for (const char* image : images) {
        CUmodule module = nullptr;
        driver_call(cuModuleLoadData, &module, image);
        modules_.push_back(module);
    }
}

Machine::~Machine() {
    if (!on_device()) return;
    for (CUmodule module : modules_)
        driver().cuModuleUnload(module);
    for (CUevent event : {edge_event_, inside_event_})
        driver().cuEventDestroy_v2(event);
    for (CUstream stream : {edge_, inside_})
        driver().cuStreamDestroy_v2(stream);
}

std::string Machine::name() const {
    return on_device() ? driver().device_name() : "the host";
}

void* Machine::allocate(std::size_t bytes) {
    if (!on_device()) return host_memory(bytes);
    CUdeviceptr memory = 0;
    driver().check(driver().cuMemAlloc_v2(&memory, std::max<std::size_t>(bytes, 1)), "cuMemAlloc",
                   bytes);
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(memory));
}

void Machine::release(void* fields) {
    if (on_device())
        driver().cuMemFree_v2(address(fields));
    else
        std::free(fields);
}

void* Machine::allocate_host(std::size_t bytes) {
    if (!on_device()) return host_memory(bytes);
    void* memory = nullptr;
    driver().check(driver().cuMemHostAlloc(&memory, std::max<std::size_t>(bytes, 1), 0),
                   "cuMemHostAlloc", bytes);
    return memory;
}

void Machine::release_host(void* memory) {
    if (on_device())
        driver().cuMemFreeHost(memory);
    else
        std::free(memory);
}

// Not cuMemcpyHtoD: from pageable memory it may return before the device has the bytes, and our streams
// do not wait for the legacy one.
void Machine::upload(void* to, const void* from, std::size_t bytes) {
    start_upload(to, from, bytes);
    wait(Stream::edge);
}

void Machine::download(void* to, const void* from, std::size_t bytes) {
    start_download(to, from, bytes);
    wait(Stream::edge);
}

void Machine::start_upload(void* to, const void* from, std::size_t bytes) {
    if (on_device())
        driver().check(driver().cuMemcpyHtoDAsync_v2(address(to), from, bytes, edge_),
                       "cuMemcpyHtoDAsync", bytes);
    else
        std::memcpy(to, from, bytes);
}

void Machine::start_download(void* to, const void* from, std::size_t bytes) {
    if (on_device())
        driver().check(driver().cuMemcpyDtoHAsync_v2(to, address(from), bytes, edge_),
                       "cuMemcpyDtoHAsync", bytes);
    else
        std::memcpy(to, from, bytes);
}

void Machine::start_strided_upload(void* to, const void* packed, const Rows& rows) {
    if (!on_device()) {
        copy_rows(static_cast<std::byte*>(to), static_cast<const std::byte*>(packed), rows, false);
        return;
    }
    CUDA_MEMCPY3D copy = strided_copy(rows);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = packed;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = address(to);
    copy.dstPitch = rows.row_pitch;
    copy.dstHeight = rows.plane_rows;
    driver_call(cuMemcpy3DAsync_v2, &copy, edge_);
}

void Machine::start_strided_download(void* packed, const void* from, const Rows& rows) {
    if (!on_device()) {
        copy_rows(static_cast<std::byte*>(packed), static_cast<const std::byte*>(from), rows, true);
        return;
    }
    CUDA_MEMCPY3D copy = strided_copy(rows);
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = address(from);
    copy.srcPitch = rows.row_pitch;
    copy.srcHeight = rows.plane_rows;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = packed;
    driver_call(cuMemcpy3DAsync_v2, &copy, edge_);
}

CUfunction Machine::function(const Kernel& kernel) {
    CUfunction& found = functions_[&kernel];
    for (std::size_t m = 0; found == nullptr && m < modules_.size(); ++m)
        if (driver().cuModuleGetFunction(&found, modules_[m], kernel.name) != CUDA_SUCCESS)
            found = nullptr;
    if (found == nullptr) throw Failure(std::string("no module has the kernel ") + kernel.name);
    return found;
}

void Machine::launch(Stream stream, const Kernel& kernel, const void* work, Whole items) {
    if (items == 0) return;
    if (!on_device()) {
        kernel.on_host(work);
        return;
    }
    const Whole blocks = std::min<Whole>((items + kThreads - 1) / kThreads, kMostBlocks);
    void* parameters[] = {const_cast<void*>(work)};
    driver().check(driver().cuLaunchKernel(function(kernel), static_cast<unsigned>(blocks), 1, 1,
                                           kThreads, 1, 1, 0, of(stream), parameters, nullptr),
                   kernel.name);
}

void Machine::wait(Stream stream) {
    if (on_device()) driver_call(cuStreamSynchronize, of(stream));
}

void Machine::join() {
    if (!on_device()) return;
    driver_call(cuEventRecord, edge_event_, edge_);
    driver_call(cuEventRecord, inside_event_, inside_);
    driver_call(cuStreamWaitEvent, inside_, edge_event_, 0);
    driver_call(cuStreamWaitEvent, edge_, inside_event_, 0);
}

Machine::Mark::Mark(Machine& machine) : stream_(machine.edge_) {
    if (machine.on_device()) driver_call(cuEventCreate, &event_, CU_EVENT_DISABLE_TIMING);
}
Machine::Mark::~Mark() {
    if (event_ != nullptr) driver().cuEventDestroy_v2(event_);
}
void Machine::Mark::record() {
    if (event_ != nullptr) driver_call(cuEventRecord, event_, stream_);
}
bool Machine::Mark::done() const {
    if (event_ == nullptr) return true;
    const CUresult result = driver().cuEventQuery(event_);
    if (result != CUDA_ERROR_NOT_READY) driver().check(result, "cuEventQuery");
    return result == CUDA_SUCCESS;
}

}  // namespace gantry::apps
