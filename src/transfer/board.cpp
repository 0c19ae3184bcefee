// SPDX-License-Identifier: BSD-3-Clause
//
// Every word has one writer, so loads and stores with acquire and release are all that is needed. A
// row is published by its serial, then by its key.
#include "transfer/board.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gantry::transfer {
namespace {

template <class T>
T load(const T& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <class T>
void store(T& word, T value) {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

std::uint64_t hash_of(Meeting::Key key, std::span<const int> ranks) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a, by words
    const auto mix = [&hash](std::uint64_t value) {
        hash = (hash ^ value) * 1099511628211u;
        hash ^= hash >> 29;
    };
    mix(key.context);
    mix(static_cast<std::uint32_t>(key.tag));
    mix(static_cast<std::uint32_t>(key.phase));
    for (const int rank : ranks)
        mix(static_cast<std::uint32_t>(rank));
    return hash | 1;
}

}  // namespace

// --- rows --------------------------------------------------------------------------------------

// The first look at the key spares most rows the rest. Serials grow, so the row had this one all the time
// between the two looks at it, and then its key is the one that was posted with it, or none yet.
std::uint64_t posted_serial(const BoardPage& page, std::size_t row, std::uint64_t key) {
    if (load(page.keys[row]) != key) return 0;
    const std::uint64_t serial = load(page.rows[row].serial);
    if (load(page.keys[row]) != key) return 0;
    return load(page.rows[row].serial) == serial ? serial : 0;
}

void withdraw_row(BoardPage& page, std::size_t row) {
    store(page.keys[row], std::uint64_t{0});
}

void post_row(BoardPage& page, std::size_t row, std::uint64_t serial, std::uint64_t key) {
    store(page.rows[row].serial, serial);
    store(page.keys[row], key);
}

namespace {

PostedRow look_through(const BoardPage& page, std::uint64_t key,
                       const std::array<std::uint64_t, kBoardRows>& read) {
    PostedRow oldest;
    const auto used = static_cast<std::size_t>(load(page.used));
    for (std::size_t row = 0; row < used; ++row) {
        const std::uint64_t serial = posted_serial(page, row, key);
        if (serial > read[row] && (oldest.serial == 0 || serial < oldest.serial))
            oldest = {row, serial};
    }
    return oldest;
}

}  // namespace

// A row may be posted when it has been looked at, and the next one, of the same key, before that one is. Who
// has seen the later one sees both when looking again.
PostedRow oldest_posted(const BoardPage& page, std::uint64_t key,
                        const std::array<std::uint64_t, kBoardRows>& read) {
    const PostedRow seen = look_through(page, key, read);
    return seen.serial == 0 ? seen : look_through(page, key, read);
}

// --- Board ---------------------------------------------------------------------------------------

bool Board::covers(std::span<const int> ranks) {
    return std::all_of(ranks.begin(), ranks.end(), [this](int rank) {
        return rank == world_rank_ ||
               (rank < endpoints_.world_size() && endpoints_.to(rank).facts.shared_memory);
    });
}

std::span<std::byte> Board::own_page() {
    Peer* const own = peer(world_rank_);
    if (own == nullptr) return {};
    return {reinterpret_cast<std::byte*>(own->page), sizeof *own->page};
}

// Null: its page is not there, as long as that rank has not begun to communicate.
Board::Peer* Board::peer(int rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (peers_.empty()) peers_.resize(static_cast<std::size_t>(endpoints_.size()));
    for (std::size_t way = 0; peers_[index] == nullptr && way < transports_.size(); ++way) {
        transport::SharedSegment* const segment = transports_[way]->shared_segment(rank);
        if (segment == nullptr) continue;
        const std::span<std::byte> page = segment->board();
        if (page.empty()) continue;
        peers_[index] = std::make_unique<Peer>();
        peers_[index]->page = reinterpret_cast<BoardPage*>(page.data());
    }
    return peers_[index].get();
}

// The oldest row of that rank with that key that was not read yet: an operation may come again, and
// its last row lies there still.
bool Board::find(int rank, std::uint64_t key, Found& found) {
    if (found.serial != 0) return true;
    Peer* const from = peer(rank);
    if (from == nullptr) return false;
    found = oldest_posted(*from->page, key, from->read);
    if (found.serial == 0) return false;
    from->read[found.row] = found.serial;
    from->passed_below = std::max(from->passed_below, from->page->rows[found.row].passed_below);
    return true;
}

// What an operation with the same key, which this rank has left, did not read is still that one's.
bool Board::find_in_turn(Record& record, std::size_t member) {
    if (record.found[member].serial != 0) return true;
    const int rank = record.ranks[member];
    for (const std::size_t left : left_) {  // the oldest first
        Record& before = records_[left];
        if (before.key == record.key && before.serial < record.serial &&
            !find(rank, record.key, before.found[member]))
            return false;
    }
    return find(rank, record.key, record.found[member]);
}

bool Board::is_gone(int rank) {
    if (!endpoints_.to(rank).lost.ok()) return true;
    return std::any_of(transports_.begin(), transports_.end(), [rank](auto* transport) {
        const transport::SharedSegment* const segment = transport->shared_segment(rank);
        return segment != nullptr && segment->left();
    });
}

void Board::revoke(std::uint32_t context, std::uint32_t mask, Status why) {
    revoked_.push_back(context & mask);
    revoked_mask_ = mask;
    why_revoked_ = std::move(why);
}

bool Board::is_revoked(std::uint32_t context) const {
    return std::ranges::find(revoked_, context & revoked_mask_) != revoked_.end();
}

// A row that its owner uses again was passed by everybody.
bool Board::has_passed(int rank, const Found& found) {
    if (found.serial == 0) return true;
    const Peer& from = *peer(rank);
    const BoardPage::Row& row = from.page->rows[found.row];
    return found.serial < from.passed_below || load(row.serial) != found.serial ||
           load(row.passed) != 0 || is_gone(rank);
}

bool Board::is_free(Record& record) {
    if (record.live || !record.passed) return false;
    for (std::size_t i = 0; i < record.ranks.size(); ++i)
        if (record.ranks[i] != world_rank_ && !has_passed(record.ranks[i], record.found[i]))
            return false;
    record.ranks.clear();
    return true;
}

// Says that this rank is through with a row that it has left, if it has found those of all others.
void Board::pass(std::size_t row) {
    Record& record = records_[row];
    for (std::size_t i = 0; i < record.ranks.size(); ++i)
        if (!find_in_turn(record, i) && !is_gone(record.ranks[i]) && !is_revoked(record.context))
            return;
    record.passed = true;
    store(own_->rows[row].passed, 1u);
}

void Board::pass_what_was_left() {
    std::erase_if(left_, [this](std::size_t row) {
        pass(row);
        return records_[row].passed;
    });
}

std::size_t Board::free_row() {
    if (records_.empty()) records_.resize(kBoardRows);
    pass_what_was_left();
    std::size_t row = 0;
    while (row < kBoardRows && !is_free(records_[row]))
        ++row;
    return row;
}

std::uint64_t Board::oldest_not_passed() const {
    std::uint64_t oldest = last_serial_ + 1;
    for (std::size_t row = 0; row < opened_; ++row)
        if (!records_[row].passed) oldest = std::min(oldest, records_[row].serial);
    return oldest;
}

int Board::progress() {
    int events = 0;
    Wait* next = nullptr;
    for (Wait* wait = waits_.front(); wait != nullptr; wait = next) {
        next = waits_.next(wait);
        if (!is_over(*wait)) continue;
        wait->unlink();
        wait->done.complete(std::move(wait->first_failure));
        ++events;
    }
    return events;
}

bool Board::nothing_unread() {
    pass_what_was_left();
    return std::all_of(lanes_->begin(), lanes_->end(),
                       [this](const LaneRecord& each) { return is_through(each); }) &&
           std::all_of(records_.begin(), records_.end(),
                       [this](Record& each) { return is_free(each); });
}

bool Board::is_over(Wait& wait) {
    if (wait.ended != nullptr) return wait.ended(wait.with);
    return wait.meeting != nullptr ? wait.meeting->look(wait) : nothing_unread();
}

Task<Status> Board::until(Executor& executor, bool (*ended)(void*), void* with) {
    Wait waiting(executor);
    waiting.ended = ended;
    waiting.with = with;
    if (ended(with)) co_return success();
    waits_.push_back(waiting);
    Status over = co_await waiting.done;
    co_return over;
}

Task<Status> Board::all_read(Executor& executor) {
    Wait waiting(executor);
    if (nothing_unread()) co_return success();
    waits_.push_back(waiting);
    Status ended = co_await waiting.done;
    co_return ended;
}

// --- Meeting -------------------------------------------------------------------------------------

Meeting::Meeting(Board& board, std::span<const int> ranks, int me, Key key)
    : board_(board), ranks_(ranks), me_(me), context_(key.context), key_(hash_of(key, ranks)) {}

Task<Status> Meeting::open(Executor& executor) {
    Board::Peer* const own = board_.peer(board_.world_rank_);
    if (own == nullptr)
        co_return failure(MPI_ERR_INTERN, "this rank has no page of the node's board");
    if (board_.is_revoked(context_)) co_return Status(board_.why_revoked_);
    board_.own_ = own->page;
    row_ = board_.free_row();
    if (row_ == kBoardRows) {
        Status freed = co_await wait(executor, me_, me_ + 1, Board::kRow);
        GANTRY_CO_TRY(freed);
    }
    record_ = &board_.records_[row_];
    board_.opened_ = std::max(board_.opened_, row_ + 1);
    record_->live = true;
    record_->passed = false;
    record_->key = key_;
    record_->context = context_;
    record_->serial = ++board_.last_serial_;
    record_->ranks.assign(ranks_.begin(), ranks_.end());
    record_->found.assign(ranks_.size(), {});
    BoardPage& page = *own->page;
    withdraw_row(page, row_);
    BoardPage::Row& mine = page.rows[row_];
    for (BoardPage::Step& step : mine.steps) {
        store(step.failure, 0u);
        for (std::uint32_t& parts : step.parts)
            store(parts, 0u);
    }
    store(mine.passed, 0u);
    co_return success();
}

void Meeting::publish(const void* offer, Bytes bytes) {
    GANTRY_ASSERT(record_ != nullptr && !posted_);
    BoardPage& page = *board_.own_;
    BoardPage::Row& mine = page.rows[row_];
    std::memcpy(mine.offer, offer, bytes);
    if (page.used <= row_) store(page.used, static_cast<std::uint64_t>(row_ + 1));
    mine.passed_below = board_.oldest_not_passed();
    post_row(page, row_, record_->serial, key_);
    posted_ = true;
    record_->found[static_cast<std::size_t>(me_)] = {row_, record_->serial};
}

bool Meeting::find(int member) {
    if (member == me_) return posted_;
    return board_.find_in_turn(*record_, static_cast<std::size_t>(member));
}

BoardPage::Row& Meeting::row(int member) const {
    const auto index = static_cast<std::size_t>(member);
    if (member == me_) return board_.own_->rows[row_];
    return board_.peers_[static_cast<std::size_t>(ranks_[index])]
        ->page->rows[record_->found[index].row];
}

std::span<std::byte> Meeting::cell_of(int member) const {
    const auto index = static_cast<std::size_t>(member);
    const std::size_t row = member == me_ ? row_ : record_->found[index].row;
    if (row >= kBoardCells) return {};
    BoardPage* const page =
        member == me_ ? board_.own_ : board_.peers_[static_cast<std::size_t>(ranks_[index])]->page;
    return page->cells[row];
}

void Meeting::raise(int step) {
    store(row(me_).steps[step].number, static_cast<std::uint32_t>(record_->serial));
}

void Meeting::fail(const Status& why) {
    for (BoardPage::Step& step : row(me_).steps)
        store(step.failure, static_cast<std::uint32_t>(why.error_class()));
}

void Meeting::raise_part(int step, std::size_t row_of_parts, std::uint32_t done) {
    store(row(me_).steps[step].parts[row_of_parts], done);
}

Task<Status> Meeting::part_raised(Executor& executor, int member, int step,
                                  std::size_t row_of_parts, std::uint32_t done) {
    return wait(executor, member, member + 1, step, row_of_parts, done);
}

bool Meeting::reached(int member, const Board::Wait& wait, Status& failed) {
    const int step = wait.step;
    const auto index = static_cast<std::size_t>(member);
    const int rank = ranks_[index];
    if (step == Board::kPosted) {
        if (find(member)) return true;
    } else if (find(member)) {
        const BoardPage::Step& there = row(member).steps[step];
        const std::uint64_t serial = member == me_ ? record_->serial : record_->found[index].serial;
        if (load(there.number) == static_cast<std::uint32_t>(serial)) return true;
        if (wait.parts > 0 && load(there.parts[wait.row_of_parts]) >= wait.parts) return true;
        if (const std::uint32_t error = load(there.failure); error != 0) {
            failed =
                failure(static_cast<int>(error), "rank {} failed in a collective operation", rank);
            return false;
        }
    }
    const Status& lost = board_.endpoints_.to(rank).lost;
    if (!lost.ok()) failed = lost;
    if (step == Board::kPosted && board_.is_revoked(context_)) failed = board_.why_revoked_;
    return false;
}

// True: the wait is over. Offers are wanted of all; of steps, whoever fails ends only itself.
bool Meeting::look(Board::Wait& wait) {
    if (wait.step == Board::kRow) {
        row_ = board_.free_row();
        return row_ < kBoardRows;
    }
    for (; wait.next < wait.end; ++wait.next) {
        Status failed;
        if (reached(wait.next, wait, failed)) continue;
        if (failed.ok()) return false;
        const int first = wait.first_failure.error_class();
        if (first == MPI_SUCCESS || (first == MPI_ERR_UNSUPPORTED_OPERATION &&
                                     failed.error_class() != MPI_ERR_UNSUPPORTED_OPERATION))
            wait.first_failure = std::move(failed);
        if (wait.step == Board::kPosted) return true;
    }
    return true;
}

Task<Status> Meeting::wait(Executor& executor, int first, int end, int step,
                           std::size_t row_of_parts, std::uint32_t parts) {
    Board::Wait waiting(executor);
    waiting.meeting = this;
    waiting.next = first;
    waiting.end = end;
    waiting.step = step;
    waiting.row_of_parts = row_of_parts;
    waiting.parts = parts;
    if (look(waiting)) co_return std::move(waiting.first_failure);
    board_.waits_.push_back(waiting);
    Status ended = co_await waiting.done;
    co_return ended;
}

void Meeting::leave() {
    if (record_ == nullptr) return;
    Board::Record& record = *std::exchange(record_, nullptr);
    record.live = false;
    if (!posted_) {  // nobody has seen the row
        record.ranks.clear();
        record.passed = true;
        return;
    }
    board_.pass(row_);
    if (!record.passed) board_.left_.push_back(row_);
}

}  // namespace gantry::transfer
