// SPDX-License-Identifier: BSD-3-Clause
//
// NodeSegment: where ranks of one node agree without messages. Each rank has a page of the node segment in its
// own shared segment. Only its owner writes it, and every other rank reads it in place. What a rank
// brings to one operation of some ranks is a descriptor of its page:
//
//   descriptor:   serial | what the owner offers, at most 448 bytes | phases 0, 1, 2 (a cache line each)
//   cell:  4 KiB of data, beside each of the first 16 descriptors
//   mailboxes: for small blocking collectives (mailbox.hpp)
//
// All ranks of an operation know its key beforehand (who they are, and which of their operations it
// is), and find each other's descriptors by the key. A phase is a number in its own cache line: it is
// reached when it equals the low half of the serial, so a device can write it behind its stores.
//
//     Handshake handshake(node_segment, ranks, my_index, key);
//     Status opened = co_await handshake.open(executor);    // takes a descriptor; waits if all are in use
//     handshake.post(offer);                                // the others see it from now on
//     Status met = co_await handshake.all_posted(executor); // now every offer can be read
//     ... store into the memory that they offer ...
//     handshake.raise(0);
//     Status all = co_await handshake.all_raised(executor, 0);
//
// A rank may leave while others still read its descriptor, and before they have posted theirs: the descriptor is used
// again only when every rank of the operation has left, and has found the descriptors of all. Nobody waits
// for that; the owner looks when it wants a descriptor.
//
// Waiting is a coroutine that progress() resumes. It ends with an error when a rank that is waited for
// is lost, or has failed and said so. Operations of the same ranks may be in flight together.
#pragma once

#include "base/intrusive_list.hpp"
#include "base/task.hpp"
#include "transfer/endpoint.hpp"
#include "transfer/mailbox.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace gantry::transfer {

inline constexpr std::size_t kDescriptors = 256, kCells = 16;
inline constexpr Bytes kCellBytes = 4 * kKiB, kOfferBytes = 448;
inline constexpr int kPhases = 3;

// One page of the node segment, as it lies in shared memory. All of it is zero at first.
struct NodeSegmentPage {
    struct alignas(64) Phase {
        std::uint32_t number = 0;
        std::uint32_t failure = 0;  // MPI error class: the owner does not get there
        // How far the owner is on its way there, where others follow it.
        std::uint32_t parts[2] = {};
    };
    struct alignas(64) Descriptor {
        std::uint64_t serial = 0;  // counts the descriptors that the owner has posted; 0: none yet
        std::uint64_t passed_below =
            0;                     // the owner has passed all its descriptors with lower serials
        std::uint32_t passed = 0;  // 1: the owner has left this one, and knows those of all others
        alignas(64) std::byte offer[kOfferBytes] = {};
        Phase phases[kPhases];
    };
    std::uint64_t used = 0;  // descriptors from here on were never used
    alignas(64) std::uint64_t keys[kDescriptors] = {};
    alignas(64) Descriptor descriptors[kDescriptors];
    alignas(64) std::byte cells[kCells][kCellBytes] = {};
    MailboxPage mailboxes[kMailboxes];
};
static_assert(sizeof(NodeSegmentPage) <= transport::kNodeSegmentBytes);

// The serial of a descriptor that was posted with that key; 0: the descriptor has another one. Its owner may post it anew
// meanwhile.
std::uint64_t posted_serial(const NodeSegmentPage& page, std::size_t descriptor, std::uint64_t key);
// By the owner: the descriptor has no key, until it is posted again with its next serial.
void withdraw_descriptor(NodeSegmentPage& page, std::size_t descriptor);
void post_descriptor(NodeSegmentPage& page, std::size_t descriptor, std::uint64_t serial,
                     std::uint64_t key);
// Of the descriptors posted with that key, whose serials are above those that were `read`, the oldest.
struct PostedDescriptor {
    std::size_t descriptor = 0;
    std::uint64_t serial = 0;  // 0: there is none
};
PostedDescriptor oldest_posted(const NodeSegmentPage& page, std::uint64_t key,
                               const std::array<std::uint64_t, kDescriptors>& read);

class Handshake;

// Which operation of some ranks a handshake is. Two in flight never have the same key; later it may come
// again.
struct HandshakeKey {
    std::uint32_t context = 0;
    int tag = 0;
    int phase = 0;
};

class NodeSegment {
  public:
    // References outlive this.
    NodeSegment(Endpoints& endpoints, const std::vector<transport::Transport*>& transports,
                int world_rank)
        : endpoints_(endpoints), transports_(transports), world_rank_(world_rank) {}
    NodeSegment(const NodeSegment&) = delete;
    NodeSegment& operator=(const NodeSegment&) = delete;

    // Whether those world ranks, of which this one is one, all see each other's pages. Every one of
    // them gets the same answer. Ranks of other jobs see none: descriptors are found by the numbers of ranks, and
    // each job has its own.
    bool covers(std::span<const int> ranks);
    // This rank's page; empty: it has none.
    std::span<std::byte> own_page();

    // Nobody waits.
    bool idle() const { return waits_.empty(); }
    // Ends waits whose time has come; returns how many.
    int progress();
    // A mailbox of those ranks, who all open it; null for all of them: some rank has none left.
    Task<Result<std::unique_ptr<Mailbox>>> open_mailbox(Executor& executor,
                                                        std::span<const int> ranks, int me,
                                                        HandshakeKey key);
    // Ends when that function says so, which progress() calls.
    Task<Status> until(Executor& executor, bool (*ended)(void*), void* with);
    // Why nothing comes from that rank any more.
    const Status& lost(int rank) { return endpoints_.to(rank).lost; }
    // Ranks may never come to handshakes of that context, and of those that differ from it only outside of `mask`:
    // whoever waits for one to post hears `why`. Who has met goes on to the end.
    void revoke(std::uint32_t context, std::uint32_t mask, Status why);
    // Before this rank leaves MPI, and its page with it: waits until the others have read what they
    // need of its descriptors, or are gone themselves.
    Task<Status> all_read(Executor& executor);

  private:
    friend class Handshake;

    // A peer's page, and what this rank has read there.
    struct Peer {
        NodeSegmentPage* page = nullptr;
        std::uint64_t passed_below = 0;
        std::array<std::uint64_t, kDescriptors> read = {};  // serials
    };
    using Found = PostedDescriptor;  // where this rank has found the descriptor of another one
    // What a descriptor of this rank's page was used for last.
    struct Record {
        std::uint64_t key = 0, serial = 0;  // 0: never
        std::uint32_t context = 0;
        bool live = false;  // this rank has not left it
        bool passed = true;
        std::vector<int> ranks;
        std::vector<Found> found;
    };
    struct Wait : Link<Wait> {
        explicit Wait(Executor& executor) : done(executor) {}
        Handshake* handshake = nullptr;  // null: all_read() or until()
        bool (*ended)(void*) = nullptr;
        void* with = nullptr;
        int next = 0, end = 0;  // who is waited for still
        int phase = kPosted;
        std::size_t descriptor_of_parts = 0;
        std::uint32_t parts = 0;  // so many of them are enough; 0: all of the phase
        Status first_failure{};
        Completion done;
    };
    static constexpr int kPosted = -1, kDescriptor = -2;  // beside phases

    Peer* peer(int rank);
    bool find(int rank, std::uint64_t key, Found& found);
    bool find_in_turn(Record& record, std::size_t member);
    bool has_passed(int rank, const Found& found);
    bool is_free(Record& record);
    bool is_gone(int rank);
    bool is_revoked(std::uint32_t context) const;
    bool is_through(const MailboxRecord& record);
    bool nothing_unread();
    bool is_over(Wait& wait);
    void pass(std::size_t descriptor);
    // A descriptor for a new handshake; kDescriptors: all are in use.
    std::size_t free_descriptor();
    void pass_what_was_left();
    std::uint64_t oldest_not_passed() const;

    Endpoints& endpoints_;
    const std::vector<transport::Transport*>& transports_;
    const int world_rank_;
    NodeSegmentPage* own_ = nullptr;
    std::vector<std::unique_ptr<Peer>> peers_;  // by world rank
    std::vector<Record> records_;               // of this rank's descriptors
    std::vector<std::size_t> left_;             // descriptors of it that were left and not passed
    std::uint64_t last_serial_ = 0;
    std::size_t opened_ = 0;  // descriptors of it from there on were never opened
    IntrusiveList<Wait> waits_;
    std::vector<std::uint32_t> revoked_;  // contexts, under the mask
    std::uint32_t revoked_mask_ = 0;
    Status why_revoked_;
    const std::shared_ptr<MailboxRecords> mailboxes_ = std::make_shared<MailboxRecords>();
};

// One operation of some ranks, as one of them takes part in it. All wait for what concerns them, and
// leave when they like.
class Handshake {
  public:
    using Key = HandshakeKey;
    // `ranks`: world ranks, which outlive this, in the same order for all of them; node segment.covers(ranks).
    Handshake(NodeSegment& node_segment, std::span<const int> ranks, int me, Key key);
    ~Handshake() { leave(); }
    Handshake(const Handshake&) = delete;
    Handshake& operator=(const Handshake&) = delete;

    int size() const { return static_cast<int>(ranks_.size()); }
    int me() const { return me_; }

    // Takes a descriptor; to be called once, before anything that follows.
    Task<Status> open(Executor& executor);
    // This rank's cell, to be filled before post(); empty if its descriptor has none.
    std::span<std::byte> cell() { return cell_of(me_); }

    // --- what the ranks bring ---
    template <class Offer>
    void post(const Offer& offer) {
        static_assert(std::is_trivially_copyable_v<Offer> && sizeof(Offer) <= kOfferBytes);
        publish(&offer, sizeof offer);
    }
    bool has_posted(int member) { return find(member); }
    Task<Status> posted(Executor& executor, int member) {
        return wait(executor, member, member + 1, NodeSegment::kPosted);
    }
    Task<Status> all_posted(Executor& executor) {
        return wait(executor, 0, size(), NodeSegment::kPosted);
    }
    // Of one who has posted.
    template <class Offer>
    const Offer& offer(int member) const {
        return *reinterpret_cast<const Offer*>(descriptor(member).offer);
    }
    std::span<std::byte> cell_of(int member) const;

    // --- phases ---
    void raise(int phase);
    // How many parts of a phase this rank has done, in each of two descriptors of parts; and whether that member,
    // who has posted, has done so many.
    void raise_part(int phase, std::size_t descriptor_of_parts, std::uint32_t done);
    Task<Status> part_raised(Executor& executor, int member, int phase,
                             std::size_t descriptor_of_parts, std::uint32_t done);
    // The word of a phase of this rank, for a device to set to number().
    std::uint32_t* word(int phase) { return &descriptor(me_).phases[phase].number; }
    std::uint32_t number() const { return static_cast<std::uint32_t>(descriptor(me_).serial); }
    // This rank reaches none of the phases that it has not raised; what waits for them ends with an error
    // of that class.
    void fail(const Status& why);
    // Of those who have posted. With several, the wait ends when each of them has reached the phase, has
    // failed or is lost, and gives the first failure in their order, alike to all who wait: one that is not
    // MPI_ERR_UNSUPPORTED_OPERATION, if there is any.
    Task<Status> raised(Executor& executor, int member, int phase) {
        return wait(executor, member, member + 1, phase);
    }
    Task<Status> all_raised(Executor& executor, int phase) {
        return wait(executor, 0, size(), phase);
    }

    // This rank reads nothing more of the others. Without it, the end of the object says so.
    void leave();

  private:
    friend class NodeSegment;

    bool find(int member);
    NodeSegmentPage::Descriptor& descriptor(int member) const;
    void publish(const void* offer, Bytes bytes);
    Task<Status> wait(Executor& executor, int first, int end, int phase,
                      std::size_t descriptor_of_parts = 0, std::uint32_t parts = 0);
    bool look(NodeSegment::Wait& wait);
    bool reached(int member, const NodeSegment::Wait& wait, Status& failure);

    NodeSegment& node_segment_;
    const std::span<const int> ranks_;
    const int me_;
    const std::uint32_t context_;
    const std::uint64_t key_;
    NodeSegment::Record* record_ = nullptr;  // null: no descriptor
    std::size_t descriptor_ = 0;
    bool posted_ = false;
};

}  // namespace gantry::transfer
