// SPDX-License-Identifier: BSD-3-Clause
// Kernels: what nvcc's start-up code registers, and their launches. A kernel is named by the address of
// its host function; its module is loaded into each device's primary context at its first launch there.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "image.hpp"
#include "runtime.hpp"

using simgpu::cudart::call;
using simgpu::cudart::Error;
using simgpu::cudart::remember;

namespace {

struct Size {
    unsigned x, y, z;
};

struct Image {
    std::string ptx;
    std::unordered_map<CUcontext, CUmodule> modules;
};
struct Kernel {
    Image* image = nullptr;
    std::string name;
    std::unordered_map<CUcontext, CUfunction> functions;
};
// Never destroyed: start-up code unregisters at exit, in any order.
struct Registered {
    std::mutex mutex;
    std::map<Image*, std::unique_ptr<Image>> images;
    std::unordered_map<const void*, Kernel> kernels;
};
Registered& registered() {
    static auto* all = new Registered;
    return *all;
}

CUresult function_in(Kernel& kernel, CUcontext context, CUfunction* function) {
    if (const auto found = kernel.functions.find(context); found != kernel.functions.end()) {
        *function = found->second;
        return CUDA_SUCCESS;
    }
    if (kernel.image->ptx.empty()) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    CUmodule& module = kernel.image->modules[context];
    if (module == nullptr) {
        const CUresult loaded = cuModuleLoadData(&module, kernel.image->ptx.c_str());
        if (loaded != CUDA_SUCCESS) {
            module = nullptr;
            return loaded;
        }
    }
    const CUresult found = cuModuleGetFunction(function, module, kernel.name.c_str());
    if (found == CUDA_SUCCESS) {
        kernel.functions[context] = *function;
    }
    return found;
}

Error with_function(const void* host_function, CUfunction* function) {
    CUcontext context = nullptr;
    const CUresult entered = simgpu::cudart::enter();
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    const CUresult asked = cuCtxGetCurrent(&context);
    if (asked != CUDA_SUCCESS) {
        return asked;
    }
    const std::lock_guard<std::mutex> guard(registered().mutex);
    const auto kernel = registered().kernels.find(host_function);
    if (kernel == registered().kernels.end()) {
        return simgpu::cudart::kInvalidDeviceFunction;
    }
    return function_in(kernel->second, context, function);
}

Error launch(const void* host_function, Size grid, Size block, void** arguments,
             std::size_t shared_bytes, CUstream stream) {
    CUfunction function = nullptr;
    Error result = with_function(host_function, &function);
    if (result == CUDA_SUCCESS) {
        result = cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                static_cast<unsigned>(shared_bytes), stream, arguments, nullptr);
    }
    return remember(result);
}

struct Configuration {
    Size grid, block;
    std::size_t shared_bytes;
    CUstream stream;
};
thread_local std::vector<Configuration>* configurations = nullptr;

struct LaunchConfig {
    Size grid, block;
    std::size_t shared_bytes;
    CUstream stream;
    void* attributes;
    unsigned attribute_count;
};

struct FunctionAttributes {
    std::size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
    int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
    int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed, reserved[16];
};

int attribute(CUfunction function, CUfunction_attribute which) {
    int value = 0;
    return cuFuncGetAttribute(&value, which, function) == CUDA_SUCCESS ? value : 0;
}

}  // namespace

CUDART_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
    auto image = std::make_unique<Image>();
    image->ptx = simgpu::cudart::ptx_of(wrapper);
    Image* handle = image.get();
    const std::lock_guard<std::mutex> guard(registered().mutex);
    registered().images.emplace(handle, std::move(image));
    return reinterpret_cast<void**>(handle);
}

CUDART_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

CUDART_EXPORT void __cudaUnregisterFatBinary(void** handle) {
    auto* image = reinterpret_cast<Image*>(handle);
    const std::lock_guard<std::mutex> guard(registered().mutex);
    std::erase_if(registered().kernels,
                  [image](const auto& each) { return each.second.image == image; });
    registered().images.erase(image);
}

CUDART_EXPORT void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                                          const char* name, int, void*, void*, void*, void*, int*) {
    const std::lock_guard<std::mutex> guard(registered().mutex);
    registered().kernels[host_function] = {reinterpret_cast<Image*>(handle), name, {}};
}

CUDART_EXPORT void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int,
                                     int) {}

CUDART_EXPORT char __cudaInitModule(void**) {
    return 1;
}

CUDART_EXPORT unsigned __cudaPushCallConfiguration(Size grid, Size block, std::size_t shared_bytes,
                                                   CUstream stream) {
    if (configurations == nullptr) {
        configurations = new std::vector<Configuration>;
    }
    configurations->push_back({grid, block, shared_bytes, stream});
    return 0;
}

CUDART_EXPORT Error __cudaPopCallConfiguration(Size* grid, Size* block, std::size_t* shared_bytes,
                                               CUstream* stream) {
    if (configurations == nullptr || configurations->empty()) {
        return remember(CUDA_ERROR_INVALID_VALUE);
    }
    const Configuration configuration = configurations->back();
    configurations->pop_back();
    *grid = configuration.grid;
    *block = configuration.block;
    *shared_bytes = configuration.shared_bytes;
    *stream = configuration.stream;
    return CUDA_SUCCESS;
}

// A kernel's handle is its name here, the host function.
CUDART_EXPORT Error __cudaGetKernel(const void** kernel, const void* host_function) {
    *kernel = host_function;
    return CUDA_SUCCESS;
}

CUDART_EXPORT Error cudaGetKernel(const void** kernel, const void* host_function) {
    return __cudaGetKernel(kernel, host_function);
}

CUDART_EXPORT Error __cudaLaunchKernel(const void* kernel, Size grid, Size block, void** arguments,
                                       std::size_t shared_bytes, CUstream stream) {
    return launch(kernel, grid, block, arguments, shared_bytes, stream);
}

CUDART_EXPORT Error cudaLaunchKernel(const void* function, Size grid, Size block, void** arguments,
                                     std::size_t shared_bytes, CUstream stream) {
    return launch(function, grid, block, arguments, shared_bytes, stream);
}

CUDART_EXPORT Error cudaLaunchCooperativeKernel(const void* function, Size grid, Size block,
                                                void** arguments, std::size_t shared_bytes,
                                                CUstream stream) {
    return launch(function, grid, block, arguments, shared_bytes, stream);
}

CUDART_EXPORT Error cudaLaunchKernelExC(const LaunchConfig* config, const void* function,
                                        void** arguments) {
    if (config == nullptr) {
        return remember(CUDA_ERROR_INVALID_VALUE);
    }
    return launch(function, config->grid, config->block, arguments, config->shared_bytes,
                  config->stream);
}

CUDART_EXPORT Error cudaFuncGetAttributes(FunctionAttributes* all, const void* host_function) {
    CUfunction function = nullptr;
    const Error found = with_function(host_function, &function);
    if (found != CUDA_SUCCESS) {
        return remember(found);
    }
    *all = {};
    all->sharedSizeBytes =
        static_cast<std::size_t>(attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    all->constSizeBytes =
        static_cast<std::size_t>(attribute(function, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    all->localSizeBytes =
        static_cast<std::size_t>(attribute(function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    all->maxThreadsPerBlock = attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    all->numRegs = attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    all->ptxVersion = attribute(function, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    all->binaryVersion = attribute(function, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    all->maxDynamicSharedSizeBytes =
        attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return CUDA_SUCCESS;
}

CUDART_EXPORT Error cudaFuncSetAttribute(const void* host_function, CUfunction_attribute which,
                                         int value) {
    CUfunction function = nullptr;
    const Error found = with_function(host_function, &function);
    return remember(found != CUDA_SUCCESS ? found : cuFuncSetAttribute(function, which, value));
}

CUDART_EXPORT Error cudaFuncSetCacheConfig(const void*, int) {
    return CUDA_SUCCESS;
}

CUDART_EXPORT Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                  const void* host_function,
                                                                  int threads,
                                                                  std::size_t shared_bytes) {
    CUfunction function = nullptr;
    const Error found = with_function(host_function, &function);
    return remember(found != CUDA_SUCCESS ? found
                                          : cuOccupancyMaxActiveBlocksPerMultiprocessor(
                                                blocks, function, threads, shared_bytes));
}

CUDART_EXPORT Error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* host_function, int threads, std::size_t shared_bytes, unsigned) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host_function, threads,
                                                         shared_bytes);
}
