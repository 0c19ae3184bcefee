// SPDX-License-Identifier: BSD-3-Clause
#include "coll/node/exchange.hpp"

#include "coll/node/exchange_scratch.hpp"
#include "coll/node/store_shares.hpp"
#include "coll/exchange.hpp"
#include "coll/host_image.hpp"
#include "coll/node/mapped_peers.hpp"
#include "coll/node/node_call.hpp"
#include "transfer/local_move.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::coll {
namespace {

// Everything of one exchange that outlives a wait.
class Exchange final : public NodeCall {
  public:
    Exchange(const Team& its_team, Traffic its_traffic, const plan::CallQuestion& its_question)
        : NodeCall(its_team, its_question), traffic(std::move(its_traffic)), scratch_(team) {}

    Traffic traffic;

  private:
    Task<Result<MemoryOffer>> bring(Executor& executor) override;
    AgreedQuestion ask(int first, int end) const override {
        return AgreedQuestion(question, offers(), first, end, traffic.only_receiver);
    }
    int only_sender() const override { return traffic.only_sender; }
    Task<Status> act(Executor& executor, plan::CollPlan plan) override;
    Task<Status> settle(Executor& executor) override;

    DirectScratch scratch_;
    bool unpacks_ = true;
    std::vector<p2p::Buffer> incoming_;  // where scratch memory takes their place
};

Status too_long(Bytes bytes, int from, Bytes room) {
    return failure(MPI_ERR_TRUNCATE,
                   "rank {} sends a block of {} bytes where only {} are received: counts and "
                   "datatypes of both must agree",
                   from, bytes, room);
}

// --- small blocks, in cells ----------------------------------------------------------------------

// Blocks that were taken and belong into device memory: from one run of host memory, so that neighbours
// there are one copy.
class ForDevice {
  public:
    explicit ForDevice(const Team& team) : team_(team) {}
    void add(const std::byte* bytes, const p2p::Buffer& sink, Bytes size) {
        from_.push_back(bytes);
        sinks_.push_back(transfer::bytes_buffer(sink.data(), size));
        bytes_ += size;
    }
    Task<Status> copy(Executor& executor) {
        if (bytes_ == 0) co_return success();
        HostImage all;
        Status ready = all.allocate(team_, bytes_, *transfer::bytes_buffer(nullptr, 0).layout);
        GANTRY_CO_TRY(ready);
        auto* at = static_cast<std::byte*>(all.address());
        std::vector<p2p::Buffer> together;
        for (std::size_t i = 0; i < from_.size(); ++i) {
            std::memcpy(at, from_[i], sinks_[i].bytes());
            together.push_back(transfer::bytes_buffer(at, sinks_[i].bytes()));
            at += sinks_[i].bytes();
        }
        Status copied = co_await copy_blocks(executor, team_, std::move(together), sinks_);
        co_return copied;
    }

  private:
    const Team team_;
    Bytes bytes_ = 0;
    std::vector<const std::byte*> from_;
    std::vector<p2p::Buffer> sinks_;
};

Task<Status> take_from_cell(Executor& executor, Exchange& exchange, int from, ForDevice& later) {
    const MemoryOffer& offer = exchange.offer(from);
    const std::span<std::byte> cell = exchange.handshake.cell_of(from);
    const Team& team = exchange.team;
    p2p::Buffer sink = exchange.traffic.incoming[static_cast<std::size_t>(from)];
    if (offer.source == Held::nothing) co_return success();
    const BlockPlace place = source_place(offer, cell, exchange.size(), team.rank());
    if (place.bytes == 0) co_return success();
    if (place.bytes > sink.bytes()) co_return too_long(place.bytes, from, sink.bytes());
    const std::byte* const bytes = cell.data() + place.at;
    if (on_host(team, sink)) {
        layout::unpack(*sink.layout, sink.address, 0, place.bytes, bytes);
        co_return success();
    }
    if (sink.contiguous()) {
        later.add(bytes, sink, place.bytes);
        co_return success();
    }
    const p2p::Buffer packed = transfer::bytes_buffer(bytes, place.bytes);
    Status copied = co_await transfer::copy_local(executor, *team.context, packed, sink);
    co_return copied;
}

// This rank's block for itself.
Task<Status> take_own(Executor& executor, Exchange& exchange) {
    const Team& team = exchange.team;
    const auto me = static_cast<std::size_t>(team.rank());
    const p2p::Buffer source = exchange.traffic.outgoing[me], sink = exchange.traffic.incoming[me];
    if (source.bytes() == 0) co_return success();
    if (source.contiguous() && sink.contiguous() && source.bytes() <= sink.bytes() &&
        on_host(team, sink)) {
        std::memcpy(sink.data(), source.data(), source.bytes());
        co_return success();
    }
    Status copied = co_await copy(executor, team, source, sink);
    co_return copied;
}

Task<Status> take_from_cells(Executor& executor, Exchange& exchange) {
    const Team& team = exchange.team;
    FirstFailure failed;
    const bool own_in_cell = exchange.offer(team.rank()).own_in_cell;
    if (!own_in_cell) {
        Status own = co_await take_own(executor, exchange);
        failed.note(std::move(own));
    }
    ForDevice later(team);
    const int only = exchange.traffic.only_sender, root = exchange.traffic.only_receiver;
    if (root >= 0 && team.rank() != root) co_return failed.status();
    for (int from = 0; from < exchange.size(); ++from) {
        if ((from == team.rank() && !own_in_cell) || (only >= 0 && from != only)) continue;
        Status taken = co_await take_from_cell(executor, exchange, from, later);
        failed.note(std::move(taken));
    }
    Status copied = co_await later.copy(executor);
    failed.note(std::move(copied));
    co_return failed.status();
}

// --- long blocks in host memory, read where they lie ---------------------------------------------

Task<Status> take_from_host(Executor& executor, Exchange& exchange, int from, ForDevice& later) {
    const MemoryOffer& offer = exchange.offer(from);
    if (offer.source != Held::host) {
        Status taken = co_await take_from_cell(executor, exchange, from, later);
        co_return taken;
    }
    const Team& team = exchange.team;
    const BlockPlace place =
        source_place(offer, exchange.handshake.cell_of(from), exchange.size(), team.rank());
    if (place.bytes == 0) co_return success();
    const p2p::Buffer sink = exchange.traffic.incoming[static_cast<std::size_t>(from)];
    if (place.bytes > sink.bytes()) co_return too_long(place.bytes, from, sink.bytes());
    Status read = co_await read_into(executor, team, from, place.at, sink, place.bytes);
    co_return read;
}

// Each begins with the rank above it, so that they do not all read the same one.
Task<Status> read_blocks(Executor& executor, Exchange& exchange) {
    const int me = exchange.team.rank(), size = exchange.size();
    const int only = exchange.traffic.only_sender, root = exchange.traffic.only_receiver;
    Status own = co_await take_own(executor, exchange);
    FirstFailure failed;
    failed.note(std::move(own));
    ForDevice later(exchange.team);
    for (int step = 1; step < size && (root < 0 || root == me); ++step) {
        const int from = (me + step) % size;
        if (only >= 0 && from != only) continue;
        Status taken = co_await take_from_host(executor, exchange, from, later);
        failed.note(std::move(taken));
    }
    Status copied = co_await later.copy(executor);
    failed.note(std::move(copied));
    Status all = co_await vote(executor, exchange.handshake, kStored, failed.status());
    co_return all;
}

// --- stores into mapped memory -------------------------------------------------------------------

// The copies of all blocks that this rank stores.
Result<std::vector<device::Copy>> plan_stores(Exchange& exchange, MappedPeers& mappings) {
    const Team& team = exchange.team;
    device::Device& device = team.context->device;
    const int me = team.rank(), size = exchange.size();
    const int gpu = device.gpu_of(exchange.offer(me).source_handle.gpu);
    std::vector<device::Copy> copies;
    for (int from = 0; from < size; ++from) {
        const MemoryOffer& source = exchange.offer(from);
        if (source.source != Held::device || worker_of(exchange.offers(), from) != me) continue;
        for (int to = 0; to < size; ++to) {
            // Who sends to the root alone says one place, for whoever asks.
            const int only = exchange.traffic.only_receiver;
            if (only >= 0 && to != only) continue;
            device::Copy copy = one_of_several(gpu);
            const p2p::Buffer& mine = exchange.traffic.outgoing[static_cast<std::size_t>(to)];
            BlockPlace place{reinterpret_cast<std::uint64_t>(mine.data()), mine.bytes()};
            if (from != me)
                place = source_place(source, exchange.handshake.cell_of(from), size, to);
            if (place.bytes == 0 || (from == to && !source.has_own)) continue;
            copy.bytes = place.bytes;
            copy.source = reinterpret_cast<const void*>(place.at);
            if (from != me) {
                Result<std::byte*> mapped = mappings.at(source.source_handle, gpu, place.at);
                GANTRY_TRY(mapped.status());
                copy.source = *mapped;
            }
            BlockPlace room;
            if (to == me) {
                const p2p::Buffer& sink = exchange.traffic.incoming[static_cast<std::size_t>(from)];
                room = {reinterpret_cast<std::uint64_t>(sink.data()), sink.bytes()};
                copy.destination = sink.data();
            } else {
                const MemoryOffer& sink = exchange.offer(to);
                room = sink_place(sink, exchange.handshake.cell_of(to), from);
                if (place.bytes <= room.bytes) {
                    Result<std::byte*> mapped = mappings.at(sink.sink_handle, gpu, room.at);
                    GANTRY_TRY(mapped.status());
                    copy.destination = *mapped;
                }
            }
            if (place.bytes > room.bytes) return too_long(place.bytes, from, room.bytes);
            copies.push_back(copy);
        }
    }
    return copies;
}

Task<Status> store_blocks(Executor& executor, Exchange& exchange) {
    MappedPeers mappings(exchange.team.context->device);
    Result<std::vector<device::Copy>> planned = plan_stores(exchange, mappings);
    if (!planned.ok()) co_return std::move(planned).status();
    Status stored = co_await copy_all(executor, exchange.team, std::move(*planned));
    co_return stored;
}

// The vector of a broadcast on this rank.
Task<Status> store_in_shares(Executor& executor, Exchange& exchange, Status ready, Bytes piece) {
    const int root = exchange.traffic.only_sender, me = exchange.team.rank();
    const int any = root == 0 ? 1 : 0;
    const p2p::Buffer vector = me == root
                                   ? exchange.traffic.outgoing[static_cast<std::size_t>(any)]
                                   : exchange.traffic.incoming[static_cast<std::size_t>(root)];
    Status stored = std::move(ready);
    if (stored.ok()) {
        SharedStores shares(exchange.team, exchange.handshake, root, vector, piece);
        stored = co_await store_shares(executor, &shares);
    }
    Status all = co_await vote(executor, exchange.handshake, kStored, std::move(stored));
    co_return all;
}

// A failed copy of ours has failed for all; what could not be mapped goes another way.
Task<Status> store(Executor& executor, Exchange& exchange, Status ready) {
    Status stored = std::move(ready);
    if (stored.ok()) stored = co_await store_blocks(executor, exchange);
    Status all = co_await vote(executor, exchange.handshake, kStored, std::move(stored));
    co_return all;
}

// Blocks of which others take part before it is known how all go: what they need is packed first.
Task<Result<MemoryOffer>> Exchange::bring(Executor& executor) {
    CellCopies copies;
    MemoryOffer offer = make_offer(team, traffic, handshake.cell(), question, copies);
    if (offer.source == Held::other || offer.sink == Held::other) {
        incoming_ = traffic.incoming;
        scratch_.replace(traffic);
        if (scratch_.replaces() && offer.source != Held::in_cell)
            offer = make_offer(team, traffic, handshake.cell(), question, copies);
    }
    Status packed;
    if (offer.on_device || offer.time_sliced) packed = co_await scratch_.pack(executor);
    if (offer.on_device && packed.ok())
        packed = co_await copy_blocks(executor, team, copies.from, copies.to);
    if (!packed.ok()) offer.source = Held::other;
    co_return offer;
}

Task<Status> Exchange::act(Executor& executor, plan::CollPlan plan) {
    Status done;
    if (plan.algorithm == plan::Algorithm::cells) {
        // Contiguous blocks are put in their places at once; others are unpacked on the GPU.
        unpacks_ = incoming_.empty() || !std::ranges::all_of(incoming_, [](const auto& block) {
                       return block.bytes() == 0 || block.contiguous();
                   });
        if (!unpacks_) traffic.incoming = std::move(incoming_);
        done = co_await take_from_cells(executor, *this);
        co_return done;
    }
    if (!offer(me()).time_sliced) done = co_await scratch_.pack(executor);
    if (plan.algorithm == plan::Algorithm::reads)
        done = co_await read_blocks(executor, *this);
    else if (plan.algorithm == plan::Algorithm::direct)
        done = co_await store(executor, *this, std::move(done));
    else
        done = co_await store_in_shares(executor, *this, std::move(done), plan.segment);
    co_return done;
}

Task<Status> Exchange::settle(Executor& executor) {
    if (!unpacks_) co_return success();
    Status unpacked = co_await scratch_.unpack(executor);
    co_return unpacked;
}

}  // namespace

Task<Result<plan::CollPlan>> exchange_directly(Executor& executor, Team team, Traffic traffic,
                                               plan::CallQuestion question) {
    Exchange exchange(team, std::move(traffic), question);
    Result<plan::CollPlan> done = co_await exchange.run(executor);
    co_return done;
}

}  // namespace gantry::coll
