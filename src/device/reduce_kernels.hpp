// SPDX-License-Identifier: BSD-3-Clause
//
// Which kernel makes a predefined reduction (device/kernels/reduce_*.cu). Those of long double, of
// 128-bit floating point and of what is made of them have none: no GPU has these numbers.
#pragma once

#include "base/units.hpp"
#include "device/kernels/reduce.hpp"
#include "layout/reduce.hpp"

#include <cstdint>
#include <optional>

namespace gantry::device {

// In the order of their modules.
enum class ReduceKernelName : std::uint8_t {
#define GANTRY_NAME(name, ...) name,
    GANTRY_REDUCE_INTEGERS(GANTRY_NAME) bits,
    GANTRY_REDUCE_REALS(GANTRY_NAME) GANTRY_REDUCE_PAIRS(GANTRY_NAME)
#undef GANTRY_NAME
};
inline constexpr int kReduceKernels = static_cast<int>(ReduceKernelName::double_double) + 1;

struct ReduceKernel {
    ReduceKernelName name = ReduceKernelName::bits;
    kernels::Combine operation = kernels::Combine::sum;
    Bytes element = 1;        // from one to the next
    Bytes alignment = 1;      // that all vectors must have: a GPU reads nothing else
    std::uint64_t units = 1;  // of the kernel, for each element
};

// None: only the processor can.
std::optional<ReduceKernel> reduce_kernel(layout::Operation operation, layout::Element element);

}  // namespace gantry::device
