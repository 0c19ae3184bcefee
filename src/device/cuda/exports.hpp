// SPDX-License-Identifier: BSD-3-Clause
//
// Exports: names of this process's device memory that other processes can open, one per allocation.
//
//   legacy   64 bytes of cuIpcGetMemHandle; nothing else is needed
//   pool     64 bytes of cuMemPoolExportPointer, and once per importer a descriptor of the pool
//   vmm      no bytes; a descriptor of the allocation, once per importer
//
// A descriptor is made when an importer asks for it, sent to its inbox
// (device/descriptor_inbox.hpp) and closed: none is kept, however many allocations there are.
#pragma once

#include "device/cuda/context.hpp"
#include "device/descriptor_inbox.hpp"
#include "device/device.hpp"

#include <map>

namespace gantry::device::cuda {

// What a datagram says beside its descriptor. Both ends run the same build.
struct DescriptorLetter {
    std::uint64_t origin = 0;
    std::uint64_t key = 0;  // the pool, or the buffer id of virtual memory
    IpcKind kind = IpcKind::none;
    bool refused = false;  // the driver makes no descriptor of this memory
};
inline std::uint64_t descriptor_key(const IpcHandle& handle) {
    return handle.kind == IpcKind::pool ? handle.pool : handle.buffer_id;
}

// The process whose exports have that origin.
int process_of(std::uint64_t origin);

class Exports {
  public:
    explicit Exports(Driver& driver);

    // The handle of the allocation, made at the first call; refusals are remembered. `lost` is set
    // when the context turned out to be gone.
    Result<IpcHandle> name(const Location& location, const Context& context, const Uuid& gpu,
                           bool* lost);
    // Sends the descriptor behind a handle of ours to another process.
    Status send_descriptor(const IpcHandle& handle, std::uint32_t inbox);
    // True for a handle that this process made: the driver does not open those here.
    bool is_own(const IpcHandle& handle) const;
    void forget(std::uint64_t buffer_id) { handles_.erase(buffer_id); }
    void clear() { handles_.clear(); }

  private:
    CUresult describe(const Location& location, IpcHandle& handle, const char** call);
    CUresult make_descriptor(const IpcHandle& handle, int* descriptor, const char** call);

    Driver& driver_;
    const std::uint64_t origin_;                  // of this process's handles, unlike any other's
    std::map<std::uint64_t, IpcHandle> handles_;  // by buffer id; kind none: refused
};

}  // namespace gantry::device::cuda
