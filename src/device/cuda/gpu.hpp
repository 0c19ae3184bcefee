// SPDX-License-Identifier: BSD-3-Clause
//
// GpuTable: the GPUs that this process sees, by the driver's ordinal: identity, what their
// operations cost (from the description of the machine), who reaches whom, and which context Gantry
// works in. Filling it creates no context.
#pragma once

#include "device/cuda/context.hpp"
#include "device/device.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::device::cuda {

class GpuTable {
  public:
    // `machine`: a description to use for every GPU; empty: the best one that there is
    // (model/tuned.hpp).
    // `kernels_stay`: the program lets ours stay on its GPUs.
    GpuTable(Driver& driver, std::string machine, bool kernels_stay)
        : driver_(driver), machine_(std::move(machine)), kernels_stay_(kernels_stay) {}

    // Reads the table once the driver is ready; does nothing afterwards.
    void fill();
    int count() const { return static_cast<int>(gpus_.size()); }
    std::span<const GpuFacts> all_facts() const { return facts_; }
    const GpuFacts& facts(int gpu) const {
        return valid(gpu) ? facts_[static_cast<std::size_t>(gpu)] : none_;
    }
    const std::string& device_name(int gpu) const {
        return gpus_[static_cast<std::size_t>(gpu)].name;
    }
    bool can_access_peer(int gpu, int other);
    // A number for any GPU of the node: of one that this process does not see one behind those that it
    // sees, the same each time.
    int number_of(const Uuid& uuid);

    // A context of the program's on this GPU was seen: Gantry works there from now on.
    void prefer_context(int gpu, CUcontext context) {
        if (valid(gpu)) gpus_[static_cast<std::size_t>(gpu)].preferred = context;
    }
    // The context to work in: the preferred one; else the primary one if the program uses it; else
    // the current one of this thread if it belongs to the GPU; else the primary one, which is then
    // created and kept until release().
    Result<CUcontext> context(int gpu);
    void forget_context(CUcontext context);
    // Gives retained primary contexts back.
    void release();

  private:
    enum class Access : signed char { unknown, no, yes };
    struct Gpu {
        CUdevice device = 0;
        std::string name;
        std::vector<Access> peers;
        CUcontext preferred = nullptr;
        bool retained = false;
    };
    bool valid(int gpu) const { return gpu >= 0 && gpu < count(); }
    void add(CUdevice device, int ordinal);
    CUcontext current_on(const Gpu& gpu);

    Driver& driver_;
    std::string machine_;
    bool kernels_stay_;
    bool filled_ = false;
    std::vector<Gpu> gpus_;
    std::vector<GpuFacts> facts_;  // of each
    std::vector<Uuid> hidden_;     // that were asked for
    GpuFacts none_;
};

}  // namespace gantry::device::cuda
