// SPDX-License-Identifier: BSD-3-Clause
#include "plan/direct_copy.hpp"

#include "plan/p2p_model.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

double host_side_rate(const End& host, double engine_rate, double pageable_rate) {
    return host.kind == MemoryKind::host ? std::min(engine_rate, pageable_rate) : engine_rate;
}

}  // namespace

DirectCopy direct_copy(const Ask& ask, bool one_gpu, Executor executor) {
    const bool from_gpu = by_copy_engine(ask.source), to_gpu = by_copy_engine(ask.sink);
    DirectCopy copy;
    if (from_gpu && to_gpu) {
        const device::GpuFacts& gpu = ask.source_gpu;
        copy.latency = gpu.copy_latency;
        copy.bytes_per_second = one_gpu ? gpu.d2d_bytes_per_second : gpu.peer_bytes_per_second;
        // Over PCIe a GPU reads from another more slowly than it writes to it.
        if (!one_gpu && executor == Executor::receiver &&
            ask.sink_gpu.peer_get_bytes_per_second > 0)
            copy.bytes_per_second = ask.sink_gpu.peer_get_bytes_per_second;
        if (!one_gpu && executor == Executor::receiver) copy.latency += ask.sink_gpu.peer_get_more;
        if (!ask.contiguous() && ask.tuning.kernels) {
            copy.latency = gpu.kernel_latency;
            if (!one_gpu)
                copy.bytes_per_second *=
                    executor == Executor::sender ? gpu.kernel_stores : gpu.kernel_loads;
        }
        if (copy.bytes_per_second <= 0)
            copy.bytes_per_second = std::min(gpu.d2h_bytes_per_second, gpu.h2d_bytes_per_second);
    } else if (from_gpu) {
        const device::GpuFacts& gpu = ask.source_gpu;
        // Under MPS a kernel may stay for either process.
        const bool resident = gpu.mps && gpu.resident_out_latency > 0 && ask.bytes <= kResidentUpTo;
        const Nanoseconds latency = resident ? gpu.resident_out_latency : gpu.copy_latency;
        copy = {ask.sink.kind == MemoryKind::host ? gpu.pageable_latency : latency,
                host_side_rate(ask.sink, gpu.d2h_bytes_per_second, gpu.pageable_bytes_per_second)};
    } else if (to_gpu) {
        const device::GpuFacts& gpu = ask.sink_gpu;
        copy = {gpu.copy_latency, host_side_rate(ask.source, gpu.h2d_bytes_per_second,
                                                 gpu.pageable_bytes_per_second)};
    } else {
        copy = {0, kHostCopyRate, CopyEngine::cpu};
    }
    if (copy.engine != CopyEngine::cpu && !ask.contiguous())
        copy.engine = ask.tuning.kernels ? CopyEngine::kernel : CopyEngine::copy_engine_2d;
    return copy;
}

bool sooner_from_inside(const device::GpuFacts& gpu, Bytes bytes, Nanoseconds turn) {
    return gpu.copy_latency + turn + transfer_time(bytes, gpu.d2d_bytes_per_second) <
           transfer_time(bytes, gpu.pageable_bytes_per_second);
}

}  // namespace gantry::plan
