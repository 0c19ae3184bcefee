// SPDX-License-Identifier: BSD-3-Clause
#include "openacc.hpp"

#include "../openacc/memory.hpp"
#include "mistake.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace gantry::apps {
namespace {

const OpenAccCalls* the_calls = nullptr;

const OpenAccCalls& calls(Machine& machine) {
    if (the_calls != nullptr) return *the_calls;
    const std::filesystem::path folder =
        std::filesystem::read_symlink("/proc/self/exe").parent_path();
    void* module = dlopen((folder / "apps.openacc.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr)
        throw Mistake(
            std::string("--exchange openacc needs a compiler that knows OpenACC when the programs "
                        "are built, and its library now: ") +
            dlerror());
    const auto* found = static_cast<const OpenAccCalls*>(dlsym(module, "apps_openacc_calls"));
    if (found == nullptr)
        throw Mistake("apps.openacc.so is not of these programs: build both again");
    if (machine.on_device() && found->devices() <= driver().device())
        throw Mistake(
            "--exchange openacc: OpenACC sees no such NVIDIA device. Its plugin is a package of "
            "its "
            "own (Debian: libgomp-plugin-nvptx1)");
    found->choose(machine.on_device() ? driver().device() : -1);
    the_calls = found;
    return *found;
}

}  // namespace

OpenAccBuffer::OpenAccBuffer(Machine& machine, std::size_t bytes) : machine_(machine) {
    const OpenAccCalls& acc = calls(machine);
    bytes = std::max<std::size_t>(bytes, 1);
    shadow_ = machine.allocate_host(bytes);
    device_ = machine.on_device() ? acc.allocate(bytes) : shadow_;
    if (device_ == nullptr)
        throw Failure("acc_malloc of " + std::to_string(bytes) + " bytes gave none");
    if (device_ != shadow_) acc.map(shadow_, device_, bytes);
}

OpenAccBuffer::~OpenAccBuffer() {
    if (device_ != shadow_) {
        the_calls->unmap(shadow_);
        the_calls->release(device_);
    }
    machine_.release_host(shadow_);
}

void OpenAccBuffer::inside_host_data(const std::function<void(std::byte*)>& function) const {
    using Function = std::function<void(std::byte*)>;
    the_calls->use(
        shadow_,
        [](void* address, const void* what) {
            (*static_cast<const Function*>(what))(static_cast<std::byte*>(address));
        },
        &function);
}

void stop_openacc() {
    if (the_calls != nullptr) the_calls->stop();
    the_calls = nullptr;
}

}  // namespace gantry::apps
