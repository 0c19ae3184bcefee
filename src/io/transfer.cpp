// SPDX-License-Identifier: BSD-3-Clause
#include "io/transfer.hpp"

#include "io/errors.hpp"
#include "io/steps.hpp"

namespace gantry::io {
namespace {

std::int64_t by_storage(const Transfer& transfer, const iovec& piece, std::int64_t offset) {
    return transfer.direction == Direction::read
               ? transfer.storage->read(transfer.storage_file, piece.iov_base, piece.iov_len,
                                        offset)
               : transfer.storage->write(transfer.storage_file, piece.iov_base, piece.iov_len,
                                         offset);
}

std::int64_t make(System& system, const Transfer& transfer, const Call& call) {
    // One piece at a time: the rest is another call.
    if (transfer.storage != nullptr) return by_storage(transfer, call.pieces[0], call.offset);
    return transfer.direction == Direction::read
               ? system.read(transfer.file, call.pieces.data(), call.number, call.offset)
               : system.write(transfer.file, call.pieces.data(), call.number, call.offset);
}

}  // namespace

Bytes Transfer::bytes() const {
    Bytes all = 0;
    for (const Segment& segment : segments)
        all += segment.bytes;
    return all;
}

void carry_out(System& system, Transfer& transfer) {
    Steps steps(transfer);
    while (const Call* const call = steps.next())
        steps.returned(make(system, transfer, *call));
}

bool read_now(System& system, Transfer& transfer) {
    if (transfer.direction != Direction::read || transfer.segments.empty()) return false;
    Call call;
    gather(transfer, 0, transfer.segments.size(), 0, call);
    if (call.bytes != transfer.bytes()) return false;
    const std::int64_t moved =
        system.read_now(transfer.file, call.pieces.data(), call.number, call.offset);
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
