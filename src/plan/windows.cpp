// SPDX-License-Identifier: BSD-3-Clause
#include "plan/windows.hpp"

namespace gantry::plan {

Nanoseconds window_read_time(const device::GpuFacts& gpu, Bytes bytes) {
    return gpu.window_read + transfer_time(bytes, gpu.window_read_bytes_per_second);
}

Nanoseconds window_write_time(const device::GpuFacts& gpu, Bytes bytes) {
    return gpu.window_write + transfer_time(bytes, gpu.window_write_bytes_per_second);
}

bool window_reads_win(const device::GpuFacts& gpu, Bytes bytes) {
    return bytes <= kLargestWindowRead &&
           window_read_time(gpu, bytes) <
               gpu.copy_latency + transfer_time(bytes, gpu.d2h_bytes_per_second);
}

bool window_writes_win(const device::GpuFacts& gpu, Bytes bytes) {
    return bytes <= kLargestWindowWrite &&
           window_write_time(gpu, bytes) <
               gpu.copy_latency + transfer_time(bytes, gpu.h2d_bytes_per_second);
}

}  // namespace gantry::plan
