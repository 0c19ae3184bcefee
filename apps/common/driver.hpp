// SPDX-License-Identifier: BSD-3-Clause
//
// The CUDA driver by dlopen: the same program runs where there is none, with its fields in host memory.
// A refused call is a Failure with the call and the driver's words.
#pragma once

#include "device/cuda/driver_abi.h"

#include <string>

namespace gantry::apps {

class Driver {
  public:
    // Whether there is a driver with a device; if not, why.
    bool present(std::string* why_not);
    // This process's device: the one with this number modulo their count.
    void start(int number);
    void stop();
    std::string device_name() const;
    int device() const { return device_; }

    void check(CUresult result, const char* call, std::size_t bytes = 0) const;

#define APPS_DRIVER_CALL(symbol) PFN_##symbol symbol = nullptr;
#include "driver_calls.def"
#undef APPS_DRIVER_CALL

  private:
    void* library_ = nullptr;
    CUcontext context_ = nullptr;
    CUdevice device_ = 0;
};

// One per process, as the driver is.
Driver& driver();

// driver_call(cuMemFree_v2, address): the call, checked.
#define driver_call(symbol, ...) driver().check(driver().symbol(__VA_ARGS__), #symbol)

}  // namespace gantry::apps
