// SPDX-License-Identifier: BSD-3-Clause
//
// KernelModule: one image and its kernels in one context, loaded when somebody asks first. Compiled code
// where there is some for this GPU and the driver takes it; else the text, which the driver compiles.
// A refusal of both is final, and logged once.
#pragma once

#include "base/log.hpp"
#include "device/cuda/context.hpp"
#include "device/kernels/images.hpp"

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
    bool load(const kernels::Image& image, std::initializer_list<Kernel> kernels, int gpu);
    // Loading it takes the driver no time to speak of. With the context current.
    bool is_compiled(const kernels::Image& image) const { return compiled_in(image) != nullptr; }
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
    const void* compiled_in(const kernels::Image& image) const;
    CUresult load_image(const void* image, std::initializer_list<Kernel> kernels);

    Driver& driver_;
    CUmodule module_ = nullptr;
    bool wanted_;
};

}  // namespace gantry::device::cuda
