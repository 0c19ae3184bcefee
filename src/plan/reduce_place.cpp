// SPDX-License-Identifier: BSD-3-Clause
//
//   host   vector out of the GPU | each step: message between hosts, processor | result into the GPU
//   gpu    vector to scratch     | each step: message between GPUs, kernel     | result out of scratch
//
// What both have (the network, waiting for others) is left out.
#include "plan/reduce_place.hpp"

#include "plan/p2p_model.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

// Reading two vectors and writing one, in copies of one vector: of a GPU's memory, and of a processor
// with its caches.
constexpr double kPassesOfKernel = 1.5;
constexpr double kPassesOfProcessor = 1.5;
// A message through shared memory is copied in and out.
constexpr double kPassesOfMessage = 2;

double seconds_for(double bytes, double bytes_per_second) {
    return bytes / bytes_per_second * 1e9;
}

double on_host(const device::GpuFacts& gpu, const ReduceQuestion& question) {
    const auto bytes = static_cast<double>(question.bytes);
    const double copy = seconds_for(bytes, gpu.pageable_bytes_per_second);
    double time = 0;
    if (question.source_on_device) time += static_cast<double>(gpu.pageable_latency) + copy;
    if (question.sink_on_device) time += static_cast<double>(gpu.copy_in_latency) + copy;
    return time + question.steps * seconds_for((kPassesOfProcessor + kPassesOfMessage) * bytes,
                                               gpu.host_bytes_per_second);
}

double on_gpu(const device::GpuFacts& gpu, const ReduceQuestion& question) {
    const auto bytes = static_cast<double>(question.bytes);
    const auto one_copy = [&](bool inside) {
        return inside ? static_cast<double>(gpu.copy_latency) +
                            seconds_for(bytes, gpu.d2d_bytes_per_second)
                      : static_cast<double>(gpu.copy_latency) +
                            seconds_for(bytes, gpu.pageable_bytes_per_second);
    };
    const double turn = question.time_sliced ? static_cast<double>(gpu.queue_turn) : 0;
    const double kernel = static_cast<double>(gpu.kernel_latency) + turn +
                          seconds_for(kPassesOfKernel * bytes, gpu.d2d_bytes_per_second);
    const double rate =
        gpu.peer_bytes_per_second > 0 ? gpu.peer_bytes_per_second : gpu.d2d_bytes_per_second;
    const double message =
        question.direct ? static_cast<double>(gpu.copy_latency) + turn + seconds_for(bytes, rate)
                        : static_cast<double>(gpu.copy_latency + gpu.copy_in_latency) +
                              seconds_for(bytes, gpu.d2h_bytes_per_second) +
                              seconds_for(bytes, gpu.h2d_bytes_per_second);
    return one_copy(question.source_on_device) + one_copy(question.sink_on_device) + 2 * turn +
           question.steps * (message + kernel);
}

}  // namespace

ReducePlace reduce_place(const device::GpuFacts& gpu, const ReduceQuestion& question,
                         std::string_view fixed) {
    if (fixed == "host") return ReducePlace::host;
    if (fixed == "gpu") return ReducePlace::gpu;
    return on_gpu(gpu, question) < on_host(gpu, question) ? ReducePlace::gpu : ReducePlace::host;
}

}  // namespace gantry::plan
