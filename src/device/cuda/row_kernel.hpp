// SPDX-License-Identifier: BSD-3-Clause
//
// RowKernel: rows of strided memory by a kernel of one context (device/kernels/move_rows.cu), in one
// launch: to or from page-locked memory, inside the GPU, or between it and memory of a peer that is
// mapped in that context.
#pragma once

#include "device/cuda/kernel_module.hpp"
#include "device/cuda/row_tables.hpp"
#include "device/device.hpp"

#include <cstdint>

namespace gantry::device::cuda {

class RowKernel {
  public:
    RowKernel(Driver& driver, const Context& context, const GpuFacts& facts, bool wanted)
        : driver_(driver),
          context_(context),
          enough_blocks_(facts.launch_enough_blocks),
          module_(driver, wanted),
          tables_(driver) {}

    // With the context current, before anybody waits: if loading the kernel is quick.
    void make_ready() {
        if (module_.is_compiled(kernels::move_rows())) (void)load();
    }
    // Which end is page-locked host memory.
    enum class Host : std::uint8_t { none, destination, source };
    // Queues the copy in `stream`, with its context current. False: no kernel can make it, and
    // nothing is queued; or the context is dead, as the next call there will find. What it holds
    // goes to give_back() after its end.
    bool start(const Copy& copy, Host host, CUstream stream, RowTables::Held& held);
    void give_back(RowTables::Held held) { tables_.give_back(held); }
    // With the context current, before it goes.
    void close();
    // The context is gone, and the kernel with it.
    void abandon() {
        module_.abandon();
        tables_.abandon();
    }

  private:
    bool load() {
        return module_.load(kernels::move_rows(), {{"gantry_move_rows", &kernel_}}, context_.gpu);
    }
    // Where the GPU finds it; 0: it does not.
    CUdeviceptr reached(const void* address, bool on_host);

    Driver& driver_;
    Context context_;
    unsigned enough_blocks_;
    KernelModule module_;
    CUfunction kernel_ = nullptr;
    RowTables tables_;
};

}  // namespace gantry::device::cuda
