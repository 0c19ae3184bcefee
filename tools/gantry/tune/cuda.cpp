// SPDX-License-Identifier: BSD-3-Clause
#include "cuda.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace gantry::tool {

namespace {

// A kernel that does nothing, for any GPU since Volta.
constexpr const char* kNothing = R"(.version 6.0
.target sm_70
.address_size 64
.visible .entry gantry_nothing()
{
    ret;
}
)";

}  // namespace

Cuda::Cuda(const std::string& library) {
    const std::string file = library.empty() ? "libcuda.so.1" : library;
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr)
        throw TuneFailure(fmt::format("no CUDA driver ({}): nothing to measure", dlerror()));
#define GANTRY_TUNE_CALL(symbol)                                     \
    symbol = reinterpret_cast<PFN_##symbol>(dlsym(handle, #symbol)); \
    if (symbol == nullptr)                                           \
        throw TuneFailure(                                           \
            fmt::format("{} has no {}: not a CUDA driver, or too old", file, #symbol));
    GANTRY_TUNE_CALLS(GANTRY_TUNE_CALL)
#undef GANTRY_TUNE_CALL
    cuMemcpyBatchAsync =
        reinterpret_cast<PFN_cuMemcpyBatchAsync>(dlsym(handle, "cuMemcpyBatchAsync"));
    must(cuInit(0), "cuInit");
}

void Cuda::must(CUresult result, const char* call) const {
    if (result == CUDA_SUCCESS) return;
    const char* error = nullptr;
    cuGetErrorName(result, &error);
    throw TuneFailure(fmt::format("{}: {}", call, error != nullptr ? error : "unknown error"));
}

int Cuda::devices() const {
    int count = 0;
    must(cuDeviceGetCount(&count), "cuDeviceGetCount");
    return count;
}

std::string Cuda::name(int gpu) const {
    char text[256] = {};
    must(cuDeviceGetName(text, sizeof text - 1, gpu), "cuDeviceGetName");
    return text;
}

void Cuda::use(int gpu) {
    CUcontext context = nullptr;
    must(cuDevicePrimaryCtxRetain(&context, gpu), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

CUdeviceptr Cuda::allocate(std::size_t bytes) {
    CUdeviceptr memory = 0;
    must(cuMemAlloc_v2(&memory, bytes), "cuMemAlloc");
    return memory;
}

std::byte* Cuda::allocate_host(std::size_t bytes) {
    void* memory = nullptr;
    must(cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    return static_cast<std::byte*>(memory);
}

CUstream Cuda::stream() {
    CUstream stream = nullptr;
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return stream;
}

void Cuda::wait(CUstream stream) const {
    CUresult state;
    while ((state = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
    }
    must(state, "cuStreamQuery");
}

CUfunction Cuda::kernel() {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    if (cuModuleLoadData(&module, kNothing) != CUDA_SUCCESS ||
        cuModuleGetFunction(&function, module, "gantry_nothing") != CUDA_SUCCESS)
        return nullptr;
    return function;
}

double typical_of(int samples, const std::function<double()>& sample) {
    std::vector<double> all;
    for (int i = 0; i < samples; ++i)
        all.push_back(sample());
    std::nth_element(all.begin(), all.begin() + samples / 4, all.end());
    return all[static_cast<std::size_t>(samples / 4)];
}

double time_of(int samples, const std::function<void()>& action) {
    return typical_of(samples, [&action] {
        const double begin = now_ns();
        action();
        return now_ns() - begin;
    });
}

}  // namespace gantry::tool
