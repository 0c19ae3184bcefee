// SPDX-License-Identifier: BSD-3-Clause
//
// What both sides do alike: rounds, and messages that end.
#include "mpi/partitioned/side.hpp"

#include "mpi/partitioned/send.hpp"

#include <limits>
#include <new>
#include <utility>

namespace gantry::mpi {

p2p::Buffer PartitionedBuffer::part(Bytes begin, Bytes end) const {
    const Bytes element = element_bytes();
    if (element == 0) return {address, 0, layout};
    const auto first = static_cast<std::ptrdiff_t>(begin / element);
    // Integers: MPI_BOTTOM is no pointer to count from.
    const auto at = reinterpret_cast<std::intptr_t>(address) + first * layout->extent;
    return {reinterpret_cast<void*>(at), divide_up(end - begin, element), layout};
}

std::uint32_t PartitionedPlace::take_tags(std::uint32_t number) const {
    if (*tags + number > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) *tags = 0;
    return std::exchange(*tags, *tags + number);
}

PartitionedSide::PartitionedSide(Role its_role, PartitionedPlace place,
                                 const PartitionedBuffer& buffer, int peer, int tag)
    : role(its_role), place_(std::move(place)), buffer_(buffer), peer_(peer), tag_(tag) {}

void PartitionedSide::close() {
    closed_ = true;
    if (hears_.request != nullptr) place_.held->keep(hears_.side);
}

void PartitionedSide::give_up() {
    if (hears_.request != nullptr) messenger().cancel(*hears_.request);
}

p2p::Buffer PartitionedSide::group_buffer(std::uint32_t group) const {
    return buffer_.part(layout_.unit_begin(layout_.first_unit(group)),
                        layout_.unit_end(layout_.end_unit(group) - 1));
}

p2p::Buffer PartitionedSide::unit_buffer(std::uint32_t unit) const {
    return buffer_.part(layout_.unit_begin(unit), layout_.unit_end(unit));
}

Result<p2p::Request*> PartitionedSide::start() {
    if (!broken_.ok()) return broken_;
    const auto kind = role == Role::sends ? p2p::RequestKind::send : p2p::RequestKind::receive;
    Result<p2p::Request*> made = messenger().create_request(kind);
    if (!made.ok()) return made;
    round_ = *made;
    if (role == Role::receives) round_->outcome = {peer_, tag_, 0, false};
    failure_ = {};
    under_way_ = 0;
    units_left_ = layout_.units;
    begin_round();
    return made;
}

Status PartitionedSide::agree(const PartitionLayout& layout, std::uint32_t first_tag) {
    const std::size_t messages = std::size_t{layout.groups} + layout.units;
    transfers_.reset(new (std::nothrow) Transfer[messages]);
    if (transfers_ == nullptr)
        return failure(MPI_ERR_NO_MEM, "out of memory for {} messages of a partitioned {}",
                       messages, role == Role::sends ? "send" : "receive");
    layout_ = layout;
    first_tag_ = first_tag;
    units_left_ = layout.units;
    agreed_ = true;
    return success();
}

void PartitionedSide::part_for_ever(const Status& why) {
    broken_ = why;
    if (round_ != nullptr) std::exchange(round_, nullptr)->complete(why);
}

void PartitionedSide::watch(Transfer& transfer, const Result<p2p::Request*>& started) {
    if (!started.ok()) return message_ended(transfer, started.status(), 0);
    transfer.side = self_.lock();
    transfer.request = started.value();
    transfer.function = transfer_ended;
    if (transfer.request->done)
        transfer_ended(transfer);
    else
        transfer.request->then(transfer, messenger().executor());
}

void PartitionedSide::transfer_ended(Resumable& resumable) {
    auto& transfer = static_cast<Transfer&>(resumable);
    const std::shared_ptr<PartitionedSide> side = std::move(transfer.side);
    p2p::Request* request = std::exchange(transfer.request, nullptr);
    const Status status = request->status;
    const Bytes bytes = request->outcome.bytes;
    const bool cancelled = request->outcome.cancelled;
    side->messenger().release(request);
    if (!cancelled) side->message_ended(transfer, status, bytes);
}

void PartitionedSide::note(const Status& status, std::uint32_t units) {
    if (!status.ok() && failure_.ok()) failure_ = status;
    units_left_ -= units;
    --under_way_;
    if (units_left_ > 0 || under_way_ > 0 || round_ == nullptr) return;
    if (role == Role::receives) round_->outcome.bytes = layout_.bytes;
    std::exchange(round_, nullptr)->complete(failure_.ok() ? mismatch_ : failure_);
}

}  // namespace gantry::mpi
