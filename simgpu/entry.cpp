// SPDX-License-Identifier: BSD-3-Clause
#include "entry.hpp"

#include <sched.h>

#include "faults.hpp"

namespace simgpu {
namespace {

constexpr const char* kNames[] = {
#define GANTRY_CUDA_FUNCTION(symbol, base, version, twin, args) #symbol,
#include "device/cuda/driver_functions.def"
#include "compiler_functions.def"
#undef GANTRY_CUDA_FUNCTION
};

CUresult refusal_of(Phase phase) {
    switch (phase) {
        case Phase::ready: return CUDA_SUCCESS;
        case Phase::torn_down: return CUDA_ERROR_DEINITIALIZED;
        case Phase::untouched:
        case Phase::refused:
        case Phase::forked: break;
    }
    return CUDA_ERROR_NOT_INITIALIZED;
}

}  // namespace

const char* name_of(EntryId entry) {
    return kNames[static_cast<int>(entry)];
}

EntryId entry_named(std::string_view name) {
    for (int index = 0; index < kEntries; ++index) {
        if (name == kNames[index]) {
            return static_cast<EntryId>(index);
        }
    }
    return EntryId::count;
}

Entry::Entry(EntryId id, Needs needs) {
    g_calls[static_cast<int>(id)].fetch_add(1, std::memory_order_relaxed);
    if (needs == Needs::driver) {
        refusal_ = refusal_of(phase());
        if (refusal_ == CUDA_SUCCESS && this_thread().in_callback) {
            refusal_ = CUDA_ERROR_NOT_PERMITTED;
        }
    }
    if (refusal_ == CUDA_SUCCESS && any_faults()) {
        refusal_ = injected_result(id);
    }
    if (refusal_ == CUDA_SUCCESS && needs == Needs::driver && driver()->model.timed()) {
        began_ = clock_now();
    }
}

// Calls of microseconds keep the processor, as in a driver: where others wait for one, giving it away
// costs milliseconds.
constexpr Nanoseconds kKept = 20'000;

Entry::~Entry() {
    if (cost_ == 0 || began_ == 0) {
        return;
    }
    const Nanoseconds cost = driver()->model.scaled(cost_);
    const Nanoseconds until = began_ + cost;
    while (clock_now() < until) {
        if (cost > kKept) {
            sched_yield();
        }
    }
}

CUresult refuse_during_capture(Driver& d) {
    if (d.captures == 0) {
        return CUDA_SUCCESS;
    }
    const ThreadState& thread = this_thread();
    if (thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_SUCCESS;
    }
    CUresult result = CUDA_SUCCESS;
    for (const void* handle : d.live_streams) {
        auto* stream = static_cast<Stream*>(const_cast<void*>(handle));
        if (stream->capture != CaptureState::active) {
            continue;
        }
        const bool own = stream->capture_thread == &thread;
        const bool prohibited = own ? stream->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED
                                    : thread.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                          stream->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (prohibited) {
            stream->capture = CaptureState::invalidated;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

}  // namespace simgpu
