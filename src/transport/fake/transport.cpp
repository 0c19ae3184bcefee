// SPDX-License-Identifier: BSD-3-Clause
//
// One rank's end of a Fabric.
#include "transport/fake/fabric.hpp"

#include <algorithm>
#include <mpi.h>

namespace gantry::transport::fake {

FakeTransport::FakeTransport(Fabric& fabric, int rank)
    : fabric_(fabric),
      rank_(rank),
      cache_(*this, fabric.options_.registrations, fabric.options_.host_pages) {}

PeerFacts FakeTransport::facts(int peer) const {
    const model::Link& link = fabric_.options_.link;
    PeerFacts facts;
    facts.self = peer == rank_;
    facts.shared_memory = fabric_.options_.medium == Medium::shared_memory;
    facts.put = fabric_.options_.medium == Medium::network;
    facts.unattended = facts.put;
    facts.get = facts.put && link.rails == 1;
    facts.device_memory = facts.put && fabric_.reaches_device(rank_);
    facts.device_read_bytes_per_second = link.device_read;
    facts.device_write_bytes_per_second = link.device_write;
    facts.registers_sources = facts.put;
    facts.rails = link.rails;
    facts.eager_max = link.eager_max;
    facts.eager_limit = link.eager_limit;
    facts.bytes_per_second = link.all_rails() / link.rails;
    facts.message_latency = link.latency + link.message_cost;
    facts.put_cost = link.put_cost;
    facts.rdma_from = facts.exposes_from = fabric_.options_.exposes_from;
    return facts;
}

Status FakeTransport::publish(job::Job&) {
    return success();
}

Status FakeTransport::open(job::Job&, Receiver& receiver) {
    receiver_ = &receiver;
    return success();
}

Task<Status> FakeTransport::close(Executor&) {
    co_return success();
}

Status FakeTransport::send(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) {
    GANTRY_ASSERT(header.size() <= kMaxHeader);
    GANTRY_ASSERT(payload.size() <= fabric_.options_.link.eager_max);
    if (fabric_.options_.on_send) GANTRY_TRY(fabric_.options_.on_send(rank_, kind));
    // A peer that died is not known to be dead before its loss is told: what is sent until then
    // vanishes.
    fabric_.send(rank_, peer,
                 {rank_, kind, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
    return success();
}

Result<Region> FakeTransport::register_memory(const Extent& extent) {
    return cache_.take(extent);
}

void FakeTransport::release_memory(const Region& region) {
    cache_.give(region);
}

// Takes the processor's time also when it is refused.
Status FakeTransport::map(std::uint64_t id, const Extent& extent) {
    const FabricOptions& options = fabric_.options_;
    if (options.spend) options.spend(rank_, options.link.register_cost);
    std::byte* stored =
        options.behind ? options.behind(rank_, extent.address, extent.bytes) : nullptr;
    const bool refused = options.refuse_registration && options.refuse_registration(rank_, extent);
    if (options.medium != Medium::network || refused ||
        (extent.place == MemoryPlace::device && !fabric_.reaches_device(rank_)))
        return failure(MPI_ERR_UNSUPPORTED_OPERATION, "fake registration of {} bytes at {}",
                       extent.bytes, extent.address);
    fabric_.regions_[{rank_, id}] = {
        stored != nullptr ? stored : static_cast<std::byte*>(extent.address), extent.bytes,
        extent.place};
    return success();
}

void FakeTransport::unmap(std::uint64_t id) {
    fabric_.regions_.erase({rank_, id});
}

RemoteKey FakeTransport::key(const Region& region) const {
    return RemoteKey(std::as_bytes(std::span(&region.id, 1)));
}

void FakeTransport::put(int peer, int rail, const void* source, Bytes bytes, const Region& from,
                        const RemoteKey& key, Bytes offset, Completion& done) {
    GANTRY_ASSERT(rail >= 0 && rail < fabric_.options_.link.rails);
    GANTRY_ASSERT(from.id == 0 || cache_.in_use(from.id) != nullptr);
    fabric_.put(rank_, peer, rail, static_cast<const std::byte*>(source), bytes, key, offset, done);
}

void FakeTransport::get(int peer, int rail, void* sink, Bytes bytes, const Region& into,
                        const RemoteKey& key, Bytes offset, Completion& done) {
    GANTRY_ASSERT(rail >= 0 && rail < fabric_.options_.link.rails);
    GANTRY_ASSERT(into.id == 0 || cache_.in_use(into.id) != nullptr);
    fabric_.get(rank_, peer, rail, static_cast<std::byte*>(sink), bytes, into, key, offset, done);
}

Status FakeTransport::expose(int peer, MessageKind kind, ConstSpan header, std::uint64_t exposure,
                             const void* source, Bytes bytes, Completion& done) {
    fabric_.exposures_[{rank_, exposure}] = {static_cast<const std::byte*>(source), bytes, &done};
    return send(peer, kind, header, {});
}

void FakeTransport::take_back(int, std::uint64_t exposure) {
    const auto found = fabric_.exposures_.find({rank_, exposure});
    if (found == fabric_.exposures_.end()) return;
    std::erase_if(put_ends_, [&](const PutEnd& end) { return end.done == found->second.done; });
    fabric_.exposures_.erase(found);
}

void FakeTransport::get_exposed(int peer, std::uint64_t exposure, void* sink, Bytes bytes,
                                Completion& done) {
    fabric_.get_exposed(rank_, peer, exposure, static_cast<std::byte*>(sink), bytes, done);
}

bool FakeTransport::reads_memory(int) {
    const FabricOptions& options = fabric_.options_;
    const bool possible =
        options.medium == Medium::shared_memory && !options.link.read_rate.points().empty();
    return possible && (!options.reads || options.reads(rank_));
}

SharedSegment* FakeTransport::shared_segment(int rank) {
    if (fabric_.options_.medium != Medium::shared_memory || !reaches(rank)) return nullptr;
    FakeTransport& owner = fabric_.end(rank);
    if (owner.segment_ == nullptr) {
        owner.segment_ = std::make_unique<Segment>(owner);
        owner.segment_->all_flags.resize(kSlotFlags + fabric_.ends_.size());
    }
    return owner.segment_.get();
}

Result<std::span<std::byte>> FakeTransport::Segment::pool(Pool pool) {
    const FabricOptions& options = owner.fabric_.options_;
    if (options.refuse_pools)
        return failure(MPI_ERR_NO_MEM, "no shared memory is left on the node (fake)");
    const Bytes bytes = pool == Pool::host_cells ? options.host_pool : options.device_pool;
    Zeroed& memory = pools[static_cast<int>(pool)];
    if (memory == nullptr) memory.reset(std::calloc(1, bytes));
    return std::span(static_cast<std::byte*>(memory.get()), bytes);
}

std::span<std::byte> FakeTransport::Segment::node_segment() {
    constexpr Bytes kAligned = 64;
    if (node_segment_memory == nullptr)
        node_segment_memory.reset(std::calloc(1, kNodeSegmentBytes + kAligned));
    void* start = node_segment_memory.get();
    std::size_t room = kNodeSegmentBytes + kAligned;
    std::align(kAligned, kNodeSegmentBytes, start, room);
    return {static_cast<std::byte*>(start), kNodeSegmentBytes};
}

bool FakeTransport::Segment::others_use(std::uint64_t gpu) const {
    Fabric& fabric = owner.fabric_;
    const int node = fabric.nodes_[static_cast<std::size_t>(owner.rank_)];
    return std::ranges::any_of(fabric.ranks_of_node_.at(node), [&](int rank) {
        const auto& other = fabric.end(rank).segment_;
        return rank != owner.rank_ && owner.reaches(rank) && other != nullptr &&
               other->gpus.contains(gpu);
    });
}

int FakeTransport::progress() {
    ++looks_;
    int events = 0;
    // Only what has come by now: a handler may send to its own rank.
    for (std::size_t count = inbox_.size(); count > 0; --count, ++events) {
        const Fabric::Packet packet = std::move(inbox_.front());
        inbox_.pop_front();
        receiver_->on_message(packet.from, packet.kind, packet.header, packet.payload);
    }
    for (; !put_ends_.empty(); ++events) {
        const PutEnd end = std::move(put_ends_.front());
        put_ends_.pop_front();
        std::erase_if(fabric_.exposures_,
                      [&](const auto& exposure) { return exposure.second.done == end.done; });
        end.done->complete(end.status);
    }
    for (; !losses_.empty(); ++events) {
        const Loss loss = std::move(losses_.front());
        losses_.pop_front();
        for (const auto& fetch : fetches_)
            if (fetch->lender == loss.peer && fetch->done != nullptr)
                std::exchange(fetch->done, nullptr)->complete(loss.why);
        receiver_->on_peer_lost(loss.peer, loss.why);
    }
    return events;
}

}  // namespace gantry::transport::fake
