// SPDX-License-Identifier: BSD-3-Clause
#include "io/steps.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace gantry::io {
namespace {

// How many segments from there on are read with what lies between them.
std::size_t sieved_together(const Transfer& transfer, std::size_t at) {
    const std::vector<Segment>& all = transfer.segments;
    std::size_t end = at + 1;
    while (end < all.size() &&
           all[end].offset - all[end - 1].end() <= static_cast<std::int64_t>(transfer.sieve) &&
           all[end].end() - all[at].offset <= static_cast<std::int64_t>(transfer.sieved))
        ++end;
    return end;
}

bool adjoin(const Transfer& transfer, std::size_t at, std::size_t end) {
    for (; at + 1 < end; ++at)
        if (transfer.segments[at].end() != transfer.segments[at + 1].offset) return false;
    return true;
}

}  // namespace

// What follows without a gap from there on.
void gather(const Transfer& transfer, std::size_t at, std::size_t end, Bytes skip, Call& call) {
    const std::vector<Segment>& all = transfer.segments;
    call.number = 0;
    call.bytes = 0;
    call.offset = all[at].offset + static_cast<std::int64_t>(skip);
    std::int64_t next = call.offset;
    for (; at < end && call.number < static_cast<int>(Call::kMostPieces); ++at, skip = 0) {
        const Segment& segment = all[at];
        if (segment.offset + static_cast<std::int64_t>(skip) != next) break;
        call.pieces[static_cast<std::size_t>(call.number++)] = {segment.memory + skip,
                                                                segment.bytes - skip};
        call.bytes += segment.bytes - skip;
        next = segment.end();
    }
}

Steps::Steps(Transfer& transfer) : transfer_(transfer) {
    // Without memory for it gaps are not read.
    if (sieves()) scratch_.reset(new (std::nothrow) std::byte[transfer.sieved]);
}

void Steps::begin_group() {
    gaps_ = false;
    group_end_ = transfer_.segments.size();
    if (scratch_ == nullptr) return;
    group_end_ = sieved_together(transfer_, at_);
    gaps_ = !adjoin(transfer_, at_, group_end_);
    wanted_ = static_cast<Bytes>(transfer_.segments[group_end_ - 1].end() -
                                 transfer_.segments[at_].offset);
    have_ = 0;
}

const Call* Steps::next() {
    if (ended_ || at_ == transfer_.segments.size()) return nullptr;
    if (at_ >= group_end_) begin_group();
    if (!gaps_) {
        gather(transfer_, at_, group_end_, skip_, call_);
        return &call_;
    }
    call_.pieces[0] = {scratch_.get() + have_, wanted_ - have_};
    call_.number = 1;
    call_.bytes = wanted_ - have_;
    call_.offset = transfer_.segments[at_].offset + static_cast<std::int64_t>(have_);
    return &call_;
}

bool Steps::is_one_call() const {
    return group_end_ == transfer_.segments.size() && (gaps_ || call_.bytes == transfer_.bytes());
}

void Steps::returned(std::int64_t moved) {
    if (moved == -EINTR || moved == -EAGAIN) return;
    if (gaps_)
        with_gaps(moved);
    else
        exactly(moved);
}

void Steps::exactly(std::int64_t moved) {
    if (moved < 0) return fail(moved, call_.offset);
    if (moved == 0)
        return transfer_.direction == Direction::write ? fail(-ENOSPC, call_.offset)
                                                       : meet_end(call_.offset);
    transfer_.moved += static_cast<Bytes>(moved);
    skip_ += static_cast<Bytes>(moved);
    while (at_ < group_end_ && skip_ >= transfer_.segments[at_].bytes)
        skip_ -= transfer_.segments[at_++].bytes;
}

void Steps::with_gaps(std::int64_t moved) {
    if (moved > 0) have_ += static_cast<Bytes>(moved);
    if (moved > 0 && have_ < wanted_) return;
    keep_wanted();
    const std::int64_t reached = transfer_.segments[at_].offset + static_cast<std::int64_t>(have_);
    if (moved < 0) return fail(moved, reached);
    if (moved == 0) return meet_end(reached);
    at_ = group_end_;
}

void Steps::keep_wanted() {
    const std::int64_t low = transfer_.segments[at_].offset;
    const std::int64_t reached = low + static_cast<std::int64_t>(have_);
    for (std::size_t at = at_; at < group_end_; ++at) {
        const Segment& segment = transfer_.segments[at];
        if (segment.offset >= reached) break;
        const Bytes bytes = std::min(segment.bytes, static_cast<Bytes>(reached - segment.offset));
        std::memcpy(segment.memory, scratch_.get() + (segment.offset - low), bytes);
        transfer_.moved += bytes;
    }
}

void Steps::fail(std::int64_t error, std::int64_t offset) {
    transfer_.failed = error;
    transfer_.failed_at = offset;
    ended_ = true;
}

void Steps::meet_end(std::int64_t offset) {
    transfer_.met_end = true;
    transfer_.end_at = offset;
    ended_ = true;
}

}  // namespace gantry::io
