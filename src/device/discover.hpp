// SPDX-License-Identifier: BSD-3-Clause
//
// The device of an engine: `cuda`, which sleeps until the program itself uses a driver, or `none`
// with GANTRY_CUDA=off.
#pragma once

#include "base/config.hpp"
#include "device/device.hpp"

#include <memory>

namespace gantry::device {

Result<std::unique_ptr<Device>> discover(Executor& executor, const config::Config& config);

}  // namespace gantry::device
