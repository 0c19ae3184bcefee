// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/context.hpp"

namespace gantry::device::cuda {

Relaxed::Relaxed(Driver& driver) : driver_(driver) {
    driver_.call(driver_.cu.cuThreadExchangeStreamCaptureMode, &mode_);
}

Relaxed::~Relaxed() {
    if (!driver_.gone()) driver_.call(driver_.cu.cuThreadExchangeStreamCaptureMode, &mode_);
}

Current::Current(Driver& driver, CUcontext context)
    : driver_(driver), result_(CUDA_SUCCESS), pushed_(false) {
    if (driver.kept.context == context && driver.kept.above == 0 && context != nullptr) return;
    result_ = driver.call(driver.cu.cuCtxPushCurrent_v2, context);
    pushed_ = ok();
    if (!pushed_) return;
    ++driver_.kept.above;
    relaxed_.emplace(driver);
}

Current::Current(Driver& driver, const Context& context) : Current(driver, context.handle) {
    if (pushed_ && context.id != 0 && context_id(driver, context.handle) != context.id)
        result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

Current::~Current() {
    if (!pushed_) return;
    --driver_.kept.above;
    relaxed_.reset();
    if (driver_.gone()) return;
    CUcontext popped = nullptr;
    driver_.call(driver_.cu.cuCtxPopCurrent_v2, &popped);
}

KeptCurrent::KeptCurrent(Driver& driver, const Context& context)
    : driver_(driver), current_(driver, context), before_(driver.kept) {
    if (current_.ok()) driver.kept = {context.handle, 0};
}

KeptCurrent::~KeptCurrent() {
    driver_.kept = before_;
}

CUresult create_stream(Driver& driver, CUstream& stream) {
    int least = 0, greatest = 0;
    if (driver.call(driver.cu.cuCtxGetStreamPriorityRange, &least, &greatest) == CUDA_SUCCESS &&
        greatest < least) {
        const CUresult result =
            driver.call(driver.cu.cuStreamCreateWithPriority, &stream,
                        static_cast<unsigned>(CU_STREAM_NON_BLOCKING), greatest);
        if (result != CUDA_ERROR_NOT_SUPPORTED) return result;
    }
    return driver.call(driver.cu.cuStreamCreate, &stream,
                       static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
}

unsigned long long context_id(Driver& driver, CUcontext context) {
    unsigned long long id = 0;
    if (driver.call(driver.cu.cuCtxGetId, context, &id) != CUDA_SUCCESS) return 0;
    return id;
}

}  // namespace gantry::device::cuda
