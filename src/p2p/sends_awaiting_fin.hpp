// SPDX-License-Identifier: BSD-3-Clause
//
// SendsAwaitingFin: messages of which everything is said and that only wait to be read, by their ids. A
// window of device messages is made of them, and what each costs the processor limits its rate: one
// is two words in a table, beside its request. Whatever but the plain end happens to a message, it
// becomes an Outgoing (OutgoingTable::find).
//
// Ids only grow, so an id names its place. One that waits for long makes the message that would
// have its place an Outgoing from the start.
#pragma once

#include "p2p/request.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gantry::p2p {

class SendsAwaitingFin {
  public:
    bool empty() const { return count_ == 0; }
    bool has_room_for(std::uint64_t id) const { return at(id).request == nullptr; }
    void add(std::uint64_t id, Request& request) {
        at(id) = {id, &request};
        ++count_;
    }
    // Null: not here.
    Request* take(std::uint64_t id) {
        Entry& entry = at(id);
        if (entry.id != id || entry.request == nullptr) return nullptr;
        --count_;
        return std::exchange(entry.request, nullptr);
    }
    // 0: not here.
    std::uint64_t id_of(const Request& request) const {
        for (const Entry& entry : entries_)
            if (entry.request == &request) return entry.id;
        return 0;
    }
    // The ids of those to that rank; -1: to all.
    std::vector<std::uint64_t> to(int peer) const {
        std::vector<std::uint64_t> ids;
        for (const Entry& entry : entries_)
            if (entry.request != nullptr && (peer < 0 || entry.request->peer == peer))
                ids.push_back(entry.id);
        return ids;
    }

  private:
    static constexpr std::size_t kPlaces = 256;
    struct Entry {
        std::uint64_t id = 0;
        Request* request = nullptr;
    };
    Entry& at(std::uint64_t id) { return entries_[id % kPlaces]; }
    const Entry& at(std::uint64_t id) const { return entries_[id % kPlaces]; }

    std::array<Entry, kPlaces> entries_{};
    std::size_t count_ = 0;
};

}  // namespace gantry::p2p
