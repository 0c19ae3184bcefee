// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/kernel_module.hpp"

namespace gantry::device::cuda {

bool KernelModule::load(const kernels::Image& image, std::initializer_list<Kernel> kernels,
                        int gpu) {
    if (module_ != nullptr || !wanted_) return wanted_;
    CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (const void* const compiled = compiled_in(image); compiled != nullptr) {
        result = load_image(compiled, kernels);
        // An older driver than the release that it was compiled with.
        if (result != CUDA_SUCCESS)
            log::info("cuda: GPU {} refuses compiled kernels: {}; the driver compiles them", gpu,
                      result_name(result));
    }
    if (result != CUDA_SUCCESS) result = load_image(image.ptx, kernels);
    if (result != CUDA_SUCCESS) give_up("cuModuleLoadData", result, gpu);
    return wanted_;
}

const void* KernelModule::compiled_in(const kernels::Image& image) const {
    CUdevice device = 0;
    int major = 0, minor = 0;
    const bool known =
        !image.compiled.empty() &&
        driver_.call(driver_.cu.cuCtxGetDevice, &device) == CUDA_SUCCESS &&
        driver_.call(driver_.cu.cuDeviceGetAttribute, &major,
                     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) == CUDA_SUCCESS &&
        driver_.call(driver_.cu.cuDeviceGetAttribute, &minor,
                     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) == CUDA_SUCCESS;
    return known ? image.compiled_for(major, minor) : nullptr;
}

CUresult KernelModule::load_image(const void* image, std::initializer_list<Kernel> kernels) {
    CUresult result = driver_.call(driver_.cu.cuModuleLoadData, &module_, image);
    if (result != CUDA_SUCCESS) {
        module_ = nullptr;
        return result;
    }
    for (const Kernel& kernel : kernels)
        if (result == CUDA_SUCCESS)
            result =
                driver_.call(driver_.cu.cuModuleGetFunction, kernel.function, module_, kernel.name);
    if (result != CUDA_SUCCESS) close();
    return result;
}

}  // namespace gantry::device::cuda
