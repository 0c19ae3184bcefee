// SPDX-License-Identifier: BSD-3-Clause
//
// IpcCache: peers' device memory that is mapped here (how, imports.hpp). Opening costs 0.1 to 10
// ms, so mappings stay open; they are bounded in number and bytes, the one unused for longest is
// closed first, and one that somebody uses is never closed (docs/design/mappings.md).
//
//   opened --(close: users 0)--> idle --(open)--> opened
//      |                           |--(limit reached, or the owner freed it: forget)--> closed
//      '--(forget)--> doomed --(close: users 0)--> closed
//
// Key: the handle's bytes, the exporter's buffer id and GPU, and the local GPU that does the
// copies.
#pragma once

#include "device/cuda/imports.hpp"

#include <algorithm>
#include <list>
#include <vector>

namespace gantry::device::cuda {

class IpcCache {
  public:
    struct Mapping {
        IpcHandle handle;
        int gpu = -1;  // whose context it is mapped in
        Context context;
        std::uintptr_t address = 0;  // where handle.base is here
        int users = 0;
        bool doomed = false;
        bool is_anchor = false;       // not counted
        std::uint64_t buffer_id = 0;  // here; 0: the driver does not say
    };
    IpcCache(Driver& driver, std::size_t max_entries, Bytes max_bytes, std::uint64_t& losses)
        : driver_(driver),
          imports_(driver),
          max_entries_(max_entries),
          max_bytes_(max_bytes),
          losses_(losses) {}

    // Where descriptors are to be sent (0: they cannot be).
    std::uint32_t inbox() { return imports_.inbox(); }

    struct How {
        bool hidden = false;  // this process does not see the GPU
        bool anchor = false;  // it stays open, and is not counted
    };
    Result<void*> open(const IpcHandle& handle, const Context& context, How how);
    // Device::opens_first(), of another GPU.
    bool opens_first(IpcKind kind, int gpu, const Uuid& other) const {
        if (kind == IpcKind::pool && !imports_.had_pool()) return true;
        return std::none_of(mappings_.begin(), mappings_.end(), [&](const Mapping& mapping) {
            return mapping.gpu == gpu && mapping.handle.gpu == other;
        });
    }
    // The driver refused the first memory of a hidden GPU that was to be opened for this one of ours.
    bool is_kept_away(int gpu, const Uuid& hidden) const {
        const Hidden* const tried = tried_on(gpu, hidden);
        return tried != nullptr && !tried->opened;
    }
    // One more use of a mapping that is there; of one that nobody uses only if its context `lives`.
    // Null: open() it.
    template <class Lives>
    void* open_again(const IpcHandle& handle, int gpu, const Lives& lives) {
        const Iterator hit = lookup(handle, gpu);
        const bool there = hit != mappings_.end() && (hit->users > 0 || lives(hit->context));
        return there ? use(hit) : nullptr;
    }
    // A mapping that went with its context, for those who use it still.
    Result<void*> open_lost(const Mapping& lost, const Context& context);
    void close(const IpcHandle& handle, int gpu);
    Access access(const IpcHandle& handle, int gpu);
    // The exporter freed this buffer. Exporters count alone, so another one's buffer may have the
    // same number: closing that too is harmless.
    void forget(std::uint64_t buffer_id, const Uuid& gpu);
    // `has_ended` is asked once for each process that exported something: it costs system calls.
    void forget_ended_processes(bool (*has_ended)(int process));
    // The mapping around an address; null for other memory.
    const Mapping* find(const void* address) const;
    // One whose addresses this process's own memory has now: its context went unnoticed. Null: none.
    const Mapping* replaced_by(const Location& own) const;

    void forget_context(CUcontext context);
    void clear();
    std::size_t entries() const { return mappings_.size(); }
    Bytes bytes() const { return bytes_; }

  private:
    using Iterator = std::list<Mapping>::iterator;
    // A GPU that this process does not see, and what its driver said when memory there was opened first.
    struct Hidden {
        int gpu = -1;  // of ours
        Uuid other{};
        bool opened = false;
    };
    Iterator lookup(const IpcHandle& handle, int gpu);
    void* use(Iterator mapping);
    Status make_room(Bytes bytes);
    Imports::Mapped map(const IpcHandle& handle, const Context& context);
    bool unmap_overlapping(const IpcHandle& handle);
    Iterator unmap(Iterator mapping);
    Iterator erase(Iterator mapping);
    void note_size();
    Iterator lost(Iterator mapping);
    bool is_refused(const IpcHandle& handle) const;
    template <class Is>
    void forget_if(Is meant);
    const Hidden* tried_on(int gpu, const Uuid& hidden) const;
    void note_try(const IpcHandle& handle, int gpu, const Imports::Mapped& mapped);

    Driver& driver_;
    Imports imports_;
    std::size_t max_entries_;
    Bytes max_bytes_;
    Bytes bytes_ = 0;
    std::size_t anchors_ = 0;  // of mappings_
    std::uint64_t& losses_;    // counts up with mappings that are no more
    std::list<Mapping>
        mappings_;  // the most recently used first; searched linearly, a few hundred at most
    // Gone with their contexts while somebody used them, who closes them still.
    std::list<Mapping> lost_in_use_;
    std::vector<Hidden> hidden_;
    std::list<IpcHandle> refused_;  // handles that the driver does not open: it is not asked again
};

}  // namespace gantry::device::cuda
