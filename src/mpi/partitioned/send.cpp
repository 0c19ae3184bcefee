// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/partitioned/send.hpp"

#include "transfer/buffer.hpp"

#include <algorithm>
#include <new>

namespace gantry::mpi {
namespace {

Status no_memory(std::uint32_t partitions) {
    return failure(MPI_ERR_NO_MEM, "out of memory for a send of {} partitions", partitions);
}

}  // namespace

PartitionedSend::~PartitionedSend() = default;

Status PartitionedSend::open(std::shared_ptr<PartitionedSide> self) {
    self_ = self;
    ready_.reset(new (std::nothrow) bool[std::max(partitions(), 1u)]());
    if (ready_ == nullptr) return no_memory(partitions());
    if (!has_peer()) return success();
    greeting_ = {buffer_.partition_bytes(), partitions(), place_.take_tags(1), {}};
    if (place_.signatures != nullptr)
        greeting_.signature = place_.signatures->of(buffer_.whole()).value_or(layout::Signature{});
    watch(hears_,
          messenger().ireceive(*place_.partitions, transfer::bytes_buffer(&answer_, sizeof answer_),
                               peer_, static_cast<int>(greeting_.answer_tag)));
    watch(greets_,
          messenger().isend(*place_.greetings, transfer::bytes_buffer(&greeting_, sizeof greeting_),
                            peer_, tag_, p2p::SendMode::standard));
    return success();
}

void PartitionedSend::begin_round() {
    std::fill_n(ready_.get(), partitions(), false);
    if (!agreed_) return;
    std::fill_n(groups_.get(), layout_.groups, Group{});
    for (std::uint32_t unit = 0; unit < layout_.units; ++unit)
        waits_for_[unit] = layout_.partitions_of(unit, partitions());
    if (partitions() == 0) send_group(0);  // nothing to wait for
}

void PartitionedSend::on_answer(const Status& status) {
    if (!status.ok()) return part_for_ever(status);
    if (closed_) return;
    if (answer_.fits == Answer::freed)
        return part_for_ever(failure(MPI_ERR_REQUEST,
                                     "a partitioned send with tag {} was matched by a receive that "
                                     "rank {} has freed without a start",
                                     tag_, peer_));
    if (answer_.fits == Answer::too_small)
        return part_for_ever(failure(MPI_ERR_TRUNCATE,
                                     "a partitioned send of {} bytes was matched by a receive of "
                                     "fewer: it needs as many at least",
                                     buffer_.bytes()));
    const PartitionLayout layout = lay_out(partitions(), buffer_.partition_bytes(),
                                           answer_.element_bytes, answer_.message_bytes);
    waits_for_.reset(new (std::nothrow) std::uint32_t[layout.units]);
    groups_.reset(new (std::nothrow) Group[layout.groups]);
    if (waits_for_ == nullptr || groups_ == nullptr) return part_for_ever(no_memory(partitions()));
    const Status agreed = agree(layout, answer_.first_tag);
    if (!agreed.ok()) return part_for_ever(agreed);
    if (round_ == nullptr) return;
    for (std::uint32_t unit = 0; unit < layout_.units; ++unit)
        waits_for_[unit] = layout_.partitions_of(unit, partitions());
    if (partitions() == 0) send_group(0);
    for (std::uint32_t partition = 0; partition < partitions(); ++partition)
        if (ready_[partition]) count_ready(partition);
}

void PartitionedSend::make_ready(std::uint32_t partition) {
    ready_[partition] = true;
    if (agreed_ && round_ != nullptr) count_ready(partition);
}

void PartitionedSend::count_ready(std::uint32_t partition) {
    const std::uint32_t unit = layout_.unit_of_partition(partition);
    if (--waits_for_[unit] == 0) unit_is_ready(unit);
}

void PartitionedSend::unit_is_ready(std::uint32_t unit) {
    const std::uint32_t group = layout_.group_of(unit);
    Group& its = groups_[group];
    ++its.ready_units;
    if (its.is_split)
        send_unit(unit);
    else if (its.ready_units == layout_.units_in(group))
        send_group(group);
    else
        place_.held->add(*this);
}

void PartitionedSend::send_group(std::uint32_t group) {
    watch_part(of_group(group), messenger().isend(*place_.partitions, group_buffer(group), peer_,
                                                  tag_of_group(group), p2p::SendMode::standard));
}

void PartitionedSend::send_unit(std::uint32_t unit) {
    watch_part(of_unit(unit), messenger().isend(*place_.partitions, unit_buffer(unit), peer_,
                                                tag_of_unit(unit), p2p::SendMode::standard));
}

// A message without a byte tells of it.
void PartitionedSend::split(std::uint32_t group) {
    groups_[group].is_split = true;
    watch_part(of_group(group),
               messenger().isend(*place_.partitions, transfer::bytes_buffer(nullptr, 0), peer_,
                                 tag_of_group(group), p2p::SendMode::standard));
    for (std::uint32_t unit = layout_.first_unit(group); unit < layout_.end_unit(group); ++unit)
        if (waits_for_[unit] == 0) send_unit(unit);
}

void PartitionedSend::send_held() {
    for (std::uint32_t group = 0; group < layout_.groups; ++group) {
        const Group& its = groups_[group];
        if (!its.is_split && its.ready_units > 0 && its.ready_units < layout_.units_in(group))
            split(group);
    }
}

void PartitionedSend::message_ended(Transfer& transfer, const Status& status, Bytes) {
    if (&transfer == &hears_) return on_answer(status);
    if (&transfer == &greets_) {
        if (!status.ok()) part_for_ever(status);
        return;
    }
    const std::uint32_t index = index_of(transfer);
    if (index >= layout_.groups) return note(status, 1);
    note(status, groups_[index].is_split ? 0 : layout_.units_in(index));
}

void HeldPartitions::keep(const std::shared_ptr<PartitionedSide>& freed) {
    std::erase_if(freed_,
                  [](const std::weak_ptr<PartitionedSide>& each) { return each.expired(); });
    freed_.push_back(freed);
}

void HeldPartitions::give_up() {
    for (const std::weak_ptr<PartitionedSide>& each : freed_)
        if (const std::shared_ptr<PartitionedSide> side = each.lock()) side->give_up();
    freed_.clear();
}

int HeldPartitions::send() {
    int sides = 0;
    for (; PartitionedSend* send = sends_.pop_front(); ++sides)
        send->send_held();
    return sides;
}

}  // namespace gantry::mpi
