// SPDX-License-Identifier: BSD-3-Clause
//
// Copies by hand of messages of device memory, row by row where they have rows: what a program does
// with an MPI that knows neither devices nor their datatypes.
#pragma once

#include "buffer.hpp"

namespace gantry::bench {

// A whole message between its buffer and packed host memory; finished when they return.
void pack_to_host(std::byte* to, const Buffer& from, int message);
void unpack_to_device(const Buffer& into, int message, const std::byte* from);

// Part of a message, whole rows of it `at` bytes behind its beginning; without the gaps between rows.
struct Part {
    int message = 0;
    Bytes at = 0, bytes = 0;
};
// Queued, between the buffer and packed memory of the device.
void pack_on_device(CUdeviceptr to, const Buffer& from, Part part, CUstream stream);
void unpack_on_device(const Buffer& into, Part part, CUdeviceptr from, CUstream stream);

}  // namespace gantry::bench
