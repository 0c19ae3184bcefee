// SPDX-License-Identifier: BSD-3-Clause
//
// Announcements: what is known of announced receives between this rank and one peer
// (p2p/protocols/put_announced.cpp). Nothing here is needed for right data: without an announcement
// a message goes the usual way.
#pragma once

#include "p2p/request.hpp"
#include "p2p/use_counts.hpp"
#include "p2p/wire.hpp"

#include <cstdint>

namespace gantry::p2p {

class Announcements {
  public:
    // --- as the receiver ---
    std::uint64_t named = 0;  // the allocation that the last whole announcement named
    // The put that is on its way to that receive; null: none.
    Request* coming = nullptr;
    std::uint64_t coming_id = 0;
    std::uint32_t expected = 0;  // envelope of the peer that the last announced receive waits for

    // --- as the sender ---
    // The peer's last announced receive; false: it is older than one that is known.
    bool hear(const wire::ReadyAgain& receive, const wire::Handle* handle);
    // That receive, if it waits for this envelope; null: nothing is known of it.
    const wire::ReadyAgain* of(std::uint32_t sequence) const {
        return known_ && receive_.sequence == sequence ? &receive_ : nullptr;
    }
    const device::IpcHandle& handle() const { return handle_; }

    // A put into that allocation, made by its plan; the next one like it needs no question.
    struct Put {
        std::uint64_t source = 0, sink = 0;  // allocations; 0: none yet
        Bytes bytes = 0;
        device::Engine engine = device::Engine::automatic;
        device::Notice notice = device::Notice::event;
    };
    Put last_put;
    // One is under way. The next goes another way: there is one flag, and the receiver may have gone on
    // before this side sees the end.
    bool putting = false;

    // Messages that could have been put, were the allocation mapped; the one of now included.
    int unused(std::uint64_t sink) { return unused_.count(sink); }
    void opened(std::uint64_t sink) { unused_.forget(sink); }

    // A moment's wait for the next announcement is worth it after one that came just too late, and
    // for as long as waiting leads to puts.
    void came_late() { looks_ = kLooksWorth; }
    void put_made() { looks_ = kLooksWorth; }
    bool worth_looking() const { return looks_ > 0; }
    void looked() { --looks_; }

    // The peer freed that allocation.
    void forget(std::uint64_t sink);

  private:
    static constexpr int kLooksWorth = 8;
    bool known_ = false;
    wire::ReadyAgain receive_{};
    device::IpcHandle handle_;
    UseCounts unused_;
    int looks_ = 0;
};

}  // namespace gantry::p2p
