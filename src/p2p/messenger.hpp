// SPDX-License-Identifier: BSD-3-Clause
//
// Messenger: point-to-point messaging of one engine. It numbers and sends envelopes, matches what
// arrives, asks the planner, and runs the protocols. Self, shared memory and network look the same
// to its callers. All calls return at once; `progress()` moves everything.
//
// Collectives use the same operations, as tasks (coll/exchange.hpp), on a Group whose context has
// kCollectiveContext set.
#pragma once

#include "base/counters.hpp"
#include "base/task.hpp"
#include "device/device.hpp"
#include "p2p/group.hpp"
#include "p2p/request.hpp"
#include "transfer/bounce_buffer.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace gantry::transfer {
class Context;
}

namespace gantry::p2p {

class Signatures;          // of data: p2p/signatures.hpp
class Messages;            // everything inside (p2p/messages.hpp)
struct UnexpectedMessage;  // a message that a matched probe has taken out of the queues
namespace wire {
struct Rts;
}
// Sends the RTS of an announced message, inside the call.
using SendAnnouncement = std::function<Status(const wire::Rts&)>;

// A message found by a probe.
struct Matched {
    UnexpectedMessage* message = nullptr;
    Outcome outcome;
};

class Messenger {
  public:
    // Moves its bytes by `context`, which outlives the messenger, and takes the active messages of
    // point-to-point from there.
    explicit Messenger(transfer::Context& context);
    ~Messenger();
    Messenger(const Messenger&) = delete;
    Messenger& operator=(const Messenger&) = delete;

    // From now on messages of the program carry signatures, and are compared with their receives.
    // `signatures` outlives the messenger.
    void carry_signatures(const Signatures& signatures);

    // --- the MPI operations ----------------------------------------------------------------------
    // A request that may be done already, or the reason why nothing was started. Tags and ranks are
    // already checked; MPI_PROC_NULL is the caller's business.
    Result<Request*> isend(const Group& group, const Buffer& buffer, int destination, int tag,
                           SendMode mode);
    // The same for who waits at once; null: the message has left, there is nothing to wait for.
    Result<Request*> send_to_wait(const Group& group, const Buffer& buffer, int destination,
                                  int tag, SendMode mode);
    Result<Request*> ireceive(const Group& group, const Buffer& buffer, int source, int tag);
    // The same for who waits at once, and never cancels it: its sender may be told where its bytes
    // go.
    Result<Request*> receive_to_wait(const Group& group, const Buffer& buffer, int source, int tag);
    // Both at once; null: nothing to send, or to receive. `waits`: the caller waits for both, and
    // cancels neither. A send that fails as it starts tells so by its request, for the receive may
    // have to be waited for all the same.
    struct Half {
        Buffer buffer;
        int peer, tag;
        SendMode mode = SendMode::standard;  // of what is sent
    };
    struct Exchange {
        Request* sending = nullptr;
        Request* receiving = nullptr;
    };
    Result<Exchange> exchange(const Group& group, const Half* outgoing, const Half* incoming,
                              bool waits);
    // The oldest matching message, left in place; message is null when there is none.
    Matched probe(const Group& group, int source, int tag);
    // The same, taken out: only `receive_matched` gets it.
    Matched take(const Group& group, int source, int tag);
    // Why nothing can come from there any more: its rank, or (MPI_ANY_SOURCE) every other member,
    // is lost. Success: something may.
    Status nothing_comes(const Group& group, int source) const;
    Result<Request*> ireceive_matched(const Group& group, Matched matched, const Buffer& buffer);
    // Cancels a receive that is not matched yet: true, and it is complete. Of a send the receiver
    // is asked: false, and the request tells in the end.
    bool cancel(Request& request);

    // --- announced messages (announced.cpp) -------------------------------------------------------
    // A rendezvous whose RTS travels inside a message of the caller's, which says where the bytes go
    // instead of a communicator and a tag. Each peer takes those messages in the order of the calls.
    Result<Request*> announce(int to, const Buffer& buffer, const device::Location& location,
                              const SendAnnouncement& send);
    // At the other end: known from now on. It is received by ireceive_matched, or refused.
    Matched take_announced(int from, const wire::Rts& rts);
    void refuse(Matched announced, const Status& why);

    // Memory to receive into, in one run, what shall replace that buffer, which is being sent.
    transfer::BounceBuffer bounce_buffer(const Buffer& replaced);

    // --- requests --------------------------------------------------------------------------------
    // A request run by another layer (a collective): complete it with Request::complete.
    Result<Request*> create_request(RequestKind kind);
    // Gives the handle back. Not done yet: it goes on detached and is released at completion.
    void release(Request* request);
    // The program has freed it, and may learn of its end by other means, and then free its buffer.
    void let_go_of_memory(Request& request);
    // The same of a request that is done and was never shown to the program.
    void discard(Request* request);
    Request* find(MPI_Request handle) const;            // null for garbage, freed and null handles
    std::uint32_t index(const Request* request) const;  // for MPI_Request_toint
    Request* at(std::uint32_t index) const;
    std::size_t count(bool (*counts)(const Request&));

    // --- progress --------------------------------------------------------------------------------
    int progress();
    // For a blocking wait, after a turn that brought nothing (Context::look_again).
    int look_again();
    bool idle() const;  // nothing queued, copied or awaited by this engine
    // Whether anything may happen without a call of the program: work under way, a posted receive.
    bool pending() const;
    // Ends when everything this rank sent has left it (MPI_Finalize, before the transports close).
    Task<Status> drain(Executor& executor);

    // --- ranks of other jobs (transfer/endpoint.hpp: their numbers) -----------------------------
    // They have come.
    void grow();
    bool is_quiet(int peer);
    // Nothing will be sent to that one any more: it may close what it has mapped of our memory.
    void withdraw_memory(int peer);
    void forget(int peer);

    // --- what goes on without lost ranks (revoked.cpp) ---------------------------------------------
    // All that a communicator has of its own fails from now on, with MPIX_ERR_REVOKED.
    void revoke(std::uint32_t context);
    bool is_revoked(std::uint32_t context) const;
    // Peers that are lost, in the order in which this rank heard of it.
    const std::vector<int>& losses() const;
    // The program has acknowledged some (Group::acknowledged).
    void acknowledged(const Group& group);

    // --- what was counted ------------------------------------------------------------------------
    // Writes what messages are concerned with (`of_communicators`: what all groups with a `traffic`
    // have counted); the rest is left alone.
    void write(const BothWays& of_communicators, Counters& counters) const;
    // Peaks are of the time from now on.
    void begin_peaks_anew();
    Executor& executor();

  private:
    // What a message is sent from, if its receiver is not lost.
    Result<device::Location> source_of(const Group& group, const Buffer& buffer, int destination);
    [[gnu::cold, gnu::noinline]] void give_up(Request& request);
    Result<Request*> start_receive(const Group& group, const Buffer& buffer, int source, int tag,
                                   bool waits);

    std::unique_ptr<Messages> messages_;
};

}  // namespace gantry::p2p
