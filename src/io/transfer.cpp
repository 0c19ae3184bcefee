// SPDX-License-Identifier: BSD-3-Clause
#include "io/transfer.hpp"

#include "io/errors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

namespace gantry::io {
namespace {

// Pieces of memory of one system call: few enough for the stack, and for every system (IOV_MAX).
constexpr std::size_t kMostPieces = 256;
// Bytes that are read at once for the sake of some of them.
constexpr Bytes kMostSieved = 4 * kMiB;

// Segments [first, end) as one call, from `skip` bytes inside the first one on.
struct Call {
    std::array<iovec, kMostPieces> pieces;
    int number = 0;
    Bytes bytes = 0;
};

std::int64_t by_storage(const Transfer& transfer, const iovec& piece, std::int64_t offset) {
    return transfer.direction == Direction::read
               ? transfer.storage->read(transfer.storage_file, piece.iov_base, piece.iov_len,
                                        offset)
               : transfer.storage->write(transfer.storage_file, piece.iov_base, piece.iov_len,
                                         offset);
}

// One system call until it has moved something, failed, or met the end.
std::int64_t once(System& system, const Transfer& transfer, const iovec* pieces, int number,
                  std::int64_t offset) {
    while (true) {
        // One piece at a time: the rest is another call.
        const std::int64_t moved = transfer.storage != nullptr
                                       ? by_storage(transfer, pieces[0], offset)
                                   : transfer.direction == Direction::read
                                       ? system.read(transfer.file, pieces, number, offset)
                                       : system.write(transfer.file, pieces, number, offset);
        if (moved != -EINTR && moved != -EAGAIN) return moved;
    }
}

void fail(Transfer& transfer, std::int64_t returned, std::int64_t offset) {
    transfer.failed = returned;
    transfer.failed_at = offset;
}

// What follows without a gap from there on.
void gather(const Transfer& transfer, std::size_t at, Bytes skip, Call& call) {
    const std::vector<Segment>& all = transfer.segments;
    call.number = 0;
    call.bytes = 0;
    std::int64_t end = all[at].offset + static_cast<std::int64_t>(skip);
    for (; at < all.size() && call.number < static_cast<int>(kMostPieces); ++at, skip = 0) {
        const Segment& segment = all[at];
        if (segment.offset + static_cast<std::int64_t>(skip) != end) break;
        call.pieces[static_cast<std::size_t>(call.number++)] = {segment.memory + skip,
                                                                segment.bytes - skip};
        call.bytes += segment.bytes - skip;
        end = segment.end();
    }
}

void carry_out_exactly(System& system, Transfer& transfer) {
    const std::vector<Segment>& all = transfer.segments;
    Call call;
    std::size_t at = 0;
    Bytes skip = 0;
    while (at < all.size()) {
        gather(transfer, at, skip, call);
        const std::int64_t offset = all[at].offset + static_cast<std::int64_t>(skip);
        const std::int64_t moved = once(system, transfer, call.pieces.data(), call.number, offset);
        if (moved < 0) return fail(transfer, moved, offset);
        if (moved == 0 && transfer.direction == Direction::write)
            return fail(transfer, -ENOSPC, offset);
        if (moved == 0) {
            transfer.met_end = true;
            transfer.end_at = offset;
            return;
        }
        transfer.moved += static_cast<Bytes>(moved);
        skip += static_cast<Bytes>(moved);
        while (at < all.size() && skip >= all[at].bytes)
            skip -= all[at++].bytes;
    }
}

// How many segments from there on are read with what lies between them.
std::size_t sieved_together(const Transfer& transfer, std::size_t at) {
    const std::vector<Segment>& all = transfer.segments;
    std::size_t end = at + 1;
    while (end < all.size() &&
           all[end].offset - all[end - 1].end() <= static_cast<std::int64_t>(transfer.sieve) &&
           all[end].end() - all[at].offset <= static_cast<std::int64_t>(kMostSieved))
        ++end;
    return end;
}

bool adjoin(const Transfer& transfer, std::size_t at, std::size_t end) {
    for (; at + 1 < end; ++at)
        if (transfer.segments[at].end() != transfer.segments[at + 1].offset) return false;
    return true;
}

// Reads everything between the first and the last of some segments, as far as the file goes, and
// keeps what is wanted. False: the transfer ended here.
bool read_sieved(System& system, Transfer& transfer, std::size_t at, std::size_t end,
                 std::byte* scratch) {
    const std::int64_t low = transfer.segments[at].offset;
    const Bytes wanted = static_cast<Bytes>(transfer.segments[end - 1].end() - low);
    Bytes have = 0;
    std::int64_t returned = 1;
    while (have < wanted && returned > 0) {
        const iovec piece{scratch + have, wanted - have};
        returned = once(system, transfer, &piece, 1, low + static_cast<std::int64_t>(have));
        if (returned > 0) have += static_cast<Bytes>(returned);
    }
    const std::int64_t reached = low + static_cast<std::int64_t>(have);
    for (; at < end; ++at) {
        const Segment& segment = transfer.segments[at];
        if (segment.offset >= reached) break;
        const Bytes bytes = std::min(segment.bytes, static_cast<Bytes>(reached - segment.offset));
        std::memcpy(segment.memory, scratch + (segment.offset - low), bytes);
        transfer.moved += bytes;
    }
    if (returned < 0) fail(transfer, returned, reached);
    if (returned == 0) {
        transfer.met_end = true;
        transfer.end_at = reached;
    }
    return have == wanted;
}

void carry_out_sieved(System& system, Transfer& transfer) {
    const std::unique_ptr<std::byte[]> scratch(new (std::nothrow) std::byte[kMostSieved]);
    if (scratch == nullptr) return carry_out_exactly(system, transfer);
    for (std::size_t at = 0; at < transfer.segments.size();) {
        const std::size_t end = sieved_together(transfer, at);
        if (!adjoin(transfer, at, end)) {
            if (!read_sieved(system, transfer, at, end, scratch.get())) return;
        } else {
            Transfer part{.file = transfer.file, .direction = transfer.direction};
            part.segments.assign(transfer.segments.begin() + static_cast<std::ptrdiff_t>(at),
                                 transfer.segments.begin() + static_cast<std::ptrdiff_t>(end));
            carry_out_exactly(system, part);
            transfer.moved += part.moved;
            if (part.failed != 0) return fail(transfer, part.failed, part.failed_at);
            if (part.met_end) {
                transfer.met_end = true;
                transfer.end_at = part.end_at;
                return;
            }
        }
        at = end;
    }
}

}  // namespace

Bytes Transfer::bytes() const {
    Bytes all = 0;
    for (const Segment& segment : segments)
        all += segment.bytes;
    return all;
}

void carry_out(System& system, Transfer& transfer) {
    if (transfer.direction == Direction::read && transfer.sieve > 0)
        carry_out_sieved(system, transfer);
    else
        carry_out_exactly(system, transfer);
}

bool read_now(System& system, Transfer& transfer) {
    if (transfer.direction != Direction::read || transfer.segments.empty()) return false;
    Call call;
    gather(transfer, 0, 0, call);
    if (call.bytes != transfer.bytes()) return false;
    const std::int64_t moved = system.read_now(transfer.file, call.pieces.data(), call.number,
                                               transfer.segments[0].offset);
    // Fewer bytes may be in memory than in the file.
    if (moved != static_cast<std::int64_t>(call.bytes)) return false;
    transfer.moved = call.bytes;
    return true;
}

Status outcome_of(const Transfer& transfer, std::string_view path) {
    if (transfer.failed == 0) return success();
    return refused(fmt::format("{} {} bytes at byte {} of \"{}\"",
                               transfer.direction == Direction::read ? "reading" : "writing",
                               transfer.bytes() - transfer.moved, transfer.failed_at, path),
                   transfer.failed);
}

}  // namespace gantry::io
