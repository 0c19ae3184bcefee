// SPDX-License-Identifier: BSD-3-Clause
//
// Messages: what the parts of point-to-point share: the conversations with peers, the matcher, and the
// tables of messages under way. The messenger's verbs, the arrivals and the protocols are functions
// over it; the bytes themselves are moved by transfer::Context.
//
//   messenger.cpp           verbs: send, receive, probe, cancel
//   arrivals.cpp            what arrives: envelopes in sequence, then everything that names a message
//   eager.cpp               messages that come with their envelope, or right behind it
//   announced.cpp           messages that another layer announces: no envelope, no matching
//   rendezvous_send.cpp     after the RTS, at the sender     offer.cpp    what the RTS says
//   rendezvous_receive.cpp  after the RTS, at the receiver   verdict.cpp  what the receiver decides
//   protocols/              what moves the bytes of one message, by plan
//   losses.cpp              a peer is gone
//   revoked.cpp             a context is revoked; receives that might wait for a peer that is gone
#pragma once

#include "base/counters.hpp"
#include "base/ledger.hpp"
#include "base/slab.hpp"
#include "p2p/conversation.hpp"
#include "p2p/matcher.hpp"
#include "p2p/messenger.hpp"
#include "p2p/outgoing.hpp"
#include "p2p/reason.hpp"
#include "p2p/signatures.hpp"
#include "transfer/context.hpp"

#include <memory>
#include <vector>

namespace gantry::p2p {

struct SendByFlags;  // protocols/flagged_message.hpp
struct ReceiveByFlags;

class Messages {
  public:
    explicit Messages(transfer::Context& transfer);
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;
    ~Messages();

    // --- what all protocols use ---
    transfer::Context& context;
    Executor& executor;
    device::Device& device;
    plan::Explain& explain;
    Timeline* const timeline;  // null: nobody traces
    Ledger counted;
    Matcher matcher;
    Slab<Request> requests;
    OutgoingTable outgoing;
    IncomingTable incoming;
    // Messages whose arrival is notified by flags (protocols/flagged_message.hpp).
    IntrusiveList<SendByFlags> sends_by_flags;
    IntrusiveList<ReceiveByFlags> receives_by_flags;

    Conversation& with(int rank) {
        Conversation* const known = conversations_[static_cast<std::size_t>(rank)].get();
        return known != nullptr ? *known : begin(rank);
    }
    transfer::Endpoint& endpoint(int rank) { return with(rank).endpoint; }
    // Ranks of other jobs have come: they have numbers behind the known ones.
    void grow() { conversations_.resize(static_cast<std::size_t>(context.endpoints.size())); }
    // Whether no message to or from that peer is under way.
    bool is_quiet(int peer);
    // A peer of another job, with which nothing is under way, is gone, and its number becomes another's.
    void forget(int peer);
    // Why nothing reaches that rank any more; success: something may.
    const Status& lost(int rank) { return endpoint(rank).lost; }
    template <class Header>
    Status send(int to, wire::Kind kind, const Header& header, transport::ConstSpan payload = {}) {
        return context.send(endpoint(to), kind, header, payload);
    }

    // --- envelopes and matching ---
    // What messages of the program carry behind their envelopes; null: nothing.
    const Signatures* signatures = nullptr;
    void carry_signatures(const Signatures& of_program);
    // While a send is started: its envelope says what the buffer holds.
    class SaysSignature {
      public:
        SaysSignature(Messages& messages, const Group& group, const Buffer& buffer)
            : messages_(messages) {
            if (messages.signatures != nullptr && group.is_of_program()) [[unlikely]]
                messages.leaving_ = messages.signatures->of(buffer);
        }
        ~SaysSignature() { messages_.leaving_.reset(); }
        SaysSignature(const SaysSignature&) = delete;
        SaysSignature& operator=(const SaysSignature&) = delete;

      private:
        Messages& messages_;
    };
    // `leave(kind, header)` sends it.
    template <class Header, class Leave>
    Status send_envelope_by(wire::Kind kind, const Header& header, const Leave& leave) {
        if (!leaving_) [[likely]]
            return leave(kind, wire::bytes_of(header));
        const wire::SignedEnvelope<Header> says_more{header, {*leaving_, kind}};
        return leave(wire::kSigned, wire::bytes_of(says_more));
    }
    template <class Header>
    Status send_envelope(int to, wire::Kind kind, const Header& header,
                         transport::ConstSpan payload = {}) {
        const transfer::Endpoint& peer = endpoint(to);
        return send_envelope_by(kind, header,
                                [&](wire::Kind its_kind, transport::ConstSpan its_header) {
                                    return peer.transport->send(to, its_kind, its_header, payload);
                                });
    }
    // `send`: the request that ends with the message; null: it has left when this call ends.
    wire::Envelope next_envelope(const Group& group, int to, int tag, Bytes bytes,
                                 const Request* send);
    // The receive that takes this envelope, removed from the matcher; null: none is posted.
    Request* arrive(int from, const wire::Envelope& envelope);
    // Sends an RTS, in short where the template of the conversation says the rest.
    Status send_rts(int to, const wire::Rts& rts);
    // A receive has met its message: moves the payload or starts the protocol.
    void deliver(std::unique_ptr<Incoming> message, Request& receive);
    // The same of a message that came before its receive.
    void deliver_late(std::unique_ptr<Incoming> message, Request& receive);
    void deliver_eager(const wire::Envelope& envelope, Conversation& sender,
                       std::uint64_t synchronous_id, transport::ConstSpan payload,
                       Request& receive);
    // Why nothing can come from that source any more; success: something may.
    Status nothing_comes(const Group& group, int source);

    // --- revoked contexts, and losses (revoked.cpp) ---
    bool is_any_revoked = false;
    std::vector<std::uint32_t> revoked_contexts;
    // Peers, in the order in which this rank heard; -1: its number is another's.
    std::vector<int> losses;
    std::vector<Reason> reasons;  // that others have told; one for each context
    void on_reason(int from, transport::ConstSpan header, transport::ConstSpan);
    Status revoked(const Group& group) const;
    bool is_revoked(std::uint32_t context) const;
    void revoke(std::uint32_t context);
    // A message that no receive has taken: it is refused, or waits for one.
    void drop(std::unique_ptr<Incoming> message, const Status& why);
    void keep(std::unique_ptr<Incoming> message) {
        if (is_any_revoked) [[unlikely]]
            return keep_or_drop(std::move(message));
        matcher.keep(std::move(message));
    }
    void keep_or_drop(std::unique_ptr<Incoming> message);
    // Why a receive from any source shall not wait silently; success: it may.
    Status unacknowledged(const Group& group);
    void pend_if_unacknowledged(Request& receive);
    void unpend_acknowledged(const Group& group);

    // Bytes that came eagerly have been taken: their sender may send as many again.
    void consumed_eager(Conversation& sender, Bytes bytes);

    // --- announced messages (announced.cpp) ---
    Result<Request*> announce(int to, const Buffer& buffer, const device::Location& location,
                              const SendAnnouncement& send);
    std::unique_ptr<Incoming> take_announced(int from, const wire::Rts& rts);
    void refuse(std::unique_ptr<Incoming> message, const Status& why);

    // --- requests ---
    // The buffer of a request stays where it is until finish_request.
    void hold_memory(Request& request);
    void let_go_of_memory(Request& request);
    void finish_request(Request& request, Status status);
    // Of a receive that has got its message: how that came.
    void count_received(plan::Protocol way, const Request& receive) {
        if (timeline != nullptr) [[unlikely]]
            timeline->came(&receive, plan::name(way).data());
        Traffic* traffic = receive.traffic;
        (traffic != nullptr ? *traffic : counted.elsewhere.received).add(receive.outcome.bytes);
        if (way != plan::Protocol::eager)
            counted.received[static_cast<std::size_t>(way)].add(receive.outcome.bytes);
    }
    void count_sent(const Group& group, Bytes bytes, bool has_left) {
        (group.traffic != nullptr ? *group.traffic : counted.elsewhere).sent.add(bytes);
        if (!has_left) counted.sent_later.add(bytes);
    }
    // The program is in a call that returns as soon as this request is done; null: it is not.
    void await(const Request* request) { awaited_ = request; }

    // --- messages under way ---
    // Starts what the sender of a message has to do: at once, or when the first answer comes.
    void start(Outgoing& message);
    void start_all(int to = -1);
    void remove(Outgoing& message);
    // Nothing more comes for a message: whatever its coroutine waits for ends with `why`.
    void end_early(Outgoing& message, const Status& why);
    // The end of an exposure whose memory the receiver did not get, and why.
    void end_exposure(Outgoing& message, const Status& why);
    // Asks the receiver to drop a message that no receive has taken; its answer decides (cancel.cpp).
    void cancel(const Request& send);
    // A message of that peer was read whole: its FIN leaves with the others of the same turn.
    void queue_fin(int from, std::uint64_t send_id);
    void send_fins();
    // Gives back what a message holds of its sender's that failed before its receive was posted.
    void give_back(Incoming& message);
    // A put after RTR has ended, well or not; false: that message is none.
    bool end_of_put(int from, std::uint64_t send_id, const Status& how);
    void on_peer_lost(int peer, const Status& why);
    // Pieces whose flags are up go to whoever waits for them.
    int take_raised_flags();

    // --- progress ---
    int progress();
    bool idle() const;
    // Whether progress() is worth a thread of its own: something is under way, or a receive waits.
    bool pending() const;
    // What is known of it here, with what was counted for all communicators; the rest is left alone.
    void write(const BothWays& of_communicators, Counters& counters) const;

  private:
    Conversation& begin(int rank);
    void claim_what_is_due();

    // arrivals.cpp
    // `follower`: of a message whose RTS may not have come yet.
    enum class Order : std::uint8_t { any, follower };
    void register_handlers();
    template <transport::MessageKind kind, class Header, auto Method, Order order = Order::any>
    void handle();
    template <wire::Kind kind>
    void on_envelope(int from, transport::ConstSpan header, transport::ConstSpan payload);
    template <transport::MessageKind kind, class Header, auto Method, Order order>
    void on_header(int from, transport::ConstSpan header, transport::ConstSpan payload);
    void take_envelope(Conversation& sender, transport::MessageKind kind,
                       transport::ConstSpan header, transport::ConstSpan payload);
    void take_signed(Conversation& sender, transport::ConstSpan header,
                     transport::ConstSpan payload);
    void compare(const layout::Signature& sent, const wire::Envelope& envelope,
                 Request& receive) const;
    void take_followers(int from, std::uint64_t send_id);
    void on_chunk(int from, const wire::Chunk& chunk, transport::ConstSpan = {});
    void on_credit(int from, const wire::Credit& credit, transport::ConstSpan);
    void on_cts(int from, const wire::Cts& cts, transport::ConstSpan payload);
    void on_fins(int from, const wire::Fins& fins, transport::ConstSpan payload);
    void on_fin(int from, const wire::Fin& fin, transport::ConstSpan payload);
    void on_fin_at_sender(int from, const wire::Fin& fin, const Status& status);
    void on_forget(int from, const wire::Forget& forget, transport::ConstSpan);
    // cancel.cpp
    bool drop_unexpected(int from, std::uint64_t send_id);
    void on_cancel(int from, const wire::Cancel& cancel, transport::ConstSpan);
    void on_cancelled(int from, const wire::Cancelled& answer, transport::ConstSpan);
    // eager.cpp
    void on_eager(Conversation& sender, transport::MessageKind kind, transport::ConstSpan header,
                  transport::ConstSpan payload);
    void on_payload(int from, const wire::Payload& follower, transport::ConstSpan payload);
    void on_eager_credit(int from, const wire::EagerCredit& credit, transport::ConstSpan);
    // rts_templates.cpp
    void on_rts(int from, const wire::Rts& rts);
    void on_rts_other_buffer(int from, const wire::RtsOtherBuffer& rts);
    void take_rts(int from, const wire::Rts& whole, const wire::RtsFromTemplate& own);
    // One that needs no coroutine: one copy, or pieces notified by flags. Else `verdict` is what was
    // decided, if anything was. `late`: the message was there before its receive.
    bool deliver_at_once(int from, const wire::Rts& whole, const wire::RtsFromTemplate& own,
                         Request& receive, bool late, std::optional<Verdict>& verdict);
    // protocols/put_after_rtr.cpp
    void on_rtr(int from, const wire::Rtr& rtr, transport::ConstSpan);
    void on_rtr_same_buffer(int from, const wire::RtrSameBuffer& rtr, transport::ConstSpan);
    void hear_rtr(int from, const wire::RtrSameBuffer& rtr, const wire::Handle* handle);
    void on_put_request(int from, const wire::PutRequest& put);

    std::vector<std::unique_ptr<Conversation>> conversations_;
    std::vector<int> fin_queues_;  // peers with messages in `fins`
    bool open_batch_ = false;      // gets since the last turn may wait for others
    const Request* awaited_ = nullptr;
    std::optional<layout::Signature> leaving_;  // of the message that is being sent
};

// The end of a message that the program wants to take back: the receiver's answer comes first.
// Success: the message is cancelled; else `otherwise`.
Task<Status> settle_cancel(Executor& executor, Outgoing& message, Status otherwise);

// Tells the other end of a message that this one gave up, and why. False: it is lost, or cannot be told.
bool tell_failure(Messages& messages, int to, std::uint64_t send_id, const Status& why,
                  wire::For target);

}  // namespace gantry::p2p
