// SPDX-License-Identifier: BSD-3-Clause
// Streams and events. Their handles are the driver's, those of the default streams too.
#include "runtime.hpp"

using simgpu::cudart::call;
using simgpu::cudart::Error;

CUDART_EXPORT Error cudaStreamCreate(CUstream* stream) {
    return call([&] { return cuStreamCreate(stream, CU_STREAM_DEFAULT); });
}

CUDART_EXPORT Error cudaStreamCreateWithFlags(CUstream* stream, unsigned flags) {
    return call([&] { return cuStreamCreate(stream, flags); });
}

CUDART_EXPORT Error cudaStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    return call([&] { return cuStreamCreateWithPriority(stream, flags, priority); });
}

CUDART_EXPORT Error cudaStreamDestroy(CUstream stream) {
    return call([&] { return cuStreamDestroy_v2(stream); });
}

CUDART_EXPORT Error cudaStreamQuery(CUstream stream) {
    return call([&] { return cuStreamQuery(stream); });
}

CUDART_EXPORT Error cudaStreamSynchronize(CUstream stream) {
    return call([&] { return cuStreamSynchronize(stream); });
}

CUDART_EXPORT Error cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    return call([&] { return cuStreamWaitEvent(stream, event, flags); });
}

CUDART_EXPORT Error cudaStreamGetFlags(CUstream stream, unsigned* flags) {
    return call([&] { return cuStreamGetFlags(stream, flags); });
}

CUDART_EXPORT Error cudaStreamGetPriority(CUstream stream, int* priority) {
    return call([&] { return cuStreamGetPriority(stream, priority); });
}

CUDART_EXPORT Error cudaStreamGetId(CUstream stream, unsigned long long* id) {
    return call([&] { return cuStreamGetId(stream, id); });
}

CUDART_EXPORT Error cudaStreamGetDevice(CUstream stream, int* device) {
    return call([&] { return cuStreamGetDevice(stream, device); });
}

CUDART_EXPORT Error cudaStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                                          unsigned flags) {
    return call([&] { return cuStreamAddCallback(stream, callback, data, flags); });
}

CUDART_EXPORT Error cudaLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    return call([&] { return cuLaunchHostFunc(stream, function, data); });
}

CUDART_EXPORT Error cudaStreamAttachMemAsync(CUstream stream, void* memory, std::size_t bytes,
                                             unsigned flags) {
    return call([&] {
        return cuStreamAttachMemAsync(stream, simgpu::cudart::address(memory), bytes, flags);
    });
}

CUDART_EXPORT Error cudaStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    return call([&] { return cuStreamIsCapturing(stream, status); });
}

CUDART_EXPORT Error cudaStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    return call([&] { return cuStreamBeginCapture_v2(stream, mode); });
}

CUDART_EXPORT Error cudaStreamEndCapture(CUstream stream, CUgraph* graph) {
    return call([&] { return cuStreamEndCapture(stream, graph); });
}

CUDART_EXPORT Error cudaGraphDestroy(CUgraph graph) {
    return call([&] { return cuGraphDestroy(graph); });
}

CUDART_EXPORT Error cudaThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return call([&] { return cuThreadExchangeStreamCaptureMode(mode); });
}

CUDART_EXPORT Error cudaEventCreate(CUevent* event) {
    return call([&] { return cuEventCreate(event, CU_EVENT_DEFAULT); });
}

CUDART_EXPORT Error cudaEventCreateWithFlags(CUevent* event, unsigned flags) {
    return call([&] { return cuEventCreate(event, flags); });
}

CUDART_EXPORT Error cudaEventDestroy(CUevent event) {
    return call([&] { return cuEventDestroy_v2(event); });
}

CUDART_EXPORT Error cudaEventRecord(CUevent event, CUstream stream) {
    return call([&] { return cuEventRecord(event, stream); });
}

CUDART_EXPORT Error cudaEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    return call([&] { return cuEventRecordWithFlags(event, stream, flags); });
}

CUDART_EXPORT Error cudaEventQuery(CUevent event) {
    return call([&] { return cuEventQuery(event); });
}

CUDART_EXPORT Error cudaEventSynchronize(CUevent event) {
    return call([&] { return cuEventSynchronize(event); });
}

CUDART_EXPORT Error cudaEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return call([&] { return cuEventElapsedTime(milliseconds, start, end); });
}

#if CUDART_VERSION < 13000
CUDART_EXPORT Error cudaEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    return call([&] { return cuEventElapsedTime_v2(milliseconds, start, end); });
}
#endif

CUDART_EXPORT Error cudaIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
    return call([&] { return cuIpcGetEventHandle(handle, event); });
}

CUDART_EXPORT Error cudaIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
    return call([&] { return cuIpcOpenEventHandle(event, handle); });
}
