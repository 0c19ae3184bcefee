// SPDX-License-Identifier: BSD-3-Clause
//
// Messages and puts to ranks of other nodes, through UCX. A peer is connected at its
// first message, in either direction, so that the death of whoever spoke to us is noticed.
//
// Small messages: the first few to a peer since the last progress() leave at once; further ones,
// and all while UCX still holds an earlier one, are packed into one frame that leaves with the next
// progress() or when it is full (one system call for many over TCP). `flush` sends them earlier:
// a blocking call must not end with its message still here.
//
// Over TCP, frames to a peer that gets many take a connection of our own (lanes.cpp), as large
// transfers do (bulk.hpp).
//
// With several rails (GANTRY_RAILS) a rail that fails is no loss of the peer: what was under way on
// it goes by the others (rails.cpp).
//
// Errors: a broken connection is told once by UCX's error handler, which only notes it; progress()
// then closes the endpoint by force (that completes, with errors, all that was posted on it) and
// tells the receiver. A peer that said goodbye first (MPI_Finalize) is not lost.
#pragma once

#include "base/clock.hpp"
#include "model/machine.hpp"
#include "transport/transport.hpp"
#include "transport/ucx/frame.hpp"
#include "transport/ucx/home_rail.hpp"
#include "transport/ucx/memory.hpp"
#include "transport/ucx/stream.hpp"

#include <optional>

namespace gantry::transport::ucx {

class UcxTransport final : public Transport {
  public:
    // References outlive the transport.
    UcxTransport(const Clock& clock, const config::Config& config, RankGpu gpu = {});
    ~UcxTransport() override;

    const char* name() const override { return "ucx"; }
    std::string why_home_rail() const override { return why_home_; }
    PeerFacts facts(int peer) const override;
    bool reaches(int peer) const override { return peer != rank_; }
    Status publish(job::Job& job) override;
    Status open(job::Job& job, Receiver& receiver) override;
    Task<Status> close(Executor& executor) override;
    Status send(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) override;
    Status send_with_next(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) override;
    Result<Region> register_memory(const Extent& extent) override;
    void release_memory(const Region& region) override;
    RemoteKey key(const Region& region) const override;
    void put(int peer, int rail, const void* source, Bytes bytes, const Region& from,
             const RemoteKey& key, Bytes offset, Completion& done) override;
    bool put_and_tell(int peer, int rail, const void* source, Bytes bytes, const Region& from,
                      const RemoteKey& key, Bytes offset, MessageKind kind, ConstSpan header,
                      Completion& done) override;
    void get(int peer, int rail, void* sink, Bytes bytes, const Region& into, const RemoteKey& key,
             Bytes offset, Completion& done) override;
    std::uint32_t rails_up(int peer) const override;
    bool exposes(int peer) override;
    Status expose(int peer, MessageKind kind, ConstSpan header, std::uint64_t exposure,
                  const void* source, Bytes bytes, Completion& done) override;
    void take_back(int peer, std::uint64_t exposure) override;
    void get_exposed(int peer, std::uint64_t exposure, void* sink, Bytes bytes,
                     Completion& done) override;
    int progress() override;
    void peer_died(int peer, const Status& why) override;
    Stats stats() const override;
    bool holds_back() const override { return true; }
    bool busy() const override {
        return in_flight_ > 0 || expected_ > 0 || !sending_.empty() || !waiting_.empty() ||
               !broken_.empty() || !closing_.empty() || !doubted_.empty();
    }
    void flush() override;
    // Frames given to UCX so far: what coalescing saves is counted, not timed.
    std::uint64_t frames_posted() const { return frames_posted_; }
    // For tests: what cards do, by UCX's own emulation over TCP. Slow there, and with UCX 1.13 a
    // peer that dies meanwhile takes the process along.
    void one_sided_everywhere() { one_sided_everywhere_ = true; }
    // Puts that went straight, by a bulk connection, and messages that exposed their memory.
    std::uint64_t zero_copy_puts() const { return zero_copy_puts_; }
    std::uint64_t exposures() const { return exposures_; }
    // Of the frames: by lanes.
    std::uint64_t lane_frames() const { return lane_frames_; }
    // Rails that failed alone, those that came back, and frames that went again.
    struct RailCounts {
        std::uint64_t failed = 0, returned = 0, frames_again = 0;
    };
    const RailCounts& rail_counts() const { return rail_counts_; }
    // For tests: as if that rail's connection had broken.
    void break_rail(int peer, int rail);
    // For tests: frames to that peer that it has not acknowledged.
    std::size_t kept_frames(int peer) const;

  private:
    struct Peer;
    struct RailTo;
    struct RailDown;
    struct RailClosed;
    struct Putting;
    struct PieceHead;
    struct PutAnswer;
    struct Bulk;
    struct Accepted;
    struct Exposure;
    struct Fetch;
    struct WireUpOf;
    // What UCX gives back to our handlers.
    struct Listening {
        UcxTransport* owner;
        ucp_worker_h worker;
        int rail;
    };
    static constexpr int kExposureRail = 0;
    enum class Answer : std::uint8_t { in_place, refused };
    enum class Stage : std::uint8_t { running, draining, closing, closed };
    // Between transports only: this rank sends nothing after it and may close the connection.
    static constexpr MessageKind kGoodbye = 0xff;
    static constexpr MessageKind kPutAnswer = 0xfe;
    static constexpr MessageKind kBulkOpen = 0xfc;
    static constexpr MessageKind kBulkAsked = 0xfb;
    static constexpr MessageKind kFetch = 0xfa;
    static constexpr MessageKind kRailDown = 0xf9;
    static constexpr MessageKind kRailClosed = 0xf8;
    static constexpr MessageKind kRailBack = 0xf7;  // the lowest: p2p's kinds are below

    // --- connections (ucx.cpp)
    Peer& peer_of(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
    Result<WireUpOf> wire_up_of(int rank);
    Status publish_distances(job::Job& job);
    Status choose_home_rail(job::Job& job);
    void open_doors();
    Status connect(Peer& peer);
    // Connected if need be, or why no message can go there.
    Status reach(Peer& peer);
    Status connect_rail(RailTo& rail, const WireUpOf& known);
    static void on_error(void* rail, ucp_ep_h endpoint, ucs_status_t status);
    void note_broken(RailTo& rail, ucs_status_t status);
    void note_broken(Peer& peer, ucs_status_t status);
    void handle_broken();
    void lose(Peer& peer, ucs_status_t status);
    Status loss_of(const Peer& peer, ucs_status_t status) const;
    void close_endpoint(RailTo& rail, unsigned flags);
    void close_endpoints(Peer& peer, unsigned flags);
    void watch_closing();
    void advance_closing();

    // --- messages (messages.cpp)
    Status send_record(Peer& peer, MessageKind kind, ConstSpan header, ConstSpan payload);
    Status append(Peer& peer, MessageKind kind, ConstSpan header, ConstSpan payload);
    void post(Peer& peer);
    void visit_in_progress(Peer& peer);
    void post_open_frames();
    static ucp_request_param_t how_frames_leave();
    static void on_sent(void* request, ucs_status_t status, void* frame);
    static ucs_status_t on_frame(void* listening, const void* header, std::size_t header_length,
                                 void* data, std::size_t length, const ucp_am_recv_param_t* param);
    void deliver(ConstSpan frame);
    void drop_frames(Peer& peer);
    void give_to_ucx(RailTo& rail, Frame* frame);
    Status listen(Listening& listening, unsigned id, ucp_am_recv_callback_t handler);

    // --- puts (puts.cpp), gets (gets.cpp)
    Status reach(Peer& peer, int rail, const KeyView& key);
    static ucp_request_param_t how_of(Putting& putting, const Memory::Source& known);
    void put_one_sided(Peer& peer, int rail, const void* source, const Region& from,
                       Putting& putting, std::uint64_t address);
    void put_by_messages(Peer& peer, int rail, const std::byte* source, Putting& putting,
                         std::uint64_t region, Bytes offset);
    static ucs_status_t on_piece(void* listening, const void* header, std::size_t header_length,
                                 void* data, std::size_t length, const ucp_am_recv_param_t* param);
    void take_piece(const PieceHead& head, int rail, ConstSpan data);
    void answer_put(Peer& peer, std::uint64_t ticket, Answer how);
    void on_put_answer(Peer& peer, ConstSpan header);
    void expect_no_answer(Peer& peer, Putting& putting);
    // Those of one rail, or all (-1).
    void fail_unanswered(Peer& peer, int rail);
    static void on_put(void* request, ucs_status_t status, void* putting);
    Status failure_of(const Putting& putting);
    void end(Putting& putting);
    void finish_step(Putting& putting, ucs_status_t status);

    // UCX would emulate one-sided operations there, and reads what was never written when such a
    // connection breaks while the answer to one waits.
    bool goes_by_messages(int rail) const {
        return !one_sided_everywhere_ && rails_[static_cast<std::size_t>(rail)].only_messages();
    }
    // --- several rails (rails.cpp)
    bool several() const { return rails_.size() > 1; }
    RailTo* message_rail(Peer& peer) const;
    bool another_carries(const RailTo& rail) const;
    void fail_rail(RailTo& rail, std::string_view why);
    void send_again(RailTo& rail);
    bool hold(Putting& putting);
    void release_held(RailTo& rail);
    void on_rail_message(Peer& peer, MessageKind kind, ConstSpan header);
    void on_rail_down(Peer& peer, const RailDown& down);
    void answer_closed(RailTo& rail);
    void keep(Peer& peer, Frame* frame, const RailTo& rail);
    void acknowledged(Peer& peer, std::uint32_t received);
    void owe_acknowledgement(Peer& peer);
    void acknowledge_frames(Nanoseconds now);
    void give_if_over(Frame* frame);
    void look_at_rails();
    void look_at_tcp_keepalives(Peer& peer, Nanoseconds now);
    void open_tcp_keepalive(RailTo& rail, Nanoseconds now);
    void try_again(RailTo& rail, Nanoseconds now);
    bool may_try(RailTo& rail, Nanoseconds now);
    void try_later(RailTo& rail, Nanoseconds now);
    void came_back(RailTo& rail);
    void tell_back(const RailTo& rail);
    static void on_tried(void* request, ucs_status_t status, void* rail);

    // --- whether peers are there, over cards (card_keepalive.cpp)
    void open_card_keepalive(RailTo& rail, const WireUpOf& known);
    void close_card_keepalive(RailTo& rail);
    void send_keepalive(RailTo& rail, Nanoseconds now);
    static void on_keepalive(void* request, ucs_status_t status, void* rail);
    void finish_card_keepalive_step(RailTo& rail, ucs_status_t status);
    void card_keepalive_now_and_then();
    void show_life(RailTo& rail) const;

    // --- large transfers over TCP (bulk.cpp)
    struct Door {
        sockaddr_in address;
        std::uint64_t cookie;
    };
    Result<Door> door_of(const Peer& peer, int rail);
    Bulk* bulk_to(Peer& peer, int rail);
    void close_bulk_of(RailTo& rail);
    void close_accepted_of(const RailTo& rail);
    Status open_bulk(Bulk& bulk);
    Status tell(Peer& peer, MessageKind kind, std::uint64_t what);
    void on_bulk_message(Peer& peer, MessageKind kind, ConstSpan header);
    void on_bulk_open(Peer& peer, std::uint64_t rail);
    void send_zero_copy(Bulk& bulk, const StreamHead& head, const void* source,
                        OutStream::Left left);
    // `told_of`: a frame that goes behind it, or null.
    void put_zero_copy(Bulk& bulk, const std::byte* source, Putting& putting, std::uint64_t region,
                       Bytes offset, Frame* told_of);
    void move_out(Bulk& bulk);
    void on_bulk_asked(std::uint64_t rail);
    void accept_awaited();
    bool greet(Accepted& accepted);
    void move_in();
    void move_bulk();
    enum class Incoming : std::uint8_t { closed, read_to_its_end };
    void close_bulk(Peer& peer, Incoming incoming);
    void read(Accepted& accepted);
    void close_accepted(Accepted& accepted);

    // --- small messages over TCP (lanes.cpp)
    void ask_for_lane(Peer& peer);
    void use_lane(Peer& peer, Bulk& lane);
    void open_way_back(Peer& peer, Accepted& accepted);
    bool read_way_back(Peer& peer, const Bulk& bulk);
    void post_by_lane(Bulk& lane, Frame* frame);
    void lane_broke(Peer& peer);
    void doubt(Peer& peer);
    void settle_doubts();
    void watch(Accepted& accepted);
    void watch_no_more(Accepted& accepted);
    void look_at_others();
    bool only_the_lane_matters();
    // Messages in both directions take one connection, the lower rank's: the acknowledgement of one
    // travels with its answer. By two connections 8 B took 7.6 us, by one 5.1.
    static bool is_lane_of_both(int opener, int other, std::uint64_t rail) {
        return rail == kExposureRail && opener < other;
    }
    bool others() const { return accepted_.size() > (hot_ != nullptr ? 1 : 0); }

    // --- exposed memory (exposed_buffers.cpp)
    void on_fetch(Peer& peer, std::uint64_t number);
    bool expect_exposure(const Peer& peer);
    void end_exposure(Peer& peer, std::uint64_t number, const Status& how);
    void finish_fetch(Peer& peer, std::uint64_t number, bool dropped);
    void end_fetches(Peer& peer);

    const Clock& clock_;
    const config::Config& config_;
    int rank_ = -1;
    RankGpu gpu_;
    int home_rail_ = 0;
    std::string from_here_, why_home_;  // what distances are measured from; and the sentence
    job::Job* job_ = nullptr;
    Receiver* receiver_ = nullptr;
    std::unique_ptr<Library> library_;
    std::optional<model::Link> described_;  // by GANTRY_MACHINE
    const model::Link tcp_ = model::built_in_network("tcp");
    const model::Link card_ = model::built_in_network("card");
    std::vector<Rail> rails_;
    std::optional<Memory> memory_;
    KeyCounts keys_;
    FramePool frames_;
    ucp_request_param_t how_frames_leave_ = how_frames_leave();  // but for user_data
    std::vector<std::unique_ptr<Peer>> peers_;
    std::vector<Peer*> waiting_;   // have a frame that is not posted, or sent since progress()
    std::vector<Peer*> visiting_;  // its other half while progress() visits them; keeps its memory
    std::vector<std::pair<RailTo*, ucs_status_t>> broken_;
    // With several rails:
    std::vector<Peer*> connected_;  // peers; with one rail, too, if there are card keepalives
    std::vector<Peer*> owing_;      // whose frames have come and are not acknowledged
    struct ReceivedTcpKeepalive {
        int from, rail;
        Socket socket;
    };
    std::vector<ReceivedTcpKeepalive> received_tcp_keepalives_;
    Nanoseconds next_look_ = 0, next_acknowledgement_ = 0, next_drain_ = 0;
    RailCounts rail_counts_;
    bool keeps_cards_alive_ = false;  // some rail has a card
    unsigned looks_at_keepalives_ = 0;
    std::vector<Listening> listening_;            // by rail; UCX has pointers into it
    std::vector<std::optional<Listener>> doors_;  // by rail
    std::uint64_t cookie_ = 0;                    // who connects in bulk and knows it means us
    std::vector<Bulk*> sending_;                  // have something to send
    struct Awaited {
        std::size_t rail;
        Nanoseconds until;
    };
    std::vector<Awaited> awaited_;  // connections that peers announced
    std::vector<std::unique_ptr<Accepted>> accepted_;
    int unknown_ = 0;          // of them: have not said who they are
    int expected_ = 0;         // exposed memory asked for, on all of them together
    Accepted* hot_ = nullptr;  // of them: brought the last frame, and is read in each turn
    unsigned hot_looks_ = 0;   // at it, since its last frame
    unsigned turns_ = 0;
    bool wrote_at_once_ = false;  // a transfer, in this turn
    Socket others_;               // an epoll instance of all of them
    int lanes_ = 0;               // peers that frames may go to by lanes
    struct Doubted {
        Peer* peer;
        Nanoseconds until;
    };
    std::vector<Doubted> doubted_;  // a stream ended: they said goodbye, or are lost
    std::vector<void*> closing_;    // requests of endpoints being closed
    int in_flight_ = 0;             // frames and puts under way
    std::uint64_t next_ticket_ = 1;
    std::uint64_t frames_posted_ = 0;
    bool one_sided_everywhere_ = false;
    std::uint64_t zero_copy_puts_ = 0, exposures_ = 0, lane_frames_ = 0;
    int events_ = 0;  // since the last progress()
    Stage stage_ = Stage::running;
    Completion* leaving_ = nullptr;
    Nanoseconds leaving_since_ = 0;
};

}  // namespace gantry::transport::ucx
