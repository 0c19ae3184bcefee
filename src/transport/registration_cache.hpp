// SPDX-License-Identifier: BSD-3-Clause
//
// RegistrationCache: memory that rails may reach stays registered after its last use, because the
// same buffers come again. What keeps an idle registration right:
//
//   device memory   the driver's identity of the allocation, never given twice (each message
//                   confirms it when it classifies its buffer). The whole allocation is registered
//                   once; another identity at its address drops it
//   host memory     somebody who tells of every unmapping (UnmapNotes), or rails that go by address
//                   and keep no pages. With neither, a registration lasts only as long as its users
//
// Bounded by count and bytes: idle registrations go, the least recently used first; those in use
// are never touched, so the bounds may be passed while many are. Host ranges that overlap are
// joined: a window that slides over an array registers the array.
//
// Ranges that can be found do not overlap. A registration whose memory went away while it was in
// use cannot be found any more and ends with its last user.
#pragma once

#include "transport/transport.hpp"
#include "transport/unmap_notes.hpp"

#include <list>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace gantry::transport {

// Who really registers; ids are the cache's.
class Registrar {
  public:
    virtual ~Registrar() = default;
    virtual Status map(std::uint64_t id, const Extent& extent) = 0;
    virtual void unmap(std::uint64_t id) = 0;
    // The memory of a registration in use is gone, and other memory may come to its address.
    virtual void gone(std::uint64_t) {}
};

struct RegistrationLimits {
    std::size_t entries = 0;  // 0: nothing outlives its use
    Bytes bytes = 0;
};

// What is known about host memory behind an idle registration.
enum class HostPages : std::uint8_t {
    unnoticed,  // it may be unmapped without a word
    noticed,    // every unmapping comes as a note
    any,        // the registration holds whatever lies at the address
};

class RegistrationCache {
  public:
    RegistrationCache(Registrar& registrar, RegistrationLimits limits, HostPages host_pages)
        : registrar_(registrar), limits_(limits), host_pages_(host_pages) {}
    RegistrationCache(const RegistrationCache&) = delete;
    RegistrationCache& operator=(const RegistrationCache&) = delete;
    ~RegistrationCache();

    // A registration around the extent, until give(). Fails as the registrar does; host memory that
    // is refused because too much is registered is tried again when nothing idle is left. A device
    // allocation that was refused is not tried again.
    Result<Region> take(const Extent& extent);
    void give(const Region& region);
    // Where the region lies, while somebody uses it; null otherwise.
    const Extent* in_use(std::uint64_t id) const;

    // Whoever watches mappings notes here, from any thread.
    UnmapNotes& notes() { return notes_; }
    void set_host_pages(HostPages host_pages) { host_pages_ = host_pages; }
    HostPages host_pages() const { return host_pages_; }

    const RegistrationCounts& counts() const { return counts_; }

  private:
    struct Entry {
        Extent extent;
        std::uint64_t id = 0;
        int users = 0;
        bool findable = true;
        std::list<Entry*>::iterator idle{};  // its place, while users == 0
    };
    bool keeps(const Extent& extent) const;
    void read_notes();
    void forget_host(std::uintptr_t begin, Bytes bytes);
    Entry* find(const Extent& extent);
    template <class Visit>
    void each_overlapping(std::uintptr_t begin, Bytes bytes, Visit&& visit);
    Extent widened(const Extent& extent);
    void hide(Entry& entry);
    void lose(Entry& entry);
    void end(Entry& entry);
    bool evict_one();
    void make_room(Bytes bytes);
    Result<Entry*> add(const Extent& extent);

    Registrar& registrar_;
    const RegistrationLimits limits_;
    HostPages host_pages_;
    UnmapNotes notes_;
    std::unordered_map<std::uint64_t, Entry> entries_;
    std::map<std::uintptr_t, Entry*> by_address_;  // the findable ones
    std::list<Entry*> idle_;                       // the least recently used first
    // Allocations that were refused: asking again would cost as much and give the same.
    std::unordered_set<std::uint64_t> refused_;
    std::uint64_t next_id_ = 1;
    RegistrationCounts counts_;
};

}  // namespace gantry::transport
