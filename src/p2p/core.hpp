// SPDX-License-Identifier: BSD-3-Clause
//
// Core: what the messenger's parts share - peers, matcher, tables of messages under way, staging
// pools - and the dispatch of arriving messages. The protocols (p2p/protocols/) are free coroutines
// over it.
#pragma once

#include "base/config.hpp"
#include "base/recycler.hpp"
#include "base/scope.hpp"
#include "base/slab.hpp"
#include "p2p/announcements.hpp"
#include "p2p/claims.hpp"
#include "p2p/gpu_neighbours.hpp"
#include "p2p/mappings.hpp"
#include "p2p/matcher.hpp"
#include "p2p/messenger.hpp"
#include "p2p/named_memory.hpp"
#include "p2p/outgoing.hpp"
#include "p2p/host_copies.hpp"
#include "p2p/in_use.hpp"
#include "p2p/shared_gpu.hpp"
#include "p2p/slot_flags.hpp"
#include "p2p/sink_guess.hpp"
#include "p2p/slots.hpp"
#include "p2p/unread.hpp"
#include "plan/explain.hpp"

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace gantry::p2p {

struct OpenMemory;   // of a peer, as reads in flight use it (protocols/get_again.cpp)
struct FlaggedSend;  // protocols/flagged.hpp

// How one rank is reached, and the state of the conversation with it.
struct Peer {
    transport::Transport* transport = nullptr;
    transport::PeerFacts facts;
    Bytes eager_limit = 0;            // largest contiguous host message sent at once
    std::uint32_t next_sent = 0;      // sequence of the next envelope to it
    std::uint32_t next_expected = 0;  // sequence of the next envelope from it
    Bytes eager_outstanding = 0;      // sent eagerly and not yet reported as consumed
    Bytes eager_consumed = 0;         // received and not yet reported
    Status lost;                      // why it cannot be reached any more
    std::unordered_set<std::uint64_t>
        direct_buffers;  // our allocations that it asked to have named, not staged
    SinkGuess sinks;     // where our staged messages to it ended
    Mappings mappings;   // what is known of mappings between it and us
    // The last offer of device memory that was only to be read: the next one from the same
    // allocation is made like it (send_again).
    struct Offer {
        std::uint64_t source = 0;           // the allocation; 0: none
        std::uint64_t request_version = 0;  // its request may be repeated while this is so
        plan::Question question;
        plan::Facts facts;
        plan::Choice choice;
    };
    Offer last_offer;
    // The last message to it that was told by flags, likewise.
    struct FlaggedOffer {
        std::uint64_t source = 0, request_version = 0;
        Bytes bytes = 0, chunk = 0;
        bool budget = false;
        device::Notice notice = device::Notice::event;
    };
    FlaggedOffer last_flagged;
    // The last of them; its receiver answered: it took it the whole way, where parts are of no use.
    std::uint64_t last_flagged_id = 0;
    bool last_answered = false;
    // So many large ones to come go by chunks: there were no slots for all of the last.
    int go_by_chunks = 0;
    // What the next requests to send may repeat (requests_to_send.cpp): the last that said more than
    // that, without what is each message's own; each such one is a new version.
    wire::RequestToSend request_sent{};
    std::uint64_t request_version = 0;
    wire::RequestToSend request_received{};
    // The last device message that was read out of its memory by its plan alone, for the short way
    // of the next one (get_again): what must be the same, and what the plan said.
    struct Get {
        std::uint64_t source = 0;  // its allocation; 0: none yet
        Bytes bytes = 0;
        int gpu = -1;  // of our buffer
        device::Engine engine = device::Engine::automatic;
        device::Notice notice = device::Notice::event;
        bool put_is_better = false;  // if its sender knew our buffer
        OpenMemory* open = nullptr;  // while such reads are under way
    };
    Get last_get;
    // The last of its messages that was told by flags and taken into memory of a device, likewise
    // (take_flagged). A mapping that did not pay for the n-th message does not for one before it.
    struct Taken {
        wire::Plan offer{};
        std::uint8_t source_gpu[16]{};
        std::uint8_t source_ipc = 0;
        Bytes bytes = 0;  // 0: none yet
        int gpu = -1;     // of our buffer
        device::IpcKind ipc = device::IpcKind::none;
        int gets_staged = 0, puts_staged = 0;
        bool takes_turns = false;
        plan::GpuUser last_user = plan::GpuUser::unknown;
        device::Engine engine = device::Engine::h2d;
        device::Notice notice = device::Notice::event;
    };
    Taken last_taken;
    Announcements announcements;
    unsigned read_by_window = 0;  // sent so (windows.hpp) since it said anything
    // Its messages that were read and that it has not been told of (tell_finished).
    std::vector<std::uint64_t> finished;
    bool pool_pinned[2] = {false, false};  // its pools, as mapped here, are known to the driver
    struct Early {
        transport::MessageKind kind;
        std::vector<std::byte> header, payload;
    };
    std::map<std::uint32_t, Early> early;  // envelopes that overtook others, by sequence
    // What follows a request to send that has not come yet, or waits in `early`, by its id; and the
    // last such id that came (a sender's ids only grow).
    std::map<std::uint64_t, std::vector<Early>> early_followers;
    std::uint64_t last_rendezvous = 0;
};

class Core final : public transport::Receiver {
  public:
    Core(Executor& executor, device::Device& device, std::vector<transport::Transport*> transports,
         int world_rank, int world_size, const config::Config& config, plan::Explain& explain);
    ~Core() override;

    // --- what protocols use ---
    Executor& executor;
    device::Device& device;
    plan::Explain& explain;
    plan::Tuning tuning;
    NamedMemory named;  // of ours, for peers to map
    Matcher matcher;
    Slab<Request> requests;
    HostCopies host_copies;
    Scope operations;  // every protocol coroutine under way
    // Messages told by flags beside slots (protocols/flagged.hpp).
    struct FlaggedMessages {
        FlagNumbers numbers;
        AwaitedFlags awaited;
        IntrusiveList<FlaggedSend> sends;
        IntrusiveList<FlaggedReceive> receives;
        bool pinned = false;  // the flags are known to the driver
    };
    FlaggedMessages flagged;

    int world_rank() const { return world_rank_; }
    Bytes eager_budget() const { return config_.eager_budget; }
    Nanoseconds claim_wait() const { return config_.claim_wait; }
    Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
    template <class Header>
    Status send(int to, wire::Kind kind, const Header& header, transport::ConstSpan payload = {}) {
        return peer(to).transport->send(to, kind, wire::bytes_of(header), payload);
    }
    // This rank's staging memory, reserved (and, for device slots, pinned) at first use.
    Result<SlotPool*> pool(transport::Pool which);
    // Its registration with the transport to that peer: puts go into slots and out of them.
    Result<transport::Region> pool_region(int to);
    // A peer's shared slot as mapped here; pinned when a device will read it.
    Result<std::byte*> peer_slot(int owner, transport::Pool which, Bytes offset, bool for_device);

    // Nothing more comes for that message: whatever its coroutine waits for ends with `why`.
    void end_early(Outgoing& message, const Status& why);
    // The end of a loan that the receiver did not fetch, and why.
    void end_loan(Outgoing& message, const Status& why);
    // Announces a message, in short where the last one to that peer was alike.
    Status request(int to, const wire::RequestToSend& rts);
    // Announces one whose payload follows by itself, and may travel with it.
    Status request_with_payload(int to, const wire::RequestToSend& rts) {
        return peer(to).transport->send_with_next(to, wire::kRequestToSend, wire::bytes_of(rts),
                                                  {});
    }

    // Where a buffer is; host without any driver call while the program uses no GPU.
    Result<device::Location> locate(const Buffer& buffer);
    // This rank copies to or from that GPU: its neighbours look.
    void use_gpu(int gpu) { gpu_neighbours_.mark(device, gpu); }
    // Its buffer stays where it is until finish_request.
    void hold_memory(Request& request) {
        if (!request.location.on_device()) return;
        use_gpu(request.location.gpu);
        request.in_use = in_use_.hold(request.location, device.losses());
    }
    // What needs the compute queue of that GPU waits for a turn, as far as is known.
    bool takes_turns(int gpu) const {
        const device::GpuFacts& facts = device.gpu_facts(gpu);
        return facts.queue_turn > 0 && gpu_neighbours_.use(facts.uuid);
    }
    void let_go_of_memory(Request& request) {
        in_use_.release(std::exchange(request.in_use, InUse::Hold{0}));
    }
    plan::End end_of(const device::Location& location, const Buffer& buffer) const;
    plan::Facts facts_for(int to, const device::Location& mine, bool i_am_source,
                          const device::Uuid* other_gpu);
    // Of an offer, whose receiver is not known yet.
    plan::Facts facts_for_offer(int to, const device::Location& source);

    // How this process stands with a GPU that it may share with others.
    SharedGpu& shared_gpu(int gpu) {
        const auto index = static_cast<std::size_t>(gpu + 1);  // -1: no GPU
        while (shared_gpus_.size() <= index)
            shared_gpus_.push_back(std::make_unique<SharedGpu>(
                SharedGpu::Limits{config_.gpu_turns, config_.gpu_trust}));
        return *shared_gpus_[index];
    }
    // A copy whose time matters is in flight while this lives; `absences` counts the times that the
    // program kept us from looking at such.
    class Watch {
      public:
        explicit Watch(Core& core) : core_(core) {
            if (core_.watches_++ == 0) core_.last_look_ = core_.executor.now();
        }
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        ~Watch() { --core_.watches_; }

      private:
        Core& core_;
    };
    std::uint64_t absences() const { return absences_; }

    // plan::choose with this engine's tuning. It is a pure function, and programs repeat
    // themselves: the last answers are remembered.
    const plan::Choice& choose(const plan::Question& question, const plan::Facts& facts);

    // --- claims: a message whose sender is to put ---
    // Gives it a word; false: it goes without.
    bool name_claim(Outgoing& message);
    // Whether we still are the ones to copy; else the receiver does.
    bool claim_as_sender(const Outgoing& message);
    // From then on we copy ourselves if the sender has not begun: the message is told by a chunk of
    // pool kClaimed.
    void claim_later(int from, std::uint64_t send_id, Nanoseconds when);

    // --- messages under way ---
    std::uint64_t next_message_id() { return next_id_++; }
    Outgoing& add_outgoing(int to) { return add_outgoing(to, next_id_++); }
    // One that only waits to be read (unread.hpp), by the last offer to its peer.
    bool has_room_for_unread() const { return unread_.has_room_for(next_id_); }
    Status send_unread(Request& send, const wire::Envelope& envelope);
    // What only waits to be read by that rank, or (-1) by all, is Outgoing from now on.
    void make_whole(int to);
    // Starts what its sender has to do: at once, or when the first answer comes.
    void start(Outgoing& message);
    void start_all_outgoing();
    Outgoing* outgoing(std::uint64_t id);  // made whole if it only waited to be read
    void remove_outgoing(std::uint64_t id);
    void add_incoming(std::unique_ptr<Incoming> message);  // matched rendezvous, until it ends
    void remove_incoming(int from, std::uint64_t id);

    // --- matching ---
    wire::Envelope next_envelope(const Group& group, int to, int tag, Bytes bytes);
    // The newest envelope could not leave: the next one takes its place, or the peer would wait for
    // it for ever.
    void take_back_envelope(int to) { --peer(to).next_sent; }
    // A receive has met its message: moves the payload or starts the protocol.
    void deliver(std::unique_ptr<Incoming> message, Request& receive);
    // One that came before its receive.
    void deliver_late(std::unique_ptr<Incoming> message, Request& receive);
    void deliver_eager(const wire::Envelope& envelope, int from, std::uint64_t synchronous_id,
                       transport::ConstSpan payload, Request& receive);
    void finish_request(Request& request, Status status);
    // Why nothing can come from there any more; success: something may.
    Status nothing_comes(const Group& group, int source);
    // The program is in a call that returns as soon as this request is done; null: it is not.
    void await(const Request* request) { awaited_ = request; }
    // A message of that peer was read whole: it is told with the others that end in the same turn.
    void read_whole(int from, std::uint64_t send_id);
    void tell_finished();
    void consumed_eager(int from, Bytes bytes);
    // The small-message path does not ask the planner; the ledger does, so that it can say why.
    void record_eager(int to, const device::Location& location, const Buffer& buffer);

    int progress();
    // For somebody who waits, after a turn that brought nothing: only the network again, a few
    // times, where all messages come by it and no device is at work.
    int look_again();
    bool idle() const;
    // Whether progress() is worth a thread of its own: something is under way, or a receive waits.
    bool pending() const;

    // --- transport::Receiver ---
    void on_message(int from, transport::MessageKind kind, transport::ConstSpan header,
                    transport::ConstSpan payload) override;
    void on_peer_lost(int peer, const Status& why) override;

  private:
    transport::Transport* the_only_network() const;
    Outgoing& add_outgoing(int to, std::uint64_t id);
    void in_sequence(int from, transport::MessageKind kind, transport::ConstSpan header,
                     transport::ConstSpan payload);
    void on_eager(int from, transport::MessageKind kind, transport::ConstSpan header,
                  transport::ConstSpan payload);
    void on_ready(int from, const wire::ReadyAgain& receive, const wire::Handle* handle);
    void on_put_request(int from, const wire::PutRequest& put);
    // An announced put has ended, well or not; false: that message is none.
    bool end_of_put(int from, std::uint64_t send_id, const Status& how);
    void record_announced(int from, Bytes bytes, const Request& receive);
    void on_request_to_send(int from, const wire::RequestToSend& rts);
    void on_request_again(int from, const wire::RequestAgain& again);
    void on_request_elsewhere(int from, const wire::RequestElsewhere& request);
    void take_request(int from, const wire::RequestToSend& whole, const wire::RequestAgain& own);
    void keep_or_deliver(int from, const wire::RequestToSend& rts, Request* receive);
    void take_early_followers(int from, std::uint64_t send_id);
    void on_clear_to_send(int from, const wire::ClearToSend& cts, transport::ConstSpan payload);
    bool keep_early_follower(int from, std::uint64_t send_id, transport::MessageKind kind,
                             transport::ConstSpan header, transport::ConstSpan payload);
    void on_chunk(int from, const wire::Chunk& chunk);
    void give_back(Incoming& message);
    int take_raised_flags();
    void on_payload(int from, const wire::Payload& follower, transport::ConstSpan payload);
    void on_credit(const wire::Credit& credit);
    void on_finish(int from, const wire::Finish& finish, transport::ConstSpan payload);
    Incoming* incoming(int from, std::uint64_t id);
    // A copy of what a transport shows only for the moment; null data: no memory.
    enum class KeptFor : std::uint8_t { receive, copy_engine, page_locked };
    KeptFor kept_for(const Request& receive) const;
    Kept keep(transport::ConstSpan bytes, KeptFor whom);
    void on_forget(int from, const wire::Forget& forget);
    void tell_of_freed_memory();
    void claim_what_is_due();

    const config::Config& config_;
    std::vector<transport::Transport*> transports_;
    GpuNeighbours gpu_neighbours_{transports_};
    transport::Transport* only_network_ = nullptr;
    int looks_at_copies_ = 1;  // at most, in one turn
    int world_rank_;
    std::vector<Peer> peers_;
    std::optional<SlotPool> pools_[2];
    std::unique_ptr<std::byte[]> private_slots_;  // device slots when no transport shares memory
    std::map<transport::Transport*, transport::Region> pool_regions_;
    bool slots_pinned_ = false;
    Recycler<Outgoing> outgoing_memory_;
    std::unordered_map<std::uint64_t, Recycler<Outgoing>::Owner> outgoing_;
    Unread unread_;
    InUse in_use_;
    // Rendezvous messages by sender and its id: matched ones are owned here, unexpected ones by the
    // matcher.
    std::map<std::pair<int, std::uint64_t>, Incoming*> incoming_;
    std::map<std::pair<int, std::uint64_t>, std::unique_ptr<Incoming>> matched_;
    ClaimWords claim_words_;
    ClaimClock claims_;
    std::vector<int> tell_;                                // peers with messages in `finished`
    std::vector<std::unique_ptr<SharedGpu>> shared_gpus_;  // by GPU
    struct Answer {
        plan::Question question;
        plan::Facts facts;
        plan::Choice choice;
        bool valid = false;
    };
    std::array<Answer, 8> answers_;
    bool gets_wait_ = false;  // those since the last turn, perhaps, for company
    const Request* awaited_ = nullptr;
    Nanoseconds last_look_ = 0;  // at copies in flight
    std::uint64_t absences_ = 0;
    int watches_ = 0;
    unsigned turns_ = 0;
    std::uint64_t next_id_ = 1;
};

// A blocking receive that is about to be posted tells its sender where its bytes go; a sender that
// knows puts them there at once (p2p/protocols/put_announced.cpp).
void announce(Core& core, Request& receive);
// One whose message of that number lay there already. Its sender, who got no announcement in time, learns
// that a mapping of the buffer would be of use: else a rank whose message always comes first never
// puts.
void announce_too_late(Core& core, const Request& receive, int from, std::uint32_t sequence);
// The sender's side, of a message that is about to be numbered and that the program waits for.
// False: it goes the usual way, unless the receiver was lost meanwhile. `request` is made if it is
// null.
bool put_announced(Core& core, const Group& group, const Buffer& buffer,
                   const device::Location& location, int to, int tag, Request*& request);

// What puts of this message read, registered until the message ends; released with it.
Status register_source(Core& core, Outgoing& message);
void release_source(Core& core, Outgoing& message);

// The protocols (p2p/protocols/): what happens after the envelope.
// The short way of a send whose request, in `send`, is like the last one's; false: it must go the
// whole way, and nothing has happened.
Result<bool> send_again(Core& core, const Group& group, int tag, bool in_budget, Request& send);
void remember_offer(Core& core, const Outgoing& message, const wire::RequestToSend& rts);
// Takes the message over, which is gone from the table then, if its pieces can be told by flags.
bool send_flagged(Core& core, Outgoing& message, const wire::Envelope& envelope);
bool send_flagged_again(Core& core, const Group& group, int tag, bool in_budget, Request& send);
// The request of one under way; null: there is none.
const Request* flagged_send(Core& core, std::uint64_t id);
// Its receiver gave up. False: there is none.
bool fail_flagged_send(Core& core, std::uint64_t id, const Status& why);
// The flags of that message are chunks. A failure, of which its sender was told: it has none such.
Status await_flags(Core& core, int from, const wire::RequestToSend& rts);
// The short way of one that is like the last; false: it must go the whole way. `late`: its receive is,
// and none of its pieces has been told.
bool take_flagged(Core& core, int from, const wire::RequestToSend& whole,
                  const wire::RequestAgain& own, Request& receive, bool late = false);
// Nothing more comes for that one, or (no id) for any from that rank.
void fail_flagged_receives(Core& core, int from, std::optional<std::uint64_t> id,
                           const Status& why);
Task<Status> send_rendezvous(Executor& executor, Core& core, Outgoing& message);
Task<Status> receive_rendezvous(Executor& executor, Core& core, Incoming& message);
// The short way of a rendezvous whose request is like `whole` but for what is its `own`; false: it
// must go the whole way, and nothing has happened.
bool get_again(Core& core, int from, const wire::RequestToSend& whole,
               const wire::RequestAgain& own, Request& receive, device::Company company);
Task<Status> receive_eager_on_device(Executor& executor, Core& core, Request& receive, Kept payload,
                                     Bytes bytes);

}  // namespace gantry::p2p
