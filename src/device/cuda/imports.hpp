// SPDX-License-Identifier: BSD-3-Clause
//
// Imports: how a peer's device memory is mapped here and unmapped again, for each kind of handle
// (exports.hpp). Virtual memory and pools need a descriptor that was sent to our inbox first; it is
// closed when it has been used, when its memory is forgotten, or when too many wait.
//
// An imported pool stays for the next allocation from it; one without mappings goes when many are
// there.
#pragma once

#include "device/cuda/exports.hpp"

#include <vector>

namespace gantry::device::cuda {

class Imports {
  public:
    explicit Imports(Driver& driver) : driver_(driver) {}

    std::uint32_t inbox() { return inbox_.number(); }
    // Whether `map` can be tried: its descriptor is here (or none is needed), is still to be asked
    // for, or will never come.
    enum class Ready : std::uint8_t { yes, not_yet, never };
    Ready ready(const IpcHandle& handle);

    struct Mapped {
        CUresult result = CUDA_SUCCESS;
        const char* call = "";  // the one that failed
        CUdeviceptr address = 0;
    };
    // In the context that is current.
    Mapped map(const IpcHandle& handle, int gpu);
    void unmap(const IpcHandle& handle, CUdeviceptr address);
    // Virtual memory and pools outlive a context; what a context's end leaves of them is unmapped
    // here.
    void context_lost(const IpcHandle& handle, CUdeviceptr address);

    // A pool was imported at some time.
    bool had_pool() const { return had_pool_; }

    void forget(std::uint64_t buffer_id);
    void clear();
    std::size_t waiting() const { return waiting_.size(); }

  private:
    struct Waiting {
        DescriptorLetter letter;
        Descriptor descriptor;
    };
    struct Pool {
        std::uint64_t origin = 0, id = 0;
        CUmemoryPool pool = nullptr;
        int mappings = 0;
        std::vector<int> gpus;  // that may use its memory
    };
    void look_into_inbox();
    Waiting* waiting(const IpcHandle& handle);
    void drop(const Waiting* waiting);
    bool has_pool(std::uint64_t origin, std::uint64_t id) const;
    Pool* pool_of(const IpcHandle& handle);
    Mapped map_legacy(const IpcHandle& handle);
    Mapped map_virtual(const IpcHandle& handle, int gpu);
    Mapped map_pooled(const IpcHandle& handle, int gpu);
    Mapped import_pool(const IpcHandle& handle, Pool** pool);
    void unmap_virtual(const IpcHandle& handle, CUdeviceptr address);
    void destroy_idle_pool();

    Driver& driver_;
    DescriptorInbox inbox_;
    std::vector<Waiting> waiting_;  // oldest first
    std::vector<Pool> pools_;
    bool had_pool_ = false;
};

}  // namespace gantry::device::cuda
