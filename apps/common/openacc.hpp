// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange buffers as an OpenACC program has them: memory of acc_malloc that MPI is given inside of
// host_data use_device. Needs apps.openacc.so beside the program, which is built where the compiler knows
// OpenACC; on a GPU, GCC's plugin for NVIDIA devices, too.
#pragma once

#include "machine.hpp"

#include <cstddef>
#include <functional>

namespace gantry::apps {

class OpenAccBuffer {
  public:
    // A Mistake where there is no OpenACC for this machine's memory.
    OpenAccBuffer(Machine& machine, std::size_t bytes);
    ~OpenAccBuffer();
    OpenAccBuffer(const OpenAccBuffer&) = delete;
    OpenAccBuffer& operator=(const OpenAccBuffer&) = delete;

    // For kernels, and for MPI.
    std::byte* memory() const { return static_cast<std::byte*>(device_); }
    void inside_host_data(const std::function<void(std::byte*)>& function) const;

  private:
    Machine& machine_;
    void *shadow_ = nullptr, *device_ = nullptr;
};

// Before the driver is stopped.
void stop_openacc();

}  // namespace gantry::apps
