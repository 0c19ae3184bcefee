// SPDX-License-Identifier: BSD-3-Clause
// Modules, libraries, functions and launches. An image is PTX text, or code compiled for the GPU
// (cubin.hpp), also in a fat binary; its kernels run as host twins (kernels.hpp). A kernel without a twin has a handle, because programs fetch all handles at
// start; launching it fails and says so.
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <unordered_set>

#include "cubin.hpp"
#include "entry.hpp"
#include "fat_binary.hpp"
#include "memory.hpp"
#include "twins.hpp"

struct CUfunc_st {
    simgpu::KernelDeclaration declaration;
    CUmodule module = nullptr;
};
struct CUmod_st {
    std::vector<std::unique_ptr<CUfunc_st>> functions;
};

namespace {

using simgpu::Address;
using simgpu::Driver;
using simgpu::Entry;
using simgpu::Op;
using simgpu::OpKind;
using simgpu::Range;
using simgpu::StreamRef;

std::unordered_set<const void*>& live() {  // modules and functions; guarded by the driver's lock
    static auto* handles = new std::unordered_set<const void*>;
    return *handles;
}

// Compiled code runs on GPUs of its major architecture, from its own minor one up.
CUresult declared(Driver& d, const void* image, std::vector<simgpu::KernelDeclaration>* kernels) {
    std::vector<char> unpacked;
    if (simgpu::looks_like_fat_binary(image)) {
        unpacked = simgpu::first_cubin_of(image);
        if (unpacked.empty()) {
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        }
        image = unpacked.data();
    }
    const auto* text = static_cast<const char*>(image);
    if (!simgpu::looks_like_cubin(image)) {
        *kernels = simgpu::looks_like_ptx(text) ? simgpu::declared_kernels(text)
                                                : std::vector<simgpu::KernelDeclaration>();
        return simgpu::looks_like_ptx(text) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    simgpu::Cubin cubin = simgpu::read_cubin(image);
    const gantry::model::Gpu& gpu = d.model.machine().gpu;
    if (cubin.major != gpu.compute_major || cubin.minor > gpu.compute_minor) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    *kernels = std::move(cubin.kernels);
    return CUDA_SUCCESS;
}

CUresult load(Driver& d, CUmod_st** module, const void* image) {
    if (module == nullptr || image == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SIM_TRY(simgpu::current_context(d).result);
    std::vector<simgpu::KernelDeclaration> declarations;
    SIM_TRY(declared(d, image, &declarations));
    simgpu::load_twins_once();
    auto* made = new CUmod_st;
    for (simgpu::KernelDeclaration& declaration : declarations) {
        auto function = std::make_unique<CUfunc_st>();
        function->declaration = std::move(declaration);
        function->module = made;
        live().insert(function.get());
        made->functions.push_back(std::move(function));
    }
    live().insert(made);
    *module = made;
    return CUDA_SUCCESS;
}

CUresult unload(CUmod_st* module) {
    if (live().erase(module) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (const auto& function : module->functions) {
        live().erase(function.get());
    }
    delete module;
    return CUDA_SUCCESS;
}

CUresult find(CUmod_st* module, const char* name, CUfunc_st** function) {
    if (live().count(module) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (const auto& candidate : module->functions) {
        if (candidate->declaration.name == name) {
            *function = candidate.get();
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

void* translate(std::uint64_t address) {
    Driver& d = *simgpu::driver();
    return d.arena.contains(address) ? d.arena.alias(address)
                                     : reinterpret_cast<void*>(static_cast<Address>(address));
}

// A launch with its own copy of the parameters, taken at the call.
struct Prepared {
    std::vector<std::vector<std::uint64_t>> storage;
    std::vector<void*> parameters;
    simgpu_launch launch{};
};

// Replaces the device addresses in a parameter. False: one of them is no memory of anybody.
bool translate_words(Driver& d, std::vector<std::uint64_t>& words) {
    for (std::uint64_t& word : words) {
        if (d.arena.contains(word)) {
            if (d.memory.find(word) == nullptr) {
                return false;
            }
            word = reinterpret_cast<std::uint64_t>(d.arena.alias(word));
        }
    }
    return true;
}

// The two ways of passing parameters: an array of pointers, or one buffer named by `extra`.
CUresult gather(const CUfunc_st& function, void** parameters, void** extra, Prepared* prepared) {
    const std::vector<std::size_t>& sizes = function.declaration.parameter_bytes;
    const char* buffer = nullptr;
    for (void** item = extra; item != nullptr && *item != CU_LAUNCH_PARAM_END; item += 2) {
        if (*item == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = static_cast<const char*>(item[1]);
        }
    }
    if ((parameters == nullptr && buffer == nullptr && !sizes.empty()) ||
        (parameters != nullptr && extra != nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::size_t offset = 0;
    for (std::size_t index = 0; index < sizes.size(); ++index) {
        const std::size_t align = std::clamp<std::size_t>(sizes[index], 1, 8);
        offset = (offset + align - 1) / align * align;
        const void* from = parameters != nullptr ? parameters[index] : buffer + offset;
        offset += sizes[index];
        std::vector<std::uint64_t> words((sizes[index] + 7) / 8);
        memcpy(words.data(), from, sizes[index]);
        prepared->storage.push_back(std::move(words));
    }
    return CUDA_SUCCESS;
}

CUresult launch(Driver& d, Entry& entry, CUfunction function, const CUlaunchConfig& config,
                void** parameters, void** extra) {
    entry.costs(d.model.calls().launch);
    const StreamRef ref = simgpu::find_stream(d, config.hStream);
    SIM_TRY(ref.result);
    if (live().count(function) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const std::size_t threads = std::size_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
    const std::size_t blocks = std::size_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
    if (threads == 0 || threads > 1024 || blocks == 0 || config.gridDimY > 65535 ||
        config.gridDimZ > 65535) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const simgpu_twin* twin = simgpu::find_twin(function->declaration.name);
    if (twin == nullptr) {
        fprintf(stderr, "simgpu: kernel '%s' has no host twin; add one (simgpu/kernels.hpp)\n",
                function->declaration.name.c_str());
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    auto prepared = std::make_shared<Prepared>();
    SIM_TRY(gather(*function, parameters, extra, prepared.get()));
    bool valid = true;
    for (std::vector<std::uint64_t>& words : prepared->storage) {
        valid = translate_words(d, words) && valid;
        prepared->parameters.push_back(words.data());
    }
    prepared->launch = {
        {config.gridDimX, config.gridDimY, config.gridDimZ},
        {config.blockDimX, config.blockDimY, config.blockDimZ},
        config.sharedMemBytes,
        static_cast<unsigned>(prepared->parameters.size()),
        prepared->parameters.data(),
        &translate,
        static_cast<std::uint64_t>(d.model.scaled(d.model.machine().gpu.kernel.resident)),
        static_cast<std::uint64_t>(d.model.scaled(d.model.machine().gpu.kernel.resident_out)),
        static_cast<std::uint64_t>(d.model.scaled(d.model.machine().gpu.kernel.resident_in))};
    if (ref.stream->capture == simgpu::CaptureState::active) {
        return CUDA_SUCCESS;
    }
    simgpu::Traffic traffic;
    if (twin->traffic != nullptr && d.model.timed() && valid) {
        std::uint64_t device_bytes = 0, link_bytes = 0;
        twin->traffic(&prepared->launch, &device_bytes, &link_bytes);
        traffic = {device_bytes, link_bytes};
    }
    auto op = std::make_shared<Op>();
    op->kind = OpKind::kernel;
    op->enqueued = entry.began();
    op->runs_on = twin->may_wait != 0 ? simgpu::RunsOn::own_thread : simgpu::RunsOn::scheduler;
    op->cost = d.model.kernel(threads * blocks, traffic);
    op->effect = [prepared, run = twin->run, valid] {
        if (!valid) {
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        run(&prepared->launch);
        return CUDA_SUCCESS;
    };
    d.scheduler.enqueue(*ref.stream, op);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    SIM_ENTER(cuModuleLoadData);
    return load(d, module, image);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
    SIM_ENTER(cuModuleLoadDataEx);
    return load(d, module, image);
}

CUresult cuModuleUnload(CUmodule module) {
    SIM_ENTER(cuModuleUnload);
    d.scheduler.wait_for_all();
    return unload(module);
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    SIM_ENTER(cuModuleGetFunction);
    (void)d;
    return find(module, name, function);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr*, std::size_t*, CUmodule, const char*) {
    SIM_ENTER(cuModuleGetGlobal_v2);
    (void)d;
    return CUDA_ERROR_NOT_FOUND;  // variables of modules are not modelled
}

// A library is a module here, and a kernel a function: there is one kind of device to load them on.
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
    SIM_ENTER(cuLibraryLoadData);
    return load(d, reinterpret_cast<CUmod_st**>(library), code);
}

CUresult cuLibraryUnload(CUlibrary library) {
    SIM_ENTER(cuLibraryUnload);
    d.scheduler.wait_for_all();
    return unload(reinterpret_cast<CUmod_st*>(library));
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    SIM_ENTER(cuLibraryGetKernel);
    (void)d;
    return find(reinterpret_cast<CUmod_st*>(library), name, reinterpret_cast<CUfunc_st**>(kernel));
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
    SIM_ENTER(cuLibraryGetModule);
    (void)d;
    *module = reinterpret_cast<CUmodule>(library);
    return live().count(library) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    SIM_ENTER(cuKernelGetFunction);
    (void)d;
    *function = reinterpret_cast<CUfunction>(kernel);
    return live().count(kernel) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
    SIM_ENTER(cuFuncGetAttribute);
    if (live().count(function) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const gantry::model::Gpu& gpu = d.model.machine().gpu;
    *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
             : which == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 32
             : which == CU_FUNC_ATTRIBUTE_PTX_VERSION || which == CU_FUNC_ATTRIBUTE_BINARY_VERSION
                 ? gpu.compute_major * 10 + gpu.compute_minor
                 : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int) {
    SIM_ENTER(cuFuncSetAttribute);
    (void)d;
    return live().count(function) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
    SIM_ENTER(cuFuncGetModule);
    (void)d;
    if (live().count(function) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *module = function->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
    SIM_ENTER(cuFuncGetName);
    (void)d;
    if (live().count(function) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *name = function->declaration.name.c_str();
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** parameters, void** extra) {
    SIM_ENTER(cuLaunchKernel);
    const CUlaunchConfig config{grid_x,  grid_y,       grid_z, block_x, block_y,
                                block_z, shared_bytes, stream, nullptr, 0};
    return launch(d, entry, function, config, parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
    SIM_ENTER(cuLaunchKernelEx);
    if (config == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return launch(d, entry, function, *config, parameters, extra);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block_size,
                                                     std::size_t) {
    SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    (void)d;
    *blocks = block_size > 0 ? std::min(32, 2048 / block_size) : 0;
    return CUDA_SUCCESS;
}
