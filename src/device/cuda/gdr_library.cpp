// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/gdr_library.hpp"

#include <fmt/format.h>

#include <dlfcn.h>

#include <cerrno>
#include <cstring>

namespace gantry::device::cuda {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

Status refused(const char* what, int error, std::uintptr_t begin, Bytes bytes) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} of {} bytes at {:#x}: {}", what, bytes, begin,
                   std::strerror(error));
}

}  // namespace

void GdrLibrary::look() {
    state_ = State::absent;
    for (const char* name : {"libgdrapi.so.2", "libgdrapi.so"})
        if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
        refusal_ = "there is no libgdrapi.so.2";
        return;
    }
    const bool pins =
        find(library_, "gdr_pin_buffer_v2", pin_v2_) || find(library_, "gdr_pin_buffer", pin_);
    const bool tells =
        find(library_, "gdr_get_info_v2", info_) || find(library_, "gdr_get_info", info_);
    const bool whole =
        pins && tells && find(library_, "gdr_open", open_) && find(library_, "gdr_close", close_) &&
        find(library_, "gdr_unpin_buffer", unpin_) && find(library_, "gdr_map", map_) &&
        find(library_, "gdr_unmap", unmap_) && find(library_, "gdr_copy_to_mapping", copy_to_) &&
        find(library_, "gdr_copy_from_mapping", copy_from_);
    if (!whole) {
        refusal_ = "libgdrapi lacks functions of its version 2";
        return;
    }
    connection_ = open_();
    if (connection_ == nullptr) {
        refusal_ =
            "libgdrapi is there, but its kernel module is not (or /dev/gdrdrv may not be "
            "opened)";
        return;
    }
    state_ = State::ready;
}

Result<GdrHandle> GdrLibrary::pin(std::uintptr_t begin, Bytes bytes) {
    GdrHandle handle;
    const int error = pin_v2_ != nullptr ? pin_v2_(connection_, begin, bytes, 0, &handle)
                                         : pin_(connection_, begin, bytes, 0, 0, &handle);
    if (error != 0) return refused("gdr_pin_buffer", error, begin, bytes);
    return handle;
}

Result<GdrLibrary::Mapping> GdrLibrary::map(std::uintptr_t begin, Bytes bytes) {
    Result<GdrHandle> pinned = pin(begin, bytes);
    GANTRY_TRY(pinned.status());
    Mapping mapping{*pinned, nullptr, begin, bytes};
    if (const int error = map_(connection_, mapping.handle, &mapping.mapped, bytes); error != 0) {
        unpin_(connection_, mapping.handle);
        return refused("gdr_map", error, begin, bytes);
    }
    GdrInfo info;
    const int error = info_(connection_, mapping.handle, &info);
    // Whole pages were asked for, so nothing is rounded; where it is, our addresses would be wrong.
    if (error != 0 || info.address != begin || info.mapped_bytes < bytes) {
        unmap(mapping);
        return refused("gdr_get_info", error != 0 ? error : EINVAL, begin, bytes);
    }
    return mapping;
}

void GdrLibrary::unmap(const Mapping& mapping) {
    if (connection_ == nullptr) return;
    unmap_(connection_, mapping.handle, mapping.mapped, mapping.bytes);
    unpin_(connection_, mapping.handle);
}

Status GdrLibrary::write(const Mapping& mapping, std::uintptr_t address, const void* from,
                         Bytes bytes) {
    char* const to = static_cast<char*>(mapping.mapped) + (address - mapping.begin);
    if (const int error = copy_to_(mapping.handle, to, from, bytes); error != 0)
        return refused("gdr_copy_to_mapping", error, address, bytes);
    return success();
}

Status GdrLibrary::read(const Mapping& mapping, std::uintptr_t address, void* to, Bytes bytes) {
    const char* const from = static_cast<char*>(mapping.mapped) + (address - mapping.begin);
    if (const int error = copy_from_(mapping.handle, to, from, bytes); error != 0)
        return refused("gdr_copy_from_mapping", error, address, bytes);
    return success();
}

// The library stays loaded: a mapping that it made may outlive us in a forked child.
void GdrLibrary::close() {
    if (connection_ != nullptr) close_(connection_);
    connection_ = nullptr;
    if (state_ == State::ready) state_ = State::absent;
}

}  // namespace gantry::device::cuda
