// SPDX-License-Identifier: BSD-3-Clause
//
// Outgoing: a message as its sender knows it, while something of it is still to be done: a
// rendezvous until its last byte has left the user's buffer, a synchronous eager message until it
// is matched.
#pragma once

#include "base/mailbox.hpp"
#include "base/recycler.hpp"
#include "base/task.hpp"
#include "p2p/request.hpp"
#include "p2p/sends_awaiting_fin.hpp"
#include "p2p/wire.hpp"
#include "plan/plan.hpp"
#include "plan/question.hpp"

#include <memory>
#include <unordered_map>
#include <vector>

namespace gantry::p2p {

struct Outgoing {
    explicit Outgoing(Executor& executor)
        : answers(executor), finished(executor), grants(executor), got(executor) {}

    std::uint64_t id = 0;
    bool running = false;  // its coroutine is; else nothing is to be done before an answer comes
    int peer = -1;
    Request* request = nullptr;
    Buffer buffer;
    device::Location location;
    Bytes bytes = 0;
    plan::Plan offer;          // what the RTS said
    bool synchronous = false;  // MPI_Ssend

    Mailbox<wire::Cts>
        answers;               // the verdict; a second one when the first could not be carried out
    wire::Cts cts{};           // the verdict in force
    transport::RemoteKey key;  // of the memory that it names
    transport::Region source;  // put wire: the buffer's registration, until the message ends
    Completion finished;       // the receiver copied, or matched (synchronous eager), or gave up
    bool claimable = false;    // it has a claim word
    bool exposed = false;      // the buffer is, to the receiver's transport
    Mailbox<std::uint32_t> grants;  // put wire: units of the receiver's slots that we may put into;
                                    // shared wire: our slots that came back
    // The program wants to take it back: whether the receiver has dropped it (cancel.cpp).
    std::unique_ptr<Completion> withdrawn;
    Completion got;  // the end of the exposure; MPI_ERR_PENDING: the receiver wants it another way
};

// The messages of this rank that are under way, by id. Ids only grow.
class OutgoingTable {
  public:
    explicit OutgoingTable(Executor& executor) : executor_(executor) {}

    std::uint64_t next_id() { return next_id_++; }
    Outgoing& add(int to) { return add(to, next_id_++); }
    Outgoing& add_announced(int to) { return add(to, ++last_announced_ | wire::kAnnounced); }
    // The message of that id; one that only awaits its FIN is materialized for it. Null: there is none.
    Outgoing* find(std::uint64_t id);
    // The message of that send, materialized likewise.
    Outgoing* find(const Request& send);
    void remove(std::uint64_t id) { whole_.erase(id); }
    bool empty() const { return whole_.empty() && awaiting_fin_.empty(); }

    // Sends of which everything is said and that only await their FIN have no other record.
    bool may_await_fin() const { return awaiting_fin_.has_room_for(next_id_); }
    void await_fin(std::uint64_t id, Request& send) { awaiting_fin_.add(id, send); }
    // The send that awaited this FIN, removed; null: it was not one of those.
    Request* take_awaiting(std::uint64_t id) { return awaiting_fin_.take(id); }
    // What only awaits a FIN of that rank, or (-1) of any, is an Outgoing from now on.
    void materialize(int to);
    template <class Visit>
    void each(const Visit& visit) {
        for (auto& [id, message] : whole_)
            visit(*message);
    }

  private:
    Outgoing& add(int to, std::uint64_t id);

    Executor& executor_;
    Recycler<Outgoing> memory_;
    std::unordered_map<std::uint64_t, Recycler<Outgoing>::Owner> whole_;
    SendsAwaitingFin awaiting_fin_;
    std::uint64_t next_id_ = 1, last_announced_ = 0;
};

}  // namespace gantry::p2p
