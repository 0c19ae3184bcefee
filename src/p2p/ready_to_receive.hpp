// SPDX-License-Identifier: BSD-3-Clause
//
// ReadyToReceive: what is known of RTRs between this rank and one peer (p2p/protocols/put_after_rtr.cpp).
// Nothing here is needed for right data: without an RTR a message goes the usual way.
#pragma once

#include "p2p/request.hpp"
#include "p2p/wire.hpp"
#include "plan/use_counts.hpp"

#include <cstdint>

namespace gantry::p2p {

class ReadyToReceive {
  public:
    // --- as the receiver ---
    std::uint64_t named = 0;  // the allocation that the last whole RTR named
    // The put that is on its way to that receive; null: none.
    Request* coming = nullptr;
    std::uint64_t coming_id = 0;
    std::uint32_t expected = 0;  // envelope of the peer that the last RTR waits for

    // A message was got into memory of that GPU which its sender had better put there.
    void pays_on(int gpu) { pays_on_ = gpu; }
    bool pays(int gpu) const { return pays_on_ == gpu && gpu >= 0; }

    // --- as the sender ---
    // The peer's last RTR; false: it is older than one that is known.
    bool hear(const wire::RtrSameBuffer& receive, const wire::Handle* handle);
    // That receive, if it waits for this envelope; null: nothing is known of it.
    const wire::RtrSameBuffer* of(std::uint32_t sequence) const {
        return known_ && receive_.sequence == sequence ? &receive_ : nullptr;
    }
    const device::IpcHandle& handle() const { return handle_; }

    // The allocation that the last put went into; 0: none yet.
    std::uint64_t last_put = 0;
    // One is under way. The next goes another way: there is one flag, and the receiver may have gone on
    // before this side sees the end.
    bool putting = false;

    // Messages that could have been put, were the allocation mapped; the one of now included.
    int unused(std::uint64_t sink) { return unused_.count(sink); }
    void opened(std::uint64_t sink) {
        unused_.forget(sink);
        last_put = sink;
    }

    // A moment's wait for the next RTR is worth it after one that came just too late, and
    // for as long as waiting leads to puts.
    void came_late() { looks_ = kLooksWorth; }
    void put_made() { looks_ = kLooksWorth; }
    bool worth_looking() const { return looks_ > 0; }
    void looked() { --looks_; }

    // The peer freed that allocation.
    void forget(std::uint64_t sink);

  private:
    static constexpr int kLooksWorth = 8;
    int pays_on_ = -1;
    bool known_ = false;
    wire::RtrSameBuffer receive_{};
    device::IpcHandle handle_;
    plan::UseCounts unused_;
    int looks_ = 0;
};

}  // namespace gantry::p2p
