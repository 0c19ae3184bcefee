// SPDX-License-Identifier: BSD-3-Clause
//
// The driver library, found in the process and never started by us. Gantry looks whether the
// program has loaded and initialised libcuda each time somebody asks; until then it makes no driver
// call except, once the library is there, the harmless cuCtxGetCurrent that tells whether cuInit
// has been called. So a program may load or initialise CUDA as late as it likes.
//
//   not loaded --(a library came: dl_iterate_phdr's counters)--> loaded --(cuCtxGetCurrent
//   answers)--> ready --> gone
//
// `gone` is for good: the driver has been torn down (atexit). Every driver call of Gantry goes
// through call(), which counts it; failed() turns a refusal into a Status. Entry points come from
// cuGetProcAddress with the pinned versions of driver_functions.def and legacy default streams,
// so that a newer driver gives the same entry points.
#pragma once

#include "base/clock.hpp"
#include "base/status.hpp"
#include "device/cuda/driver_abi.h"
#include "device/driver_use.hpp"
#include "device/loaded_objects.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::device::cuda {

// How many driver calls Gantry has made, by what they are for. Exact; tests and `gantry explain`
// read differences.
using Calls = DriverUse;

template <class Function>
struct EntryPoint {
    Function function = nullptr;
    const char* name = "";
    std::uint64_t Calls::*group = nullptr;
    std::uint64_t calls = 0;
};

struct EntryPoints {
#define GANTRY_CUDA_CALL(symbol, group, need) \
    EntryPoint<PFN_##symbol> symbol{nullptr, #symbol, &Calls::group, 0};
#include "device/cuda/driver_calls.def"
#undef GANTRY_CUDA_CALL
};

class Driver {
  public:
    // `library`: file name of the driver; empty means libcuda.so.1. It is never loaded by us, only
    // found.
    explicit Driver(std::string library);
    ~Driver();
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    // Whether driver calls make sense now. About 30 ns while there is no driver, a load afterwards.
    bool ready() { return state_ == State::ready || (state_ != State::gone && look()); }
    bool gone() const { return state_ == State::gone; }

    // The one place that calls the driver. A function that this driver lacks answers
    // CUDA_ERROR_NOT_SUPPORTED.
    template <class Function, class... Arguments>
    CUresult call(EntryPoint<Function>& entry, Arguments... arguments) {
        return call_for(entry.group, entry, arguments...);
    }
    // One that is made for something else than its group says.
    template <class Function, class... Arguments>
    CUresult call_for(std::uint64_t Calls::*group, EntryPoint<Function>& entry,
                      Arguments... arguments) {
        if (entry.function == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
        ++entry.calls;
        ++(calls_.*group);
        const bool sets_up = group == &Calls::setups || group == &Calls::ipc;
        const Nanoseconds begin = sets_up ? SteadyClock{}.now() : 0;
        const CUresult result = entry.function(arguments...);
        if (begin != 0) took(entry.name, begin);
        if (result == CUDA_ERROR_DEINITIALIZED) state_ = State::gone;
        return result;
    }
    EntryPoints cu;

    // For context.hpp: the context that stays current, and how many others are above it.
    struct Kept {
        CUcontext context = nullptr;
        int above = 0;
    };
    Kept kept;

    const Calls& calls() const { return calls_; }
    Calls& calls() { return calls_; }
    // The Status of a refused call: "cuMemcpyAsync of 1 MiB ...: CUDA_ERROR_X (driver's text)".
    Status failed(std::string_view call, CUresult result, std::string_view on);

  private:
    enum class State : std::uint8_t { not_loaded, loaded, ready, unusable, gone };
    // Set-up calls are what makes a first step slow: the log names those that take long.
    static void took(const char* function, Nanoseconds begin);
    bool look();
    bool find_library();
    bool initialised();
    bool resolve();

    std::string library_;
    void* handle_ = nullptr;
    State state_ = State::not_loaded;
    LoadedObjects seen_;
    Calls calls_;
};

// The driver's name of a result code.
const char* result_name(CUresult result);
// The context, or the whole driver, no longer exists: whatever lived in it is gone without us.
bool is_lost(CUresult result);

}  // namespace gantry::device::cuda
