// SPDX-License-Identifier: BSD-3-Clause
//
// Incoming: a message as the receiver knows it, from its envelope on. It sits in the matcher's
// unexpected queues until a receive or a matched probe takes it; a rendezvous lives on until its
// last byte is in place.
#pragma once

#include "base/intrusive_list.hpp"
#include "base/mailbox.hpp"
#include "base/task.hpp"
#include "p2p/unexpected_buffer.hpp"
#include "p2p/verdict.hpp"
#include "p2p/request.hpp"
#include "p2p/wire.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace gantry::p2p {

struct BySource {};
struct ByArrival {};

struct UnexpectedMessage : Link<BySource>, Link<ByArrival> {
    explicit UnexpectedMessage(Executor& executor) : arrived(executor), finished(executor) {}

    wire::Envelope envelope{};
    int peer = -1;
    Request* request = nullptr;                    // the receive that took it
    Status failure;                                // the sender is gone before all of it came
    std::unique_ptr<layout::Signature> signature;  // null: it came without (p2p/signatures.hpp)

    // --- eager ---
    UnexpectedBuffer payload;          // when nobody waited for it
    std::uint64_t synchronous_id = 0;  // send id to answer when matched; 0: none

    // --- rendezvous ---
    bool rendezvous = false;
    wire::Rts rts{};
    Mailbox<wire::Chunk> arrived;    // pieces that lie in slots
    Completion finished;             // FIN from the sender, or its payload
    std::optional<Verdict> verdict;  // when it was decided as the RTS was taken
    bool discard_chunks = false;  // the verdict does not use slots: arriving ones go straight back
};
using Incoming = UnexpectedMessage;

// Rendezvous messages from peers, by sender and id. Matched ones are owned here, unexpected ones by the
// matcher.
class IncomingTable {
  public:
    void add_unexpected(Incoming& message) { all_[key_of(message)] = &message; }
    void add_matched(std::unique_ptr<Incoming> message) {
        const Key key = key_of(*message);
        all_[key] = message.get();
        matched_[key] = std::move(message);
    }
    // Null: there is none.
    Incoming* find(int from, std::uint64_t id) const {
        const auto found = all_.find({from, id});
        return found == all_.end() ? nullptr : found->second;
    }
    void remove(int from, std::uint64_t id) {
        all_.erase({from, id});
        matched_.erase({from, id});
    }
    template <class Visit>
    void each_from(int rank, const Visit& visit) {
        for (auto at = all_.lower_bound({rank, 0}); at != all_.end() && at->first.first == rank;
             ++at)
            visit(*at->second);
    }

  private:
    using Key = std::pair<int, std::uint64_t>;
    static Key key_of(const Incoming& message) { return {message.peer, message.rts.send_id}; }
    std::map<Key, Incoming*> all_;
    std::map<Key, std::unique_ptr<Incoming>> matched_;
};

}  // namespace gantry::p2p
