// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bar.hpp"

namespace gantry::plan {

Nanoseconds bar_read_time(const device::GpuFacts& gpu, Bytes bytes) {
    return gpu.bar_read + transfer_time(bytes, gpu.bar_read_bytes_per_second);
}

Nanoseconds bar_write_time(const device::GpuFacts& gpu, Bytes bytes) {
    return gpu.bar_write + transfer_time(bytes, gpu.bar_write_bytes_per_second);
}

bool bar_reads_win(const device::GpuFacts& gpu, Bytes bytes) {
    return bytes <= kLargestBarRead &&
           bar_read_time(gpu, bytes) <
               gpu.copy_latency + transfer_time(bytes, gpu.d2h_bytes_per_second);
}

bool bar_writes_win(const device::GpuFacts& gpu, Bytes bytes) {
    return bytes <= kLargestBarWrite &&
           bar_write_time(gpu, bytes) <
               gpu.copy_latency + transfer_time(bytes, gpu.h2d_bytes_per_second);
}

}  // namespace gantry::plan
