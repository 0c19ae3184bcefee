// SPDX-License-Identifier: BSD-3-Clause
//
// One rank's end of a Fabric.
#include "transport/fake/fabric.hpp"

#include <mpi.h>

namespace gantry::transport::fake {

PeerFacts FakeTransport::facts(int peer) const {
    const model::Link& link = fabric_.options_.link;
    PeerFacts facts;
    facts.self = peer == rank_;
    facts.shared_memory = fabric_.options_.medium == Medium::shared_memory;
    facts.put = fabric_.options_.medium == Medium::network;
    facts.device_memory = link.device_memory;
    facts.rails = link.rails;
    facts.eager_max = link.eager_max;
    facts.bytes_per_second = link.rate.peak();
    facts.message_latency = link.latency + link.message_cost;
    facts.put_cost = link.put_cost;
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
    // A peer that died is not known to be dead before its loss is told: what is sent until then
    // vanishes.
    fabric_.send(rank_, peer,
                 {rank_, kind, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
    return success();
}

Result<Region> FakeTransport::register_memory(void* address, Bytes bytes) {
    std::byte* stored =
        fabric_.options_.behind ? fabric_.options_.behind(rank_, address, bytes) : nullptr;
    if (fabric_.options_.medium != Medium::network ||
        (stored != nullptr && !fabric_.options_.link.device_memory))
        return failure(MPI_ERR_UNSUPPORTED_OPERATION, "fake registration of {} bytes at {}", bytes,
                       address);
    const std::uint64_t id = fabric_.next_region_++;
    fabric_.regions_[id] = {rank_, stored != nullptr ? stored : static_cast<std::byte*>(address),
                            bytes};
    return Region{id, address, bytes};
}

void FakeTransport::release_memory(const Region& region) {
    fabric_.regions_.erase(region.id);
}

RemoteKey FakeTransport::key(const Region& region) const {
    return RemoteKey(std::as_bytes(std::span(&region.id, 1)));
}

void FakeTransport::put(int peer, int rail, const void* source, Bytes bytes, const RemoteKey& key,
                        Bytes offset, Completion& done) {
    GANTRY_ASSERT(rail >= 0 && rail < fabric_.options_.link.rails);
    fabric_.put(rank_, peer, rail, static_cast<const std::byte*>(source), bytes, key, offset, done);
}

Result<std::span<std::byte>> FakeTransport::own_pool(Pool pool) {
    const FabricOptions& options = fabric_.options_;
    if (options.medium != Medium::shared_memory)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION, "the network has no shared pools");
    if (options.refuse_pools)
        return failure(MPI_ERR_NO_MEM, "no shared memory is left on the node (fake)");
    std::vector<std::byte>& memory = pools_[static_cast<int>(pool)];
    if (memory.empty())
        memory.resize(pool == Pool::host_cells ? options.host_pool : options.device_pool);
    return std::span(memory);
}

Result<std::span<std::byte>> FakeTransport::peer_pool(int peer, Pool pool) {
    GANTRY_ASSERT(reaches(peer));
    std::vector<std::byte>& memory = fabric_.end(peer).pools_[static_cast<int>(pool)];
    if (memory.empty()) return failure(MPI_ERR_INTERN, "rank {} has not reserved that pool", peer);
    return std::span(memory);
}

std::uint32_t* FakeTransport::claim_words(int rank) {
    if (fabric_.options_.medium != Medium::shared_memory || !reaches(rank)) return nullptr;
    FakeTransport& owner = fabric_.end(rank);
    if (owner.claims_ == nullptr)
        owner.claims_ = std::make_unique<std::array<std::uint32_t, 1024>>();
    return owner.claims_->data();
}

int FakeTransport::progress() {
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
        end.done->complete(end.status);
    }
    for (; !losses_.empty(); ++events) {
        const Loss loss = std::move(losses_.front());
        losses_.pop_front();
        receiver_->on_peer_lost(loss.peer, loss.why);
    }
    return events;
}

}  // namespace gantry::transport::fake
