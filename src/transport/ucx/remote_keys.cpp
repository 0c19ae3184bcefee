// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/remote_keys.hpp"

#include <algorithm>
#include <utility>

namespace gantry::transport::ucx {

Result<RemoteKeys::Key*> RemoteKeys::unpack(const Library& library, ucp_ep_h endpoint, int rail,
                                            ConstSpan packed, KeyCounts& counts) {
    // Linear: few, and the one of a moment ago stands first.
    for (auto known = keys_.begin(); known != keys_.end(); ++known) {
        if (known->key == nullptr) continue;  // dropped, and still in use
        if (known->rail != rail || !std::ranges::equal(known->packed, packed)) continue;
        keys_.splice(keys_.begin(), keys_, known);
        ++counts.reused;
        return &keys_.front();
    }
    Key made{rail, {packed.begin(), packed.end()}, nullptr, 0};
    const ucs_status_t status = library->ucp_ep_rkey_unpack(endpoint, packed.data(), &made.key);
    if (status != UCS_OK) return library.failed("reading the key of a peer's memory", status);
    ++counts.unpacked;
    if (keys_.size() >= kKept) evict(library, counts);
    keys_.push_front(std::move(made));
    return &keys_.front();
}

void RemoteKeys::evict(const Library& library, KeyCounts& counts) {
    for (auto oldest = keys_.rbegin(); oldest != keys_.rend(); ++oldest) {
        if (oldest->users > 0) continue;
        if (oldest->key != nullptr) library->ucp_rkey_destroy(oldest->key);
        keys_.erase(std::next(oldest).base());
        ++counts.evicted;
        return;
    }
}

void RemoteKeys::drop(const Library& library) {
    for (Key& known : keys_)
        if (known.key != nullptr) library->ucp_rkey_destroy(std::exchange(known.key, nullptr));
    keys_.remove_if([](const Key& known) { return known.users == 0; });
}

void RemoteKeys::drop(const Library& library, int rail) {
    for (Key& known : keys_)
        if (known.rail == rail && known.key != nullptr)
            library->ucp_rkey_destroy(std::exchange(known.key, nullptr));
    keys_.remove_if([](const Key& known) { return known.key == nullptr && known.users == 0; });
}

}  // namespace gantry::transport::ucx
