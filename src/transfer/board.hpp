// SPDX-License-Identifier: BSD-3-Clause
//
// Board: where ranks of one node agree without messages. Each rank has a page of the board in its
// own shared segment. Only its owner writes it, and every other rank reads it in place. What a rank
// brings to one operation of some ranks is a row of its page:
//
//   row:   serial | what the owner offers, at most 448 bytes | steps 0, 1, 2 (a cache line each)
//   cell:  4 KiB of data, beside each of the first 16 rows
//   lanes: for small blocking collectives (lane.hpp)
//
// All ranks of an operation know its key beforehand (who they are, and which of their operations it
// is), and find each other's rows by the key. A step is a number in its own cache line: it is
// reached when it equals the low half of the serial, so a device can write it behind its stores.
//
//     Meeting meeting(board, ranks, my_index, key);
//     Status opened = co_await meeting.open(executor);    // takes a row; waits if all are in use
//     meeting.post(offer);                                // the others see it from now on
//     Status met = co_await meeting.all_posted(executor); // now every offer can be read
//     ... store into the memory that they offer ...
//     meeting.raise(0);
//     Status all = co_await meeting.all_raised(executor, 0);
//
// A rank may leave while others still read its row, and before they have posted theirs: the row is used
// again only when every rank of the operation has left, and has found the rows of all. Nobody waits
// for that; the owner looks when it wants a row.
//
// Waiting is a coroutine that progress() resumes. It ends with an error when a rank that is waited for
// is lost, or has failed and said so. Operations of the same ranks may be in flight together.
#pragma once

#include "base/intrusive_list.hpp"
#include "base/task.hpp"
#include "transfer/endpoint.hpp"
#include "transfer/lane.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace gantry::transfer {

inline constexpr std::size_t kBoardRows = 256, kBoardCells = 16;
inline constexpr Bytes kBoardCell = 4 * kKiB, kBoardOffer = 448;
inline constexpr int kBoardSteps = 3;

// One page of the board, as it lies in shared memory. All of it is zero at first.
struct BoardPage {
    struct alignas(64) Step {
        std::uint32_t number = 0;
        std::uint32_t failure = 0;  // MPI error class: the owner does not get there
        // How far the owner is on its way there, where others follow it.
        std::uint32_t parts[2] = {};
    };
    struct alignas(64) Row {
        std::uint64_t serial = 0;        // counts the rows that the owner has posted; 0: none yet
        std::uint64_t passed_below = 0;  // the owner has passed all its rows with lower serials
        std::uint32_t passed = 0;  // 1: the owner has left this one, and knows those of all others
        alignas(64) std::byte offer[kBoardOffer] = {};
        Step steps[kBoardSteps];
    };
    std::uint64_t used = 0;  // rows from here on were never used
    alignas(64) std::uint64_t keys[kBoardRows] = {};
    alignas(64) Row rows[kBoardRows];
    alignas(64) std::byte cells[kBoardCells][kBoardCell] = {};
    LanePage lanes[kLanes];
};
static_assert(sizeof(BoardPage) <= transport::kBoardBytes);

// The serial of a row that was posted with that key; 0: the row has another one. Its owner may post it anew
// meanwhile.
std::uint64_t posted_serial(const BoardPage& page, std::size_t row, std::uint64_t key);
// By the owner: the row has no key, until it is posted again with its next serial.
void withdraw_row(BoardPage& page, std::size_t row);
void post_row(BoardPage& page, std::size_t row, std::uint64_t serial, std::uint64_t key);
// Of the rows posted with that key, whose serials are above those that were `read`, the oldest.
struct PostedRow {
    std::size_t row = 0;
    std::uint64_t serial = 0;  // 0: there is none
};
PostedRow oldest_posted(const BoardPage& page, std::uint64_t key,
                        const std::array<std::uint64_t, kBoardRows>& read);

class Meeting;

// Which operation of some ranks a meeting is. Two in flight never have the same key; later it may come
// again.
struct MeetingKey {
    std::uint32_t context = 0;
    int tag = 0;
    int phase = 0;
};

class Board {
  public:
    // References outlive this.
    Board(Endpoints& endpoints, const std::vector<transport::Transport*>& transports,
          int world_rank)
        : endpoints_(endpoints), transports_(transports), world_rank_(world_rank) {}
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;

    // Whether those world ranks, of which this one is one, all see each other's pages. Every one of
    // them gets the same answer. Ranks of other jobs see none: rows are found by the numbers of ranks, and
    // each job has its own.
    bool covers(std::span<const int> ranks);
    // This rank's page; empty: it has none.
    std::span<std::byte> own_page();

    // Nobody waits.
    bool idle() const { return waits_.empty(); }
    // Ends waits whose time has come; returns how many.
    int progress();
    // A lane of those ranks, who all open it; null for all of them: some rank has none left.
    Task<Result<std::unique_ptr<Lane>>> open_lane(Executor& executor, std::span<const int> ranks,
                                                  int me, MeetingKey key);
    // Ends when that function says so, which progress() calls.
    Task<Status> until(Executor& executor, bool (*ended)(void*), void* with);
    // Why nothing comes from that rank any more.
    const Status& lost(int rank) { return endpoints_.to(rank).lost; }
    // Ranks may never come to meetings of that context, and of those that differ from it only outside of `mask`:
    // whoever waits for one to post hears `why`. Who has met goes on to the end.
    void revoke(std::uint32_t context, std::uint32_t mask, Status why);
    // Before this rank leaves MPI, and its page with it: waits until the others have read what they
    // need of its rows, or are gone themselves.
    Task<Status> all_read(Executor& executor);

  private:
    friend class Meeting;

    // A peer's page, and what this rank has read there.
    struct Peer {
        BoardPage* page = nullptr;
        std::uint64_t passed_below = 0;
        std::array<std::uint64_t, kBoardRows> read = {};  // serials
    };
    using Found = PostedRow;  // where this rank has found the row of another one
    // What a row of this rank's page was used for last.
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
        Meeting* meeting = nullptr;  // null: all_read() or until()
        bool (*ended)(void*) = nullptr;
        void* with = nullptr;
        int next = 0, end = 0;  // who is waited for still
        int step = kPosted;
        std::size_t row_of_parts = 0;
        std::uint32_t parts = 0;  // so many of them are enough; 0: all of the step
        Status first_failure{};
        Completion done;
    };
    static constexpr int kPosted = -1, kRow = -2;  // beside steps

    Peer* peer(int rank);
    bool find(int rank, std::uint64_t key, Found& found);
    bool find_in_turn(Record& record, std::size_t member);
    bool has_passed(int rank, const Found& found);
    bool is_free(Record& record);
    bool is_gone(int rank);
    bool is_revoked(std::uint32_t context) const;
    bool is_through(const LaneRecord& record);
    bool nothing_unread();
    bool is_over(Wait& wait);
    void pass(std::size_t row);
    // A row for a new meeting; kBoardRows: all are in use.
    std::size_t free_row();
    void pass_what_was_left();
    std::uint64_t oldest_not_passed() const;

    Endpoints& endpoints_;
    const std::vector<transport::Transport*>& transports_;
    const int world_rank_;
    BoardPage* own_ = nullptr;
    std::vector<std::unique_ptr<Peer>> peers_;  // by world rank
    std::vector<Record> records_;               // of this rank's rows
    std::vector<std::size_t> left_;             // rows of it that were left and not passed
    std::uint64_t last_serial_ = 0;
    std::size_t opened_ = 0;  // rows of it from there on were never opened
    IntrusiveList<Wait> waits_;
    std::vector<std::uint32_t> revoked_;  // contexts, under the mask
    std::uint32_t revoked_mask_ = 0;
    Status why_revoked_;
    const std::shared_ptr<LaneRecords> lanes_ = std::make_shared<LaneRecords>();
};

// One operation of some ranks, as one of them takes part in it. All wait for what concerns them, and
// leave when they like.
class Meeting {
  public:
    using Key = MeetingKey;
    // `ranks`: world ranks, which outlive this, in the same order for all of them; board.covers(ranks).
    Meeting(Board& board, std::span<const int> ranks, int me, Key key);
    ~Meeting() { leave(); }
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    int size() const { return static_cast<int>(ranks_.size()); }
    int me() const { return me_; }

    // Takes a row; to be called once, before anything that follows.
    Task<Status> open(Executor& executor);
    // This rank's cell, to be filled before post(); empty if its row has none.
    std::span<std::byte> cell() { return cell_of(me_); }

    // --- what the ranks bring ---
    template <class Offer>
    void post(const Offer& offer) {
        static_assert(std::is_trivially_copyable_v<Offer> && sizeof(Offer) <= kBoardOffer);
        publish(&offer, sizeof offer);
    }
    bool has_posted(int member) { return find(member); }
    Task<Status> posted(Executor& executor, int member) {
        return wait(executor, member, member + 1, Board::kPosted);
    }
    Task<Status> all_posted(Executor& executor) {
        return wait(executor, 0, size(), Board::kPosted);
    }
    // Of one who has posted.
    template <class Offer>
    const Offer& offer(int member) const {
        return *reinterpret_cast<const Offer*>(row(member).offer);
    }
    std::span<std::byte> cell_of(int member) const;

    // --- steps ---
    void raise(int step);
    // How many parts of a step this rank has done, in each of two rows of parts; and whether that member,
    // who has posted, has done so many.
    void raise_part(int step, std::size_t row_of_parts, std::uint32_t done);
    Task<Status> part_raised(Executor& executor, int member, int step, std::size_t row_of_parts,
                             std::uint32_t done);
    // The word of a step of this rank, for a device to set to number().
    std::uint32_t* word(int step) { return &row(me_).steps[step].number; }
    std::uint32_t number() const { return static_cast<std::uint32_t>(row(me_).serial); }
    // This rank reaches none of the steps that it has not raised; what waits for them ends with an error
    // of that class.
    void fail(const Status& why);
    // Of those who have posted. With several, the wait ends when each of them has reached the step, has
    // failed or is lost, and gives the first failure in their order, alike to all who wait: one that is not
    // MPI_ERR_UNSUPPORTED_OPERATION, if there is any.
    Task<Status> raised(Executor& executor, int member, int step) {
        return wait(executor, member, member + 1, step);
    }
    Task<Status> all_raised(Executor& executor, int step) {
        return wait(executor, 0, size(), step);
    }

    // This rank reads nothing more of the others. Without it, the end of the object says so.
    void leave();

  private:
    friend class Board;

    bool find(int member);
    BoardPage::Row& row(int member) const;
    void publish(const void* offer, Bytes bytes);
    Task<Status> wait(Executor& executor, int first, int end, int step,
                      std::size_t row_of_parts = 0, std::uint32_t parts = 0);
    bool look(Board::Wait& wait);
    bool reached(int member, const Board::Wait& wait, Status& failure);

    Board& board_;
    const std::span<const int> ranks_;
    const int me_;
    const std::uint32_t context_;
    const std::uint64_t key_;
    Board::Record* record_ = nullptr;  // null: no row
    std::size_t row_ = 0;
    bool posted_ = false;
};

}  // namespace gantry::transfer
