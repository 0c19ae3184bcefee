// SPDX-License-Identifier: BSD-3-Clause
//
// CudaDevice's reductions: the one context in which a GPU reaches all vectors.
#include "device/cuda/cuda_device.hpp"

#include "device/cuda/copies.hpp"

#include <mpi.h>

namespace gantry::device::cuda {
namespace {

Status not_reached(const Reduce& reduce) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                   "{} of {} elements on GPU {}: it does not reach all vectors",
                   layout::name(reduce.operation), reduce.count, reduce.gpu);
}

}  // namespace

void CudaDevice::reduce(const Reduce& reduce, Completion& done) {
    if (reduce.count == 0) return done.complete(success());
    const std::optional<ReduceKernel> how = reduce_kernel(reduce.operation, reduce.element);
    if (!driver_.ready() || !settings_.kernels || !how || reduce.sources.empty())
        return Device::reduce(reduce, done);
    gpus_.fill();
    drop_dead_contexts();
    const Bytes bytes = reduce.count * how->element;
    CUcontext context = nullptr;
    const auto meet = [&](const void* vector) {
        Place end = place(vector);
        if (!end.device && classify(vector, bytes).ok()) end = place(vector);
        if (!end.device || (!end.mapped && end.home != reduce.gpu) || end.gpu != reduce.gpu)
            return false;
        if (end.context == nullptr) return true;  // any context of the GPU
        if (context == nullptr) context = end.context;
        return context == end.context;
    };
    bool reached = meet(reduce.destination);
    for (const void* destination : reduce.also)
        reached = reached && meet(destination);
    for (const void* source : reduce.sources)
        reached = reached && meet(source);
    if (!reached) return done.complete(not_reached(reduce));
    Order order;
    order.copy.destination = reduce.destination;
    order.copy.source = reduce.sources.front();
    order.copy.bytes = bytes;
    order.copy.gpu = reduce.gpu;
    order.copy.engine = Engine::d2d;
    order.copy.notice = reduce.notice;
    order.queue = Queue::d2d;
    order.reduction = &reduce;
    Result<Streams*> streams = streams_in(context, reduce.gpu);
    if (!streams.ok()) return done.complete(std::move(streams).status());
    if ((*streams)->start(order, done)) return;
    // A vector that went with its context cannot be had again.
    drop_context((*streams)->context().handle);
    done.complete(context_destroyed(order.copy));
}

}  // namespace gantry::device::cuda
