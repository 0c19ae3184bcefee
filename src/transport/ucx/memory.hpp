// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that peers may write into, registered with every rail, and its key: where it lies and one
// key of UCX per rail. Transports that need registered memory keep registrations in UCX's own
// cache, which watches for unmapping; so asking again for the same buffer costs a look-up, and a
// buffer that was freed and came back elsewhere is never taken for the old one.
//
//   key:  | address u64 | region u64 | then for each rail: | length u8 | key of UCX ... |
#pragma once

#include "transport/transport.hpp"
#include "transport/ucx/rail.hpp"

#include <unordered_map>

namespace gantry::transport::ucx {

class Memory {
  public:
    Memory(const Library& library, const std::vector<Rail>& rails)
        : library_(library), rails_(rails) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();

    Result<Region> add(void* address, Bytes bytes);
    void remove(const Region& region);
    RemoteKey key(const Region& region) const;
    // Where a peer's put goes; null when there is no such region or the bytes leave it.
    std::byte* at(std::uint64_t region, Bytes offset, Bytes bytes) const;

  private:
    struct Registered {
        std::byte* address;
        Bytes bytes;
        std::vector<ucp_mem_h> handles;  // by rail
        RemoteKey key;
    };
    Status add_to(std::size_t rail, void* address, Bytes bytes, Registered& registered,
                  std::vector<std::byte>& key);
    void drop(Registered& registered);
    const Library& library_;
    const std::vector<Rail>& rails_;
    std::unordered_map<std::uint64_t, Registered> regions_;
    std::uint64_t next_id_ = 1;
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
