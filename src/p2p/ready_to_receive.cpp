// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/ready_to_receive.hpp"

namespace gantry::p2p {

bool ReadyToReceive::hear(const wire::RtrSameBuffer& receive, const wire::Handle* handle) {
    // A network that reorders may bring the short form before the whole one that it repeats.
    if (handle == nullptr && receive.buffer_id != handle_.buffer_id) return false;
    if (known_ && static_cast<std::int32_t>(receive.sequence - receive_.sequence) < 0) return false;
    if (handle != nullptr) handle_ = *handle;
    receive_ = receive;
    known_ = true;
    return true;
}

void ReadyToReceive::forget(std::uint64_t sink) {
    unused_.forget(sink);
    if (last_put == sink) last_put = 0;
    if (handle_.buffer_id != sink) return;
    handle_ = {};
    known_ = false;
}

}  // namespace gantry::p2p
