// SPDX-License-Identifier: BSD-3-Clause
//
// RemoteKeys: a peer's memory keys as UCX wants them, unpacked once for as long as the same bytes
// come again. A pool has one key for the whole job, and a buffer keeps its key while its owner
// keeps it registered. Bounded: the one unused for longest goes first; those of operations in
// flight stay.
#pragma once

#include "transport/ucx/library.hpp"

#include "transport/transport.hpp"

#include <list>
#include <vector>

namespace gantry::transport::ucx {

class RemoteKeys {
  public:
    struct Key {
        int rail = 0;
        std::vector<std::byte> packed;
        ucp_rkey_h key = nullptr;
        int users = 0;  // operations in flight
    };
    static constexpr std::size_t kKept = 64;

    RemoteKeys() = default;
    RemoteKeys(const RemoteKeys&) = delete;
    RemoteKeys& operator=(const RemoteKeys&) = delete;

    // Stays where it is until `drop`, or until nobody uses it.
    Result<Key*> unpack(const Library& library, ucp_ep_h endpoint, int rail, ConstSpan packed,
                        KeyCounts& counts);
    // Keys belong to their endpoint, which is going. UCX counts what it still needs of them itself.
    void drop(const Library& library);
    // Likewise of one rail.
    void drop(const Library& library, int rail);

  private:
    void evict(const Library& library, KeyCounts& counts);
    std::list<Key> keys_;  // the most recently used first
};

}  // namespace gantry::transport::ucx
