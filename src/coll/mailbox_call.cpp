// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mailbox_call.hpp"

#include "layout/layout.hpp"
#include "transfer/node_segment.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::coll {
namespace {

using plan::Collective;
using transfer::kMailboxRoom;
using transfer::MailboxCell;

// Looks in a row without success before a rank that is waited for is asked about.
constexpr unsigned kLooks = 64;
// Parts of a cell begin at lines of their own, where a piece is no whole block.
constexpr Bytes kLine = 64;

Status too_long(Bytes bytes, int from, Bytes room) {
    return failure(
        MPI_ERR_TRUNCATE,
        "rank {} brings {} bytes where {} are expected: counts and datatypes of all ranks "
        "must agree",
        from, bytes, room);
}

}  // namespace

MailboxCall::MailboxCall(transfer::Mailbox& mailbox, const MailboxJob& job)
    : mailbox_(mailbox),
      job_(job),
      me_(mailbox.me()),
      size_(mailbox.size()),
      one_sends_(job.operation == Collective::bcast || job.operation == Collective::scatter),
      one_receives_(job.operation == Collective::reduce || job.operation == Collective::gather),
      to_each_(job.operation == Collective::scatter || job.operation == Collective::alltoall),
      all_read_(!one_sends_ && !one_receives_ && job.operation != Collective::scan),
      read_(job.operation == Collective::scan ? mailbox.me() : mailbox.size()) {
    const auto others = static_cast<Bytes>(size_ - 1);
    const Bytes fits = to_each_ ? kMailboxRoom / others : kMailboxRoom;
    piece_ = job.block;
    if (job.operation == Collective::reduce_scatter || job.operation == Collective::allgatherv)
        GANTRY_ASSERT(std::max(job.block, job.whole) <= kMailboxRoom);
    else if (piece_ > fits)
        piece_ = to_each_ ? fits / kLine * kLine : fits / job.element * job.element;
}

bool MailboxCall::begin() {
    if (mailbox_.begin()) return true;
    look_after(mailbox_.behind());
    return over_;
}

// That member is waited for. If it will never come, the call is over.
void MailboxCall::look_after(int member) {
    if (!waits_ && ++looks_ % kLooks != 0 && mailbox_.failed().ok()) return;
    Status trouble = mailbox_.trouble(member >= 0 ? member : me_);
    if (trouble.ok()) return;
    if (mailbox_.failed().ok()) mailbox_.fail(trouble);
    failure_.note(std::move(trouble));
    over_ = true;
}

bool MailboxCall::poll() {
    while (!over_) {
        if (!posted_) {
            if (!begun()) return false;
            if (over_) return true;
            if (offset_ == 0 && mailbox_.met_devices() && job_.operation != Collective::barrier) {
                meets_ = over_ = true;
                mailbox_.pass(job_.on_device);
                return true;
            }
            length_ = std::min(piece_, job_.block - offset_);
            post();
            posted_ = true;
            next_ = 0;
        }
        if (!all_there()) return over_;
        if (meets_) {
            mailbox_.pass(job_.on_device);
            over_ = true;
            return true;
        }
        take();
        mailbox_.pass(job_.on_device);
        offset_ += length_;
        over_ = offset_ >= job_.block;
        posted_ = begun_ = false;
    }
    return true;
}

void MailboxCall::fail(Status why) {
    mailbox_.fail(why);
    failure_.note(std::move(why));
    over_ = true;
}

void MailboxCall::load(Bytes first, Bytes bytes, std::byte* to) const {
    if (source_contiguous_)
        std::memcpy(to, job_.source.data() + first, bytes);
    else
        layout::pack(*job_.source.layout, job_.source.address, first, bytes, to);
}

void MailboxCall::store(Bytes first, Bytes bytes, const std::byte* from) {
    if (sink_contiguous_)
        std::memcpy(job_.sink.data() + first, from, bytes);
    else
        layout::unpack(*job_.sink.layout, job_.sink.address, first, bytes, from);
}

void MailboxCall::post() {
    if (offset_ == 0) {
        source_contiguous_ = job_.source.contiguous();
        sink_contiguous_ = job_.sink.contiguous();
        if (says_meet()) {
            meets_ = true;
            mailbox_.post(0, MailboxCell::Says::meet);
            return;
        }
    }
    switch (job_.operation) {
        case Collective::bcast:
        case Collective::scatter:
            if (me_ != job_.root) return;
            break;
        case Collective::gather:
            if (me_ == job_.root) return;
            break;
        case Collective::reduce:
            if (me_ == job_.root && brings_itself()) return;
            break;
        case Collective::scan:
            if (me_ == size_ - 1 && (job_.exclusive || brings_itself())) return;
            break;
        default: break;
    }
    if (to_each_) {
        const Bytes bytes = length_ * static_cast<Bytes>(size_ - 1);
        std::byte* const room = mailbox_.room(bytes);
        for (int member = 0; member < size_; ++member)
            if (member != me_)
                load(block_of(member), length_, room + place_of(member, me_) * length_);
        mailbox_.post(bytes);
        return;
    }
    const Bytes bytes = job_.operation == Collective::reduce_scatter ? job_.whole : length_;
    if (bytes > 0) load(job_.source_first + offset_, bytes, mailbox_.room(bytes));
    mailbox_.post(bytes);
}

// Whether every cell that this rank reads is there. All of them are, before anything is written: some
// rank's may say `meet`.
bool MailboxCall::all_there() {
    if (one_sends_ || !reads_all()) {
        if (!one_sends_ || me_ == job_.root) return true;
        const MailboxCell* const cell = mailbox_.cell_of(job_.root);
        if (cell == nullptr) {
            look_after(job_.root);
            return false;
        }
        meets_ |= cell->says == MailboxCell::Says::meet;
        return true;
    }
    for (; next_ < read_; ++next_) {
        if (next_ == me_) continue;
        const MailboxCell* const cell = mailbox_.cell_of(next_);
        if (cell == nullptr) {
            look_after(next_);
            return false;
        }
        meets_ |= cell->says == MailboxCell::Says::meet;
    }
    return true;
}

// This rank's block for itself.
void MailboxCall::keep_own(Bytes from, Bytes to) {
    if (job_.in_place) return;
    if (source_contiguous_) return store(to, length_, job_.source.data() + from);
    if (sink_contiguous_) return load(from, length_, job_.sink.data() + to);
    alignas(kLine) std::byte between[kMailboxRoom];
    load(from, length_, between);
    store(to, length_, between);
}

// Of an allgatherv: a whole block into its place.
void MailboxCall::store_listed(int member, const std::byte* from) {
    const layout::Layout& layout = *job_.sink.layout;
    std::byte* const place =
        static_cast<std::byte*>(job_.sink.address) +
        layout.extent * static_cast<std::ptrdiff_t>(job_.displacements[member]);
    const Bytes bytes = brought_by(member);
    if (layout.contiguous())
        std::memcpy(place, from, bytes);
    else
        layout::unpack(layout, place, 0, bytes, from);
}

// What that member's cell must hold.
Bytes MailboxCall::brought_by(int member) const {
    switch (job_.operation) {
        case Collective::reduce_scatter: return job_.whole;
        case Collective::allgatherv:
            return static_cast<Bytes>(job_.counts[member]) * job_.sink.layout->size;
        default: return to_each_ ? length_ * static_cast<Bytes>(size_ - 1) : length_;
    }
}

// What `member` brings to a reduction, from there on.
const std::byte* MailboxCall::operand(int member, Bytes first) const {
    return member == me_ && brings_itself() ? job_.source.data() + offset_ + first
                                            : mailbox_.bytes_of(member) + first;
}

// (((x0 op x1) op x2) ... of the first `members`: each result replaces a copy of the next operand, and the
// last of them is made in the sink.
void MailboxCall::combine(Bytes first, Bytes bytes, int members) {
    alignas(kLine) std::byte other[kMailboxRoom];
    std::byte* const sink = job_.sink.data() + offset_;
    const std::size_t count = bytes / job_.element * job_.items;
    const std::byte* before = operand(0, first);
    if (members == 1) std::memmove(sink, before, bytes);
    for (int member = 1; member < members; ++member) {
        std::byte* const result = (members - 1 - member) % 2 == 0 ? sink : other;
        std::memcpy(result, operand(member, first), bytes);
        job_.reduction(before, result, count);
        before = result;
    }
}

void MailboxCall::take() {
    const Collective operation = job_.operation;
    const bool reads = one_sends_ ? me_ != job_.root : reads_all();
    if (reads && operation != Collective::barrier) {
        for (int member = 0; member < read_; ++member) {
            if (member == me_ || (one_sends_ && member != job_.root)) continue;
            const MailboxCell* const cell = mailbox_.cell_of(member);
            const Bytes brought = brought_by(member);
            if (cell->bytes == brought) [[likely]]
                continue;
            failure_.note(too_long(cell->bytes, member, brought));
            return;
        }
    }
    switch (operation) {
        case Collective::bcast:
            if (reads) store(offset_, length_, mailbox_.bytes_of(job_.root));
            break;
        case Collective::scatter:
            if (reads)
                store(offset_, length_,
                      mailbox_.bytes_of(job_.root) + place_of(me_, job_.root) * length_);
            else
                keep_own(block_of(me_), offset_);
            break;
        case Collective::reduce:
            if (!reads) break;
            [[fallthrough]];
        case Collective::allreduce: combine(0, length_, size_); break;
        case Collective::reduce_scatter: combine(job_.share_first, length_, size_); break;
        case Collective::scan:
            if (const int members = job_.exclusive ? me_ : me_ + 1; members > 0)
                combine(0, length_, members);
            break;
        case Collective::gather:
            if (!reads) break;
            [[fallthrough]];
        case Collective::allgather:
            for (int member = 0; member < size_; ++member)
                if (member != me_) store(block_of(member), length_, mailbox_.bytes_of(member));
            keep_own(job_.source_first + offset_, block_of(me_));
            break;
        case Collective::allgatherv:
            for (int member = 0; member < size_; ++member)
                if (member != me_ || !job_.in_place)
                    store_listed(member, mailbox_.bytes_of(member));
            break;
        case Collective::alltoall:
            for (int member = 0; member < size_; ++member)
                if (member != me_)
                    store(block_of(member), length_,
                          mailbox_.bytes_of(member) + place_of(me_, member) * length_);
            keep_own(block_of(me_), block_of(me_));
            break;
        default: break;
    }
}

Task<Status> MailboxCall::finish(Executor& executor, transfer::NodeSegment& node_segment) {
    waits_ = true;
    const auto is_over = [](void* call) { return static_cast<MailboxCall*>(call)->poll(); };
    Status over = co_await node_segment.until(executor, is_over, this);
    co_return over;
}

Task<Status> MailboxCall::finish_begin(Executor& executor, transfer::NodeSegment& node_segment) {
    waits_ = true;
    const auto has_begun = [](void* call) { return static_cast<MailboxCall*>(call)->begun(); };
    Status begun = co_await node_segment.until(executor, has_begun, this);
    co_return begun;
}

}  // namespace gantry::coll
