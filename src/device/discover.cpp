// SPDX-License-Identifier: BSD-3-Clause
#include "device/discover.hpp"

#include "device/cuda/cuda_device.hpp"
#include "device/none/none_device.hpp"

#include <new>

namespace gantry::device {

Result<std::unique_ptr<Device>> discover(Executor&, const config::Config& config) {
    std::unique_ptr<Device> device;
    if (config.cuda)
        device.reset(new (std::nothrow) cuda::CudaDevice(config));
    else
        device.reset(new (std::nothrow) none::NoneDevice);
    if (device == nullptr)
        return Status::make(MPI_ERR_NO_MEM, "out of memory for the device of this process");
    return Result<std::unique_ptr<Device>>(std::move(device));
}

}  // namespace gantry::device
