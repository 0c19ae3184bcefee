// SPDX-License-Identifier: BSD-3-Clause
//
// KernelModule: one PTX image and its kernels in one context, loaded when somebody asks first. A
// refusal is final, and logged once.
#pragma once

#include "base/log.hpp"
#include "device/cuda/context.hpp"

#include <initializer_list>
#include <utility>

namespace gantry::device::cuda {

class KernelModule {
  public:
    struct Kernel {
        const char* name;
        CUfunction* function;  // written by load()
    };

    KernelModule(Driver& driver, bool wanted) : driver_(driver), wanted_(wanted) {}

    // With the context current. False: there are no kernels.
    bool load(const char* ptx, std::initializer_list<Kernel> kernels, int gpu) {
        if (module_ != nullptr || !wanted_) return wanted_;
        CUresult result =
            driver_.call(driver_.cu.cuModuleLoadData, &module_, static_cast<const void*>(ptx));
        if (result != CUDA_SUCCESS) module_ = nullptr;
        for (const Kernel& kernel : kernels)
            if (result == CUDA_SUCCESS)
                result = driver_.call(driver_.cu.cuModuleGetFunction, kernel.function, module_,
                                      kernel.name);
        if (result != CUDA_SUCCESS) give_up("cuModuleLoadData", result, gpu);
        return wanted_;
    }
    bool wanted() const { return wanted_; }
    void give_up(const char* call, CUresult why, int gpu) {
        if (std::exchange(wanted_, false))
            log::info("cuda: no kernels on GPU {}: {}: {}; copy engines do their work", gpu, call,
                      result_name(why));
    }
    // With the context current, before it goes.
    void close() {
        if (module_ != nullptr)
            driver_.call(driver_.cu.cuModuleUnload, std::exchange(module_, nullptr));
    }
    // The context is gone, and the kernels with it.
    void abandon() {
        module_ = nullptr;
        wanted_ = false;
    }

  private:
    Driver& driver_;
    CUmodule module_ = nullptr;
    bool wanted_;
};

}  // namespace gantry::device::cuda
