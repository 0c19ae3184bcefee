// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that rails may reach: registered with every rail, kept registered (RegistrationCache), and
// its key: where it lies and one key of UCX per rail.
//
//   key:  | address u64 | region u64 | then for each rail: | length u8 | key of UCX ... |
//
// Cards keep pages: there, host memory stays registered while UCX's own hooks tell us of what is
// unmapped (UnmapWatch), and only while it is used where they cannot be set. A rail that has TCP
// alone goes by address, so nothing needs to be noticed.
//
// Device memory is registered where a card of the rail says that it can; where none does, UCX
// accepts the memory all the same and gives a key that names no card: that is a refusal here. UCX keeps
// what it registered by its address and does not see device memory freed: it is told.
#pragma once

#include "transport/registration_cache.hpp"
#include "transport/ucx/rail.hpp"
#include "transport/ucx/unmap_watch.hpp"

#include <unordered_map>

namespace gantry::transport::ucx {

// Whether to ask for notices of unmapping before host memory is kept registered.
enum class Watching : std::uint8_t { where_pages_are_kept, always };

class Memory final : private Registrar {
  public:
    Memory(const Library& library, const std::vector<Rail>& rails, RegistrationLimits limits,
           Watching watching = Watching::where_pages_are_kept);
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    Result<Region> add(const Extent& extent);
    void remove(const Region& region) { cache_.give(region); }
    RemoteKey key(const Region& region) const;
    // Where a peer's put goes; null when nobody uses such a region now or the bytes leave it.
    std::byte* at(std::uint64_t region, Bytes offset, Bytes bytes) const;
    // For UCX: what the region is on that rail; null and host when it is none.
    struct Source {
        ucp_mem_h handle = nullptr;
        ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
    };
    Source source(const Region& region, int rail) const;
    const RegistrationCounts& counts() const { return cache_.counts(); }
    HostPages host_pages() const { return cache_.host_pages(); }

  private:
    struct Registered {
        Extent extent;
        std::vector<ucp_mem_h> handles;  // by rail
        RemoteKey key;
    };
    Status map(std::uint64_t id, const Extent& extent) override;
    void unmap(std::uint64_t id) override;
    void gone(std::uint64_t id) override;
    Status map_on(std::size_t rail, const Extent& extent, Registered& registered,
                  std::vector<std::byte>& key);
    void drop(Registered& registered);
    void tell_unmapped(const Extent& extent) const;
    void start_watching();

    const Library& library_;
    const std::vector<Rail>& rails_;
    std::unordered_map<std::uint64_t, Registered> registered_;
    bool should_watch_;
    RegistrationCache cache_;  // unmaps what is left, so it goes before what it needs
    UnmapWatch watch_;         // notes into the cache, so it goes first
};

// A peer's key, read.
struct KeyView {
    std::uint64_t address = 0;
    std::uint64_t region = 0;
    ConstSpan packed;  // of the rail asked for
};
// Nothing in `packed` when the key is damaged or has no such rail.
KeyView read_key(const RemoteKey& key, int rail);

}  // namespace gantry::transport::ucx
