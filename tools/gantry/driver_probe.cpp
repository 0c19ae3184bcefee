// SPDX-License-Identifier: BSD-3-Clause
//
// What a CUDA driver says about itself and its devices, asked by a tool that links nothing of CUDA.
// Allocates a little memory on each device to try what the attributes only promise: whether memory
// can be shared between processes.
#include "checks.hpp"

#include "device/cuda/driver_abi.h"
#include "device/cuda/gpu_traits.hpp"
#include "model/tuned.hpp"
#include "plan/text.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace gantry::tool {
namespace {

class Probe {
  public:
    explicit Probe(void* library) : library_(library) {}

    template <class Function>
    Function find(const char* symbol) const {
        return reinterpret_cast<Function>(dlsym(library_, symbol));
    }
    std::string text(CUresult result) const {
        const char* name = nullptr;
        if (auto error_name = find<PFN_cuGetErrorName>("cuGetErrorName")) error_name(result, &name);
        return name != nullptr ? name : fmt::format("CUresult {}", static_cast<int>(result));
    }
    int attribute(CUdevice device, CUdevice_attribute attribute) const {
        int value = 0;
        auto get = find<PFN_cuDeviceGetAttribute>("cuDeviceGetAttribute");
        return get != nullptr && get(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
    }

    model::Traits traits(CUdevice device) const {
        struct {
            PFN_cuDeviceGetName cuDeviceGetName;
            PFN_cuDeviceTotalMem_v2 cuDeviceTotalMem_v2;
            PFN_cuDeviceGetAttribute cuDeviceGetAttribute;
            PFN_cuDeviceGetPCIBusId cuDeviceGetPCIBusId;
            PFN_cuDeviceGetCount cuDeviceGetCount;
            PFN_cuDeviceCanAccessPeer cuDeviceCanAccessPeer;
            PFN_cuDeviceGetP2PAttribute cuDeviceGetP2PAttribute;
        } driver{find<PFN_cuDeviceGetName>("cuDeviceGetName"),
                 find<PFN_cuDeviceTotalMem_v2>("cuDeviceTotalMem_v2"),
                 find<PFN_cuDeviceGetAttribute>("cuDeviceGetAttribute"),
                 find<PFN_cuDeviceGetPCIBusId>("cuDeviceGetPCIBusId"),
                 find<PFN_cuDeviceGetCount>("cuDeviceGetCount"),
                 find<PFN_cuDeviceCanAccessPeer>("cuDeviceCanAccessPeer"),
                 find<PFN_cuDeviceGetP2PAttribute>("cuDeviceGetP2PAttribute")};
        const auto call = [](auto function, auto... arguments) {
            return function != nullptr ? function(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
        };
        model::Traits traits = device::cuda::traits_of(driver, call, device);
        device::cuda::read_memory_rate(driver, call, device, traits);
        return traits;
    }

  private:
    void* library_;
};

// Tries to export a small allocation, as a rank of a job would.
Check sharing(const Probe& probe, CUdevice device, const std::string& subject) {
    auto retain = probe.find<PFN_cuDevicePrimaryCtxRetain>("cuDevicePrimaryCtxRetain");
    auto release = probe.find<PFN_cuDevicePrimaryCtxRelease_v2>("cuDevicePrimaryCtxRelease_v2");
    auto set_current = probe.find<PFN_cuCtxSetCurrent>("cuCtxSetCurrent");
    auto allocate = probe.find<PFN_cuMemAlloc_v2>("cuMemAlloc_v2");
    auto free_memory = probe.find<PFN_cuMemFree_v2>("cuMemFree_v2");
    auto handle_of = probe.find<PFN_cuIpcGetMemHandle>("cuIpcGetMemHandle");
    if (!retain || !release || !set_current || !allocate || !free_memory || !handle_of)
        return {subject, Verdict::note, "this driver has no IPC calls",
                "device messages inside a node are staged through host memory"};
    CUcontext context = nullptr;
    if (CUresult result = retain(&context, device); result != CUDA_SUCCESS)
        return {subject, Verdict::bad, "making a context: " + probe.text(result),
                "is the device in exclusive mode, or out of memory? nvidia-smi shows both"};
    set_current(context);
    CUdeviceptr memory = 0;
    CUipcMemHandle handle{};
    CUresult result = allocate(&memory, 2 * kMiB);
    const bool allocated = result == CUDA_SUCCESS;
    if (allocated) result = handle_of(&handle, memory);
    if (allocated) free_memory(memory);
    set_current(nullptr);
    release(device);
    if (!allocated)
        return {subject, Verdict::bad, "allocating 2 MiB: " + probe.text(result),
                "the device is full; nvidia-smi shows by whom"};
    if (result != CUDA_SUCCESS)
        return {subject, Verdict::note,
                "memory cannot be shared between processes: " + probe.text(result),
                "device messages inside a node are staged through host memory (containers: run "
                "with --ipc=host)"};
    return {subject, Verdict::good, "memory can be shared between processes (CUDA IPC)", ""};
}

Check describe_device(const Probe& probe, CUdevice device, const model::Traits& traits,
                      const std::string& subject) {
    std::string found =
        fmt::format("{}, {}, compute capability {}.{}, {} copy engines", traits.name,
                    plan::bytes_text(traits.memory), traits.compute_major, traits.compute_minor,
                    traits.copy_engines);
    if (probe.attribute(device, CU_DEVICE_ATTRIBUTE_MPS_ENABLED) != 0) found += ", MPS";
    if (probe.attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED) != 0)
        found += ", GPUDirect RDMA possible";
    return {subject, Verdict::good, found, ""};
}

// Which figures ways are chosen by.
Check figures(const model::Traits& traits, const std::string& asked_for,
              const std::string& subject) {
    const model::Description description = model::describe(asked_for, traits);
    const std::string found = "figures: " + model::origin_text(description);
    if (!description.problem.ok())
        return {subject, Verdict::bad,
                fmt::format("{}, since {}", found, description.problem.text()),
                "mend or delete that file, or unset GANTRY_MACHINE"};
    if (description.origin == model::Origin::estimated)
        return {subject, Verdict::note, found, "gantry tune measures this machine, in a minute"};
    return {subject, Verdict::good, found, ""};
}

}  // namespace

std::vector<Check> device_checks(const config::Config& config) {
    const std::string name = config.cuda_library.empty() ? "libcuda.so.1" : config.cuda_library;
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return {{"driver", Verdict::note, fmt::format("no CUDA driver ({})", dlerror()),
                 "host programs need none; for device memory install NVIDIA's driver (containers: "
                 "--gpus all), or try the simulated GPU"}};
    const Probe probe(library);
    auto init = probe.find<PFN_cuInit>("cuInit");
    auto version_of = probe.find<PFN_cuDriverGetVersion>("cuDriverGetVersion");
    auto count_of = probe.find<PFN_cuDeviceGetCount>("cuDeviceGetCount");
    if (init == nullptr || version_of == nullptr || count_of == nullptr)
        return {{"driver", Verdict::bad, fmt::format("{} is not a CUDA driver", name),
                 "check GANTRY_CUDA_LIBRARY and LD_LIBRARY_PATH"}};
    if (CUresult result = init(0); result != CUDA_SUCCESS)
        return {{"driver", Verdict::bad,
                 fmt::format("{} is there, but cuInit says {}", name, probe.text(result)),
                 result == CUDA_ERROR_NO_DEVICE
                     ? "no device is visible: look at CUDA_VISIBLE_DEVICES, and whether the "
                       "container was given one"
                     : "nvidia-smi should say the same; the kernel module and the library must be "
                       "of one version"}};
    int version = 0, devices = 0;
    version_of(&version);
    count_of(&devices);
    std::vector<Check> checks;
    checks.push_back({"driver", Verdict::good,
                      fmt::format("{}, CUDA {}.{}, {} device{}", name, version / 1000,
                                  version % 1000 / 10, devices, devices == 1 ? "" : "s"),
                      ""});
    if (const auto visible = config::environment("CUDA_VISIBLE_DEVICES"))
        checks.push_back(
            {"visible GPUs", Verdict::good,
             fmt::format("CUDA_VISIBLE_DEVICES={}: memory on GPUs that it hides is mapped like any "
                         "other; a container or Slurm may keep them away, and then gantry explain "
                         "says so",
                         *visible),
             ""});
    auto reaches = probe.find<PFN_cuDeviceCanAccessPeer>("cuDeviceCanAccessPeer");
    for (CUdevice device = 0; device < devices; ++device) {
        const std::string subject = fmt::format("device {}", device);
        const model::Traits traits = probe.traits(device);
        checks.push_back(describe_device(probe, device, traits, subject));
        checks.push_back(figures(traits, config.machine, subject));
        checks.push_back(sharing(probe, device, subject));
        std::string peers;
        for (CUdevice other = 0; reaches != nullptr && other < devices; ++other) {
            int can = 0;
            if (other != device && reaches(&can, device, other) == CUDA_SUCCESS && can != 0)
                peers += fmt::format(" {}", other);
        }
        if (devices > 1)
            checks.push_back(
                {subject, peers.empty() ? Verdict::note : Verdict::good,
                 peers.empty() ? "reaches no other device directly"
                               : "reaches devices" + peers + " directly",
                 peers.empty() ? "messages between devices are staged through host memory" : ""});
    }
    return checks;
}

}  // namespace gantry::tool
