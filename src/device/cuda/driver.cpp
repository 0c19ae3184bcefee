// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/driver.hpp"

#include "base/log.hpp"

#include <dlfcn.h>

#include <cstring>
#include <utility>

namespace gantry::device::cuda {

namespace {

// Where cuGetProcAddress finds a symbol: its base name and the version that has exactly our
// signature. Characters, not pointers: the table stays read-only data without relocations.
struct Pin {
    char symbol[48];
    char base[48];
    int version;
};
constexpr Pin kPins[] = {
#define GANTRY_CUDA_FUNCTION(symbol, base, version, twin, args) {#symbol, base, version},
#include "device/cuda/driver_functions.def"
#undef GANTRY_CUDA_FUNCTION
};

enum class Need { needed, optional };

const Pin* pin_of(const char* symbol) {
    for (const Pin& pin : kPins)
        if (std::strcmp(pin.symbol, symbol) == 0) return &pin;
    return nullptr;
}

template <class Function>
Function symbol_of(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
}

int class_of(CUresult result) {
    switch (result) {
        case CUDA_ERROR_OUT_OF_MEMORY: return MPI_ERR_NO_MEM;
        case CUDA_ERROR_INVALID_VALUE:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_MISALIGNED_ADDRESS: return MPI_ERR_BUFFER;
        case CUDA_ERROR_NOT_SUPPORTED: return MPI_ERR_UNSUPPORTED_OPERATION;
        default: return MPI_ERR_OTHER;
    }
}

}  // namespace

Driver::Driver(std::string library)
    : library_(library.empty() ? std::string("libcuda.so.1") : std::move(library)) {}

// The handle only keeps the library from being unloaded under our function pointers.
Driver::~Driver() {
    if (handle_ != nullptr) dlclose(handle_);
}

void Driver::took(const char* function, Nanoseconds begin) {
    constexpr Nanoseconds kLong = 50 * kMicrosecond;
    const Nanoseconds took = SteadyClock{}.now() - begin;
    if (took >= kLong) log::debug("cuda: {} took {} us", function, took / kMicrosecond);
}

bool Driver::look() {
    if (state_ == State::not_loaded && find_library()) state_ = State::loaded;
    if (state_ != State::loaded || !initialised()) return false;
    state_ = resolve() ? State::ready : State::unusable;
    return state_ == State::ready;
}

bool Driver::find_library() {
    const LoadedObjects now = loaded_objects();
    if (now == seen_) return false;
    seen_ = now;
    handle_ = dlopen(library_.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    return handle_ != nullptr;
}

// Asks what any thread may ask at any time and what changes nothing: before cuInit the answer is
// NOT_INITIALIZED, with the toolkit's stub library STUB_LIBRARY. A thread whose current context was
// destroyed still proves that the driver runs.
bool Driver::initialised() {
    if (cu.cuCtxGetCurrent.function == nullptr)
        cu.cuCtxGetCurrent.function = symbol_of<PFN_cuCtxGetCurrent>(handle_, "cuCtxGetCurrent");
    CUcontext current = nullptr;
    switch (call(cu.cuCtxGetCurrent, &current)) {
        case CUDA_SUCCESS:
        case CUDA_ERROR_INVALID_CONTEXT:
        case CUDA_ERROR_CONTEXT_IS_DESTROYED: return true;
        default: return false;
    }
}

bool Driver::resolve() {
    const auto get_v2 = symbol_of<PFN_cuGetProcAddress_v2>(handle_, "cuGetProcAddress_v2");
    const auto get_v1 = symbol_of<PFN_cuGetProcAddress>(handle_, "cuGetProcAddress");
    const char* missing = nullptr;
    const auto find = [&](const char* symbol, Need need) -> void* {
        const Pin* pin = pin_of(symbol);
        GANTRY_ASSERT(pin != nullptr);
        void* function = nullptr;
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
        if (get_v2 != nullptr)
            get_v2(pin->base, &function, pin->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
        else if (get_v1 != nullptr)
            get_v1(pin->base, &function, pin->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
        if (function == nullptr) function = dlsym(handle_, symbol);
        if (function == nullptr && need == Need::needed) missing = symbol;
        return function;
    };
#define GANTRY_CUDA_CALL(symbol, group, need) \
    cu.symbol.function = reinterpret_cast<PFN_##symbol>(find(#symbol, Need::need));
#include "device/cuda/driver_calls.def"
#undef GANTRY_CUDA_CALL
    if (missing == nullptr) return true;
    log::warn("cuda: {} has no {}; device pointers cannot be recognised (the driver is too old)",
              library_, missing);
    return false;
}

Status Driver::failed(std::string_view call_name, CUresult result, std::string_view on) {
    const char* text = nullptr;
    if (!gone() && cu.cuGetErrorString.function != nullptr)
        call(cu.cuGetErrorString, result, &text);
    if (text == nullptr) text = "the driver gives no text";
    return failure(class_of(result), "{} {}: {} ({})", call_name, on, result_name(result), text);
}

const char* result_name(CUresult result) {
    switch (result) {
#define GANTRY_CUDA_RESULT(name, value) \
    case name: return #name;
        GANTRY_CUDA_RESULTS(GANTRY_CUDA_RESULT)
#undef GANTRY_CUDA_RESULT
    }
    return "an unknown CUDA error";
}

bool is_lost(CUresult result) {
    switch (result) {
        case CUDA_ERROR_NOT_INITIALIZED:
        case CUDA_ERROR_DEINITIALIZED:
        case CUDA_ERROR_INVALID_CONTEXT:
        case CUDA_ERROR_CONTEXT_IS_DESTROYED: return true;
        default: return false;
    }
}

}  // namespace gantry::device::cuda
