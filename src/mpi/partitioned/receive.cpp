// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/partitioned/receive.hpp"

#include "transfer/buffer.hpp"

#include <algorithm>
#include <new>

namespace gantry::mpi {

Status PartitionedReceive::open(std::shared_ptr<PartitionedSide> self) {
    self_ = self;
    if (!has_peer()) return success();
    watch(hears_,
          messenger().ireceive(*place_.greetings,
                               transfer::bytes_buffer(&greeting_, sizeof greeting_), peer_, tag_));
    return success();
}

void PartitionedReceive::answer(Answer::Fits fits) {
    answer_.fits = fits;
    watch(answers_, messenger().isend(
                        *place_.partitions, transfer::bytes_buffer(&answer_, sizeof answer_), peer_,
                        static_cast<int>(greeting_.answer_tag), p2p::SendMode::standard));
}

void PartitionedReceive::on_greeting(const Status& status) {
    if (!status.ok()) return part_for_ever(status);
    if (closed_) return answer(Answer::freed);
    const Bytes bytes = greeting_.partitions * greeting_.partition_bytes;
    if (bytes > buffer_.bytes()) {
        answer(Answer::too_small);
        return part_for_ever(failure(
            MPI_ERR_TRUNCATE,
            "a partitioned receive of {} bytes was matched by a send of {}: it needs as many at "
            "least",
            buffer_.bytes(), bytes));
    }
    if (place_.signatures != nullptr && greeting_.signature.items > 0)
        mismatch_ = place_.signatures->compare(greeting_.signature, bytes, peer_, buffer_.whole());
    const Bytes message = place_.message_bytes;
    const PartitionLayout layout =
        lay_out(greeting_.partitions, greeting_.partition_bytes, buffer_.element_bytes(), message);
    answer_ = {buffer_.element_bytes(), message, place_.take_tags(layout.groups + layout.units),
               Answer::yes};
    arrived_.reset(new (std::nothrow) bool[layout.units]());
    Status agreed = agree(layout, answer_.first_tag);
    if (arrived_ == nullptr)
        agreed =
            failure(MPI_ERR_NO_MEM, "out of memory for a receive of {} partitions", partitions());
    answer(agreed.ok() ? Answer::yes : Answer::too_small);
    if (!agreed.ok()) return part_for_ever(agreed);
    if (round_ != nullptr) post_groups();
}

void PartitionedReceive::begin_round() {
    if (!agreed_) return;
    std::fill_n(arrived_.get(), layout_.units, false);
    post_groups();
}

void PartitionedReceive::post_groups() {
    for (std::uint32_t group = 0; group < layout_.groups; ++group)
        watch_part(of_group(group), messenger().ireceive(*place_.partitions, group_buffer(group),
                                                         peer_, tag_of_group(group)));
}

void PartitionedReceive::post_units(std::uint32_t group) {
    for (std::uint32_t unit = layout_.first_unit(group); unit < layout_.end_unit(group); ++unit)
        watch_part(of_unit(unit), messenger().ireceive(*place_.partitions, unit_buffer(unit), peer_,
                                                       tag_of_unit(unit)));
}

void PartitionedReceive::message_ended(Transfer& transfer, const Status& status, Bytes bytes) {
    if (&transfer == &hears_) return on_greeting(status);
    if (&transfer == &answers_) {
        if (!status.ok()) part_for_ever(status);
        return;
    }
    const std::uint32_t index = index_of(transfer);
    if (index >= layout_.groups) {
        arrived_[index - layout_.groups] = status.ok();
        return note(status, 1);
    }
    if (status.ok() && bytes == 0 && layout_.units_in(index) > 1) {
        post_units(index);
        return note(status, 0);
    }
    std::fill_n(arrived_.get() + layout_.first_unit(index), layout_.units_in(index), status.ok());
    note(status, layout_.units_in(index));
}

bool PartitionedReceive::has_arrived(std::uint32_t partition) const {
    if (round_ == nullptr) return true;
    if (!agreed_) return false;
    const Bytes begin = partition * buffer_.partition_bytes();
    const Bytes end = begin + buffer_.partition_bytes();
    const std::uint32_t last = layout_.unit_at(std::max(end, begin + 1) - 1);
    for (std::uint32_t unit = layout_.unit_at(begin); unit <= last; ++unit)
        if (!arrived_[unit]) return false;
    return true;
}

}  // namespace gantry::mpi
