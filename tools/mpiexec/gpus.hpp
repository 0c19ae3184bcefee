// SPDX-License-Identifier: BSD-3-Clause
//
// Which GPUs each rank of a job on this machine sees (docs/user/launching.md): its CUDA_VISIBLE_DEVICES, by
// UUIDs, which mean the same GPU whatever the order of numbers is.
//
//   closest   those nearest to the rank's processors, each GPU for one rank as long as there are enough
//   none      what mpiexec itself sees
//   0,1,...   by their places among those that the caller's own CUDA_VISIBLE_DEVICES leaves
//
// mpiexec never initialises CUDA: it would keep memory on every GPU, and its children could not use it.
#pragma once

#include "binding.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mpiexec {

struct Gpu {
    std::string uuid;    // "GPU-..."
    std::string bus_id;  // "0000:17:00.0"
    Processors near;     // empty: nobody knows
};

enum class GpuBind { closest, none, listed };

struct GpuWish {
    int per_rank = 0;             // 0: not said
    std::optional<GpuBind> bind;  // not said: closest, if a number is
    std::vector<int> listed;
    bool asked() const { return per_rank > 0 || bind.has_value(); }
};
// "closest", "none" or "0,1,..."; nothing: it is none of them.
std::optional<GpuWish> gpu_bind(std::string_view text);

// By their PCI addresses. As the driver's and the kernel's folders below `root` ("/") tell.
std::vector<Gpu> read_gpus(const std::filesystem::path& root);
// NVML's, where that can be loaded; else those.
std::vector<Gpu> find_gpus();

struct VisibleGpus {
    std::vector<Gpu> gpus;
    std::string mistake;
};
// Those that CUDA_VISIBLE_DEVICES leaves, in its order; null: it is not set.
VisibleGpus visible_gpus(const std::vector<Gpu>& all, const char* value);

struct GpuBinding {
    std::vector<std::vector<Gpu>> ranks;  // empty: nothing is set
    std::string mistake;                  // what was asked for cannot be had
};
// `processors` of each rank; empty: the ranks are not bound.
GpuBinding divide_gpus(const GpuWish& wish, const std::vector<Gpu>& gpus,
                       const std::vector<Processors>& processors, int ranks);

// For the job and the machine that we run on.
GpuBinding gpus_for(const Options& options, const Binding& binding);
// One line a rank.
std::string report(const GpuBinding& binding);
// For CUDA_VISIBLE_DEVICES.
std::string uuids_of(const std::vector<Gpu>& gpus);

}  // namespace gantry::mpiexec
