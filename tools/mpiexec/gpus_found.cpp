// SPDX-License-Identifier: BSD-3-Clause
//
// The GPUs of this machine without CUDA. NVML says which of them this process may use, also in a container; it
// belongs to the driver and is loaded if it is there. The driver's own folder says what its kernel
// module drives. Which processors are near one is the kernel's word:
//
//   /proc/driver/nvidia/gpus/0000:17:00.0/information    "GPU UUID:   GPU-..."
//   /sys/bus/pci/devices/0000:17:00.0/local_cpulist      "0-31,64-95"
#include "gpus.hpp"

#include "base/blocked_signals.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace gantry::mpiexec {
namespace {

namespace fs = std::filesystem;

Processors near(const fs::path& root, const std::string& bus_id) {
    return read_list(root / "sys" / "bus" / "pci" / "devices" / bus_id / "local_cpulist");
}

// NVML's domain has eight digits, Linux's four.
std::string as_linux_writes(std::string bus_id) {
    std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    if (bus_id.size() == 16 && bus_id.starts_with("0000")) bus_id.erase(0, 4);
    return bus_id;
}

// As much of nvml.h as is used here: the interface is stable, by the suffixes of its names.
struct NvmlPci {
    char legacy_bus_id[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
};

class Nvml {
  public:
    Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
        if (library_ == nullptr) return;
        // It starts threads that outlive nvmlShutdown(). None of them may take the SIGCHLD that says how a rank ended.
        const BlockedSignals blocked;
        const bool complete = find(init_, "nvmlInit_v2") && find(shutdown_, "nvmlShutdown") &&
                              find(count_, "nvmlDeviceGetCount_v2") &&
                              find(device_, "nvmlDeviceGetHandleByIndex_v2") &&
                              find(uuid_, "nvmlDeviceGetUUID") &&
                              find(pci_, "nvmlDeviceGetPciInfo_v3");
        started_ = complete && init_() == 0;
    }
    ~Nvml() {
        if (started_) shutdown_();
        if (library_ != nullptr) dlclose(library_);
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    std::vector<Gpu> gpus() const {
        std::vector<Gpu> found;
        unsigned count = 0;
        if (!started_ || count_(&count) != 0) return found;
        for (unsigned i = 0; i < count; ++i) {
            void* device = nullptr;
            char uuid[96] = "";
            NvmlPci pci{};
            if (device_(i, &device) != 0 || uuid_(device, uuid, sizeof uuid) != 0 ||
                pci_(device, &pci) != 0)
                continue;
            const std::string bus_id = as_linux_writes(pci.bus_id);
            found.push_back({uuid, bus_id, near("/", bus_id)});
        }
        return found;
    }

  private:
    template <class Function>
    bool find(Function*& function, const char* name) {
        function = reinterpret_cast<Function*>(dlsym(library_, name));
        return function != nullptr;
    }

    void* library_;
    bool started_ = false;
    int (*init_)() = nullptr;
    int (*shutdown_)() = nullptr;
    int (*count_)(unsigned*) = nullptr;
    int (*device_)(unsigned, void**) = nullptr;
    int (*uuid_)(void*, char*, unsigned) = nullptr;
    int (*pci_)(void*, NvmlPci*) = nullptr;
};

std::vector<Gpu> sorted(std::vector<Gpu> gpus) {
    std::sort(gpus.begin(), gpus.end(),
              [](const Gpu& one, const Gpu& other) { return one.bus_id < other.bus_id; });
    return gpus;
}

}  // namespace

std::vector<Gpu> read_gpus(const fs::path& root) {
    std::vector<Gpu> found;
    std::error_code nothing_there;
    for (const auto& entry :
         fs::directory_iterator(root / "proc" / "driver" / "nvidia" / "gpus", nothing_there)) {
        std::ifstream file(entry.path() / "information");
        for (std::string line; std::getline(file, line);)
            if (const std::size_t uuid = line.find("GPU-");
                line.starts_with("GPU UUID:") && uuid != std::string::npos) {
                const std::string bus_id = entry.path().filename();
                found.push_back({line.substr(uuid), bus_id, near(root, bus_id)});
            }
    }
    return sorted(std::move(found));
}

std::vector<Gpu> find_gpus() {
    std::vector<Gpu> found = Nvml().gpus();
    return found.empty() ? read_gpus("/") : sorted(std::move(found));
}

}  // namespace gantry::mpiexec
