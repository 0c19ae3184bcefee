// SPDX-License-Identifier: BSD-3-Clause
//
// Every word has one writer, so loads and stores with acquire and release are all that is needed. A
// descriptor is published by its serial, then by its key.
#include "transfer/node_segment.hpp"

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

std::uint64_t hash_of(Handshake::Key key, std::span<const int> ranks) {
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

// --- descriptors --------------------------------------------------------------------------------------

// The first look at the key spares most descriptors the rest. Serials grow, so the descriptor had this one all the time
// between the two looks at it, and then its key is the one that was posted with it, or none yet.
std::uint64_t posted_serial(const NodeSegmentPage& page, std::size_t descriptor,
                            std::uint64_t key) {
    if (load(page.keys[descriptor]) != key) return 0;
    const std::uint64_t serial = load(page.descriptors[descriptor].serial);
    if (load(page.keys[descriptor]) != key) return 0;
    return load(page.descriptors[descriptor].serial) == serial ? serial : 0;
}

void withdraw_descriptor(NodeSegmentPage& page, std::size_t descriptor) {
    store(page.keys[descriptor], std::uint64_t{0});
}

void post_descriptor(NodeSegmentPage& page, std::size_t descriptor, std::uint64_t serial,
                     std::uint64_t key) {
    store(page.descriptors[descriptor].serial, serial);
    store(page.keys[descriptor], key);
}

namespace {

PostedDescriptor look_through(const NodeSegmentPage& page, std::uint64_t key,
                              const std::array<std::uint64_t, kDescriptors>& read) {
    PostedDescriptor oldest;
    const auto used = static_cast<std::size_t>(load(page.used));
    for (std::size_t descriptor = 0; descriptor < used; ++descriptor) {
        const std::uint64_t serial = posted_serial(page, descriptor, key);
        if (serial > read[descriptor] && (oldest.serial == 0 || serial < oldest.serial))
            oldest = {descriptor, serial};
    }
    return oldest;
}

}  // namespace

// A descriptor may be posted when it has been looked at, and the next one, of the same key, before that one is. Who
// has seen the later one sees both when looking again.
PostedDescriptor oldest_posted(const NodeSegmentPage& page, std::uint64_t key,
                               const std::array<std::uint64_t, kDescriptors>& read) {
    const PostedDescriptor seen = look_through(page, key, read);
    return seen.serial == 0 ? seen : look_through(page, key, read);
}

// --- NodeSegment ---------------------------------------------------------------------------------------

bool NodeSegment::covers(std::span<const int> ranks) {
    return std::all_of(ranks.begin(), ranks.end(), [this](int rank) {
        return rank == world_rank_ ||
               (rank < endpoints_.world_size() && endpoints_.to(rank).facts.shared_memory);
    });
}

std::span<std::byte> NodeSegment::own_page() {
    Peer* const own = peer(world_rank_);
    if (own == nullptr) return {};
    return {reinterpret_cast<std::byte*>(own->page), sizeof *own->page};
}

// Null: its page is not there, as long as that rank has not begun to communicate.
NodeSegment::Peer* NodeSegment::peer(int rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (peers_.empty()) peers_.resize(static_cast<std::size_t>(endpoints_.size()));
    for (std::size_t way = 0; peers_[index] == nullptr && way < transports_.size(); ++way) {
        transport::SharedSegment* const segment = transports_[way]->shared_segment(rank);
        if (segment == nullptr) continue;
        const std::span<std::byte> page = segment->node_segment();
        if (page.empty()) continue;
        peers_[index] = std::make_unique<Peer>();
        peers_[index]->page = reinterpret_cast<NodeSegmentPage*>(page.data());
    }
    return peers_[index].get();
}

// The oldest descriptor of that rank with that key that was not read yet: an operation may come again, and
// its last descriptor lies there still.
bool NodeSegment::find(int rank, std::uint64_t key, Found& found) {
    if (found.serial != 0) return true;
    Peer* const from = peer(rank);
    if (from == nullptr) return false;
    found = oldest_posted(*from->page, key, from->read);
    if (found.serial == 0) return false;
    from->read[found.descriptor] = found.serial;
    from->passed_below =
        std::max(from->passed_below, from->page->descriptors[found.descriptor].passed_below);
    return true;
}

// What an operation with the same key, which this rank has left, did not read is still that one's.
bool NodeSegment::find_in_turn(Record& record, std::size_t member) {
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

bool NodeSegment::is_gone(int rank) {
    if (!endpoints_.to(rank).lost.ok()) return true;
    return std::any_of(transports_.begin(), transports_.end(), [rank](auto* transport) {
        const transport::SharedSegment* const segment = transport->shared_segment(rank);
        return segment != nullptr && segment->left();
    });
}

void NodeSegment::revoke(std::uint32_t context, std::uint32_t mask, Status why) {
    revoked_.push_back(context & mask);
    revoked_mask_ = mask;
    why_revoked_ = std::move(why);
}

bool NodeSegment::is_revoked(std::uint32_t context) const {
    return std::ranges::find(revoked_, context & revoked_mask_) != revoked_.end();
}

// A descriptor that its owner uses again was passed by everybody.
bool NodeSegment::has_passed(int rank, const Found& found) {
    if (found.serial == 0) return true;
    const Peer& from = *peer(rank);
    const NodeSegmentPage::Descriptor& descriptor = from.page->descriptors[found.descriptor];
    return found.serial < from.passed_below || load(descriptor.serial) != found.serial ||
           load(descriptor.passed) != 0 || is_gone(rank);
}

bool NodeSegment::is_free(Record& record) {
    if (record.live || !record.passed) return false;
    for (std::size_t i = 0; i < record.ranks.size(); ++i)
        if (record.ranks[i] != world_rank_ && !has_passed(record.ranks[i], record.found[i]))
            return false;
    record.ranks.clear();
    return true;
}

// Says that this rank is through with a descriptor that it has left, if it has found those of all others.
void NodeSegment::pass(std::size_t descriptor) {
    Record& record = records_[descriptor];
    for (std::size_t i = 0; i < record.ranks.size(); ++i)
        if (!find_in_turn(record, i) && !is_gone(record.ranks[i]) && !is_revoked(record.context))
            return;
    record.passed = true;
    store(own_->descriptors[descriptor].passed, 1u);
}

void NodeSegment::pass_what_was_left() {
    std::erase_if(left_, [this](std::size_t descriptor) {
        pass(descriptor);
        return records_[descriptor].passed;
    });
}

std::size_t NodeSegment::free_descriptor() {
    if (records_.empty()) records_.resize(kDescriptors);
    pass_what_was_left();
    std::size_t descriptor = 0;
    while (descriptor < kDescriptors && !is_free(records_[descriptor]))
        ++descriptor;
    return descriptor;
}

std::uint64_t NodeSegment::oldest_not_passed() const {
    std::uint64_t oldest = last_serial_ + 1;
    for (std::size_t descriptor = 0; descriptor < opened_; ++descriptor)
        if (!records_[descriptor].passed) oldest = std::min(oldest, records_[descriptor].serial);
    return oldest;
}

int NodeSegment::progress() {
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

bool NodeSegment::nothing_unread() {
    pass_what_was_left();
    return std::all_of(mailboxes_->begin(), mailboxes_->end(),
                       [this](const MailboxRecord& each) { return is_through(each); }) &&
           std::all_of(records_.begin(), records_.end(),
                       [this](Record& each) { return is_free(each); });
}

bool NodeSegment::is_over(Wait& wait) {
    if (wait.ended != nullptr) return wait.ended(wait.with);
    return wait.handshake != nullptr ? wait.handshake->look(wait) : nothing_unread();
}

Task<Status> NodeSegment::until(Executor& executor, bool (*ended)(void*), void* with) {
    Wait waiting(executor);
    waiting.ended = ended;
    waiting.with = with;
    if (ended(with)) co_return success();
    waits_.push_back(waiting);
    Status over = co_await waiting.done;
    co_return over;
}

Task<Status> NodeSegment::all_read(Executor& executor) {
    Wait waiting(executor);
    if (nothing_unread()) co_return success();
    waits_.push_back(waiting);
    Status ended = co_await waiting.done;
    co_return ended;
}

// --- Handshake -------------------------------------------------------------------------------------

Handshake::Handshake(NodeSegment& node_segment, std::span<const int> ranks, int me, Key key)
    : node_segment_(node_segment),
      ranks_(ranks),
      me_(me),
      context_(key.context),
      key_(hash_of(key, ranks)) {}

Task<Status> Handshake::open(Executor& executor) {
    NodeSegment::Peer* const own = node_segment_.peer(node_segment_.world_rank_);
    if (own == nullptr)
        co_return failure(MPI_ERR_INTERN, "this rank has no page of the node segment");
    if (node_segment_.is_revoked(context_)) co_return Status(node_segment_.why_revoked_);
    node_segment_.own_ = own->page;
    descriptor_ = node_segment_.free_descriptor();
    if (descriptor_ == kDescriptors) {
        Status freed = co_await wait(executor, me_, me_ + 1, NodeSegment::kDescriptor);
        GANTRY_CO_TRY(freed);
    }
    record_ = &node_segment_.records_[descriptor_];
    node_segment_.opened_ = std::max(node_segment_.opened_, descriptor_ + 1);
    record_->live = true;
    record_->passed = false;
    record_->key = key_;
    record_->context = context_;
    record_->serial = ++node_segment_.last_serial_;
    record_->ranks.assign(ranks_.begin(), ranks_.end());
    record_->found.assign(ranks_.size(), {});
    NodeSegmentPage& page = *own->page;
    withdraw_descriptor(page, descriptor_);
    NodeSegmentPage::Descriptor& mine = page.descriptors[descriptor_];
    for (NodeSegmentPage::Phase& phase : mine.phases) {
        store(phase.failure, 0u);
        for (std::uint32_t& parts : phase.parts)
            store(parts, 0u);
    }
    store(mine.passed, 0u);
    co_return success();
}

void Handshake::publish(const void* offer, Bytes bytes) {
    GANTRY_ASSERT(record_ != nullptr && !posted_);
    NodeSegmentPage& page = *node_segment_.own_;
    NodeSegmentPage::Descriptor& mine = page.descriptors[descriptor_];
    std::memcpy(mine.offer, offer, bytes);
    if (page.used <= descriptor_) store(page.used, static_cast<std::uint64_t>(descriptor_ + 1));
    mine.passed_below = node_segment_.oldest_not_passed();
    post_descriptor(page, descriptor_, record_->serial, key_);
    posted_ = true;
    record_->found[static_cast<std::size_t>(me_)] = {descriptor_, record_->serial};
}

bool Handshake::find(int member) {
    if (member == me_) return posted_;
    return node_segment_.find_in_turn(*record_, static_cast<std::size_t>(member));
}

NodeSegmentPage::Descriptor& Handshake::descriptor(int member) const {
    const auto index = static_cast<std::size_t>(member);
    if (member == me_) return node_segment_.own_->descriptors[descriptor_];
    return node_segment_.peers_[static_cast<std::size_t>(ranks_[index])]
        ->page->descriptors[record_->found[index].descriptor];
}

std::span<std::byte> Handshake::cell_of(int member) const {
    const auto index = static_cast<std::size_t>(member);
    const std::size_t descriptor = member == me_ ? descriptor_ : record_->found[index].descriptor;
    if (descriptor >= kCells) return {};
    NodeSegmentPage* const page =
        member == me_ ? node_segment_.own_
                      : node_segment_.peers_[static_cast<std::size_t>(ranks_[index])]->page;
    return page->cells[descriptor];
}

void Handshake::raise(int phase) {
    store(descriptor(me_).phases[phase].number, static_cast<std::uint32_t>(record_->serial));
}

void Handshake::fail(const Status& why) {
    for (NodeSegmentPage::Phase& phase : descriptor(me_).phases)
        store(phase.failure, static_cast<std::uint32_t>(why.error_class()));
}

void Handshake::raise_part(int phase, std::size_t descriptor_of_parts, std::uint32_t done) {
    store(descriptor(me_).phases[phase].parts[descriptor_of_parts], done);
}

Task<Status> Handshake::part_raised(Executor& executor, int member, int phase,
                                    std::size_t descriptor_of_parts, std::uint32_t done) {
    return wait(executor, member, member + 1, phase, descriptor_of_parts, done);
}

bool Handshake::reached(int member, const NodeSegment::Wait& wait, Status& failed) {
    const int phase = wait.phase;
    const auto index = static_cast<std::size_t>(member);
    const int rank = ranks_[index];
    if (phase == NodeSegment::kPosted) {
        if (find(member)) return true;
    } else if (find(member)) {
        const NodeSegmentPage::Phase& there = descriptor(member).phases[phase];
        const std::uint64_t serial = member == me_ ? record_->serial : record_->found[index].serial;
        if (load(there.number) == static_cast<std::uint32_t>(serial)) return true;
        if (wait.parts > 0 && load(there.parts[wait.descriptor_of_parts]) >= wait.parts)
            return true;
        if (const std::uint32_t error = load(there.failure); error != 0) {
            failed =
                failure(static_cast<int>(error), "rank {} failed in a collective operation", rank);
            return false;
        }
    }
    const Status& lost = node_segment_.endpoints_.to(rank).lost;
    if (!lost.ok()) failed = lost;
    if (phase == NodeSegment::kPosted && node_segment_.is_revoked(context_))
        failed = node_segment_.why_revoked_;
    return false;
}

// True: the wait is over. Offers are wanted of all; of phases, whoever fails ends only itself.
bool Handshake::look(NodeSegment::Wait& wait) {
    if (wait.phase == NodeSegment::kDescriptor) {
        descriptor_ = node_segment_.free_descriptor();
        return descriptor_ < kDescriptors;
    }
    for (; wait.next < wait.end; ++wait.next) {
        Status failed;
        if (reached(wait.next, wait, failed)) continue;
        if (failed.ok()) return false;
        const int first = wait.first_failure.error_class();
        if (first == MPI_SUCCESS || (first == MPI_ERR_UNSUPPORTED_OPERATION &&
                                     failed.error_class() != MPI_ERR_UNSUPPORTED_OPERATION))
            wait.first_failure = std::move(failed);
        if (wait.phase == NodeSegment::kPosted) return true;
    }
    return true;
}

Task<Status> Handshake::wait(Executor& executor, int first, int end, int phase,
                             std::size_t descriptor_of_parts, std::uint32_t parts) {
    NodeSegment::Wait waiting(executor);
    waiting.handshake = this;
    waiting.next = first;
    waiting.end = end;
    waiting.phase = phase;
    waiting.descriptor_of_parts = descriptor_of_parts;
    waiting.parts = parts;
    if (look(waiting)) co_return std::move(waiting.first_failure);
    node_segment_.waits_.push_back(waiting);
    Status ended = co_await waiting.done;
    co_return ended;
}

void Handshake::leave() {
    if (record_ == nullptr) return;
    NodeSegment::Record& record = *std::exchange(record_, nullptr);
    record.live = false;
    if (!posted_) {  // nobody has seen the descriptor
        record.ranks.clear();
        record.passed = true;
        return;
    }
    node_segment_.pass(descriptor_);
    if (!record.passed) node_segment_.left_.push_back(descriptor_);
}

}  // namespace gantry::transfer
