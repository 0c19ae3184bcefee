// SPDX-License-Identifier: BSD-3-Clause
#include "openacc.hpp"

#include "job.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

namespace gantry::bench {
namespace {

constexpr int kNvidia = 5;  // acc_device_nvidia

template <class Function>
void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr)
        give_up(fmt::format("libgomp.so.1 has no {}: built without OpenACC", name));
}

}  // namespace

OpenAcc& openacc() {
    static OpenAcc the_library;
    return the_library;
}

void OpenAcc::start(int gpu) {
    if (library_ != nullptr) return;
    void* library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr)
        give_up(fmt::format("placement A needs GCC's OpenACC library: {}", dlerror()));
    int (*devices)(int) = nullptr;
    void (*choose)(int, int) = nullptr;
    find(library, "acc_get_num_devices", devices);
    find(library, "acc_set_device_num", choose);
    find(library, "acc_shutdown", shutdown_);
    find(library, "acc_malloc", malloc_);
    find(library, "acc_free", free_);
    find(library, "acc_memcpy_to_device", to_device_);
    find(library, "acc_memcpy_from_device", from_device_);
    if (devices(kNvidia) <= gpu)
        give_up(fmt::format(
            "placement A: OpenACC sees {} NVIDIA devices, and this rank's is number {}. Its "
            "plugin is a package of its own (Debian: libgomp-plugin-nvptx1)",
            devices(kNvidia), gpu));
    choose(gpu, kNvidia);
    library_ = library;
}

void OpenAcc::stop() {
    if (library_ != nullptr) shutdown_(kNvidia);
    library_ = nullptr;
}

void* OpenAcc::allocate(Bytes bytes) {
    void* memory = malloc_(std::max<Bytes>(bytes, 1));
    if (memory == nullptr) give_up(fmt::format("acc_malloc of {} bytes gave none", bytes));
    return memory;
}

}  // namespace gantry::bench
