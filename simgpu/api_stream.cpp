// SPDX-License-Identifier: BSD-3-Clause
// Streams: life, waiting, host functions. Capture is modelled as far as a library can spoil it:
// captured operations are not run and the graph is empty.
#include "entry.hpp"

namespace {

using simgpu::CaptureState;
using simgpu::Context;
using simgpu::Current;
using simgpu::current_context;
using simgpu::Driver;
using simgpu::Op;
using simgpu::OpKind;
using simgpu::OpState;
using simgpu::Stream;
using simgpu::StreamRef;

struct Graph {
    int unused = 0;
};

// A stream under capture for which this one, the legacy stream, would have to wait; null: none.
Stream* captured_beside(const Stream& stream) {
    if (&stream != stream.context->legacy) {
        return nullptr;
    }
    for (Stream* other : stream.context->streams) {
        if (other->blocking() && other->capture == CaptureState::active) {
            return other;
        }
    }
    return nullptr;
}

CUresult create(Driver& d, CUstream* handle, unsigned flags, int priority) {
    const Current current = current_context(d);
    SIM_TRY(current.result);
    if (handle == nullptr || flags > CU_STREAM_NON_BLOCKING) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Stream* stream = simgpu::new_stream(d, *current.context, flags, priority);
    d.live_streams.insert(stream);
    *handle = simgpu::handle_of(stream);
    return CUDA_SUCCESS;
}

// Enqueues a function of the program; it runs on a thread of its own, where driver calls are
// refused.
CUresult call_host(Driver& d, CUstream handle, std::function<CUresult()> function) {
    const StreamRef ref = simgpu::find_stream(d, handle);
    SIM_TRY(ref.result);
    if (ref.stream->capture == CaptureState::active) {
        return CUDA_SUCCESS;
    }
    auto op = std::make_shared<Op>();
    op->kind = OpKind::host_function;
    op->runs_on = simgpu::RunsOn::own_thread;
    op->effect = std::move(function);
    d.scheduler.enqueue(*ref.stream, op);
    return CUDA_SUCCESS;
}

}  // namespace

#define SIM_STREAM(name, handle)                                 \
    const StreamRef ref_##name = simgpu::find_stream(d, handle); \
    SIM_TRY(ref_##name.result);                                  \
    Stream& name = *ref_##name.stream

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
    SIM_ENTER(cuStreamCreate);
    return create(d, stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    SIM_ENTER(cuStreamCreateWithPriority);
    return create(d, stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
    SIM_ENTER(cuStreamDestroy_v2);
    if (d.live_streams.erase(handle) == 0) {
        return d.tombstones.count(handle) != 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                               : CUDA_ERROR_INVALID_HANDLE;
    }
    auto* stream = reinterpret_cast<Stream*>(handle);
    stream->destroyed = true;
    if (stream->capture != CaptureState::none) {
        --d.captures;
    }
    if (stream->queue.empty()) {
        std::erase(stream->context->streams, stream);
        delete stream;
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
    SIM_ENTER(cuStreamQuery);
    SIM_TRY(simgpu::refuse_during_capture(d));
    SIM_STREAM(stream, handle);
    entry.costs(d.model.calls().event_query);
    if (stream.tail == nullptr) {
        return CUDA_SUCCESS;
    }
    const simgpu::OpRef tail = stream.tail;
    d.scheduler.help_a_query();
    if (tail->state != OpState::done) {
        entry.costs(d.model.calls().event_query_vain);
        return CUDA_ERROR_NOT_READY;
    }
    simgpu::sanitizer::acquire(tail.get());
    return current_context(d).result;
}

CUresult cuStreamSynchronize(CUstream handle) {
    SIM_ENTER(cuStreamSynchronize);
    SIM_TRY(simgpu::refuse_during_capture(d));
    SIM_STREAM(stream, handle);
    Context& context = *stream.context;
    // The legacy stream waits for blocking ones, also for one that is captured: that spoils it.
    if (Stream* captured = captured_beside(stream); captured != nullptr) {
        captured->capture = CaptureState::invalidated;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    d.scheduler.wait_for_stream(stream);
    return context.sticky;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    SIM_ENTER(cuStreamGetPriority);
    SIM_STREAM(stream, handle);
    *priority = stream.priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned* flags) {
    SIM_ENTER(cuStreamGetFlags);
    SIM_STREAM(stream, handle);
    *flags = stream.flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    SIM_ENTER(cuStreamGetId);
    SIM_STREAM(stream, handle);
    *id = stream.id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
    SIM_ENTER(cuStreamGetCtx);
    SIM_STREAM(stream, handle);
    *context = simgpu::handle_of(stream.context);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
    SIM_ENTER(cuStreamGetDevice);
    SIM_STREAM(stream, handle);
    *device = stream.context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data,
                             unsigned flags) {
    SIM_ENTER(cuStreamAddCallback);
    if (callback == nullptr || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return call_host(d, stream, [=] {
        callback(stream, CUDA_SUCCESS, user_data);
        return CUDA_SUCCESS;
    });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
    SIM_ENTER(cuLaunchHostFunc);
    if (function == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return call_host(d, stream, [=] {
        function(user_data);
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, std::size_t, unsigned) {
    SIM_ENTER(cuStreamAttachMemAsync);
    SIM_STREAM(stream, handle);
    (void)stream;
    const simgpu::Range* range = d.memory.find(address);
    return range != nullptr && range->kind == simgpu::MemoryKind::managed
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    SIM_ENTER(cuStreamBeginCapture_v2);
    SIM_STREAM(stream, handle);
    if (stream.is_default) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream.capture != CaptureState::none) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    stream.capture = CaptureState::active;
    stream.capture_mode = mode;
    stream.capture_thread = &simgpu::this_thread();
    ++d.captures;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    SIM_ENTER(cuStreamEndCapture);
    SIM_STREAM(stream, handle);
    if (stream.capture == CaptureState::none) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    const bool spoiled = stream.capture == CaptureState::invalidated;
    stream.capture = CaptureState::none;
    --d.captures;
    *graph = spoiled ? nullptr : reinterpret_cast<CUgraph>(new Graph);
    return spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    SIM_ENTER(cuStreamIsCapturing);
    SIM_STREAM(stream, handle);
    // Said of the legacy stream without harm to the capture.
    if (captured_beside(stream) != nullptr) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    *status = static_cast<CUstreamCaptureStatus>(stream.capture);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
    SIM_ENTER(cuGraphDestroy);
    (void)d;
    delete reinterpret_cast<Graph*>(graph);
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    SIM_ENTER(cuThreadExchangeStreamCaptureMode);
    (void)d;
    if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, simgpu::this_thread().capture_mode);
    return CUDA_SUCCESS;
}
