// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that cannot map the memory of another one fails its step with
// MPI_ERR_UNSUPPORTED_OPERATION. Everybody waits for the steps of all ranks, so everybody sees that,
// and goes by messages.
//
// Nobody leaves while another rank may still store into its memory: a wait for steps ends when each
// rank has raised its own, has failed or is lost.
#include "coll/direct_exchange.hpp"

#include "coll/agreed.hpp"
#include "coll/direct_scratch.hpp"
#include "coll/direct_shares.hpp"
#include "coll/exchange.hpp"
#include "coll/host_image.hpp"
#include "coll/mapped_peers.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::coll {
namespace {

using Sends = DirectOffer::Sends;
using Takes = DirectOffer::Takes;
using transfer::Meeting;

// Everything of one exchange that outlives a wait.
struct Exchange {
    Team team;
    Traffic traffic;
    Meeting meeting;

    Exchange(const Team& its_team, Traffic its_traffic)
        : team(its_team),
          traffic(std::move(its_traffic)),
          meeting(team.context->board, ranks_of(team), team.rank(),
                  {team.group->context, team.tag, team.phase}) {}

    int size() const { return team.size(); }
    const DirectOffer& offer(int member) const { return meeting.offer<DirectOffer>(member); }
    Offers<DirectOffer> offers() const { return Offers<DirectOffer>(meeting); }
    // Who stores the blocks of that member: one for all that share a GPU, if it can reach their blocks.
    int storing(int member) const {
        const DirectOffer& its = offer(member);
        if (!its.time_sliced || its.source.kind == device::IpcKind::none) return member;
        for (int other = 0; other < member; ++other)
            if (offer(other).sends == Sends::device && offer(other).source.gpu == its.source.gpu)
                return other;
        return member;
    }
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
    const DirectOffer& offer = exchange.offer(from);
    const std::span<std::byte> cell = exchange.meeting.cell_of(from);
    const Team& team = exchange.team;
    p2p::Buffer sink = exchange.traffic.incoming[static_cast<std::size_t>(from)];
    if (offer.sends == Sends::nothing) co_return success();
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
    Status copied = co_await copy_local(executor, team, packed, sink);
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
    const DirectOffer& offer = exchange.offer(from);
    if (offer.sends != Sends::host) {
        Status taken = co_await take_from_cell(executor, exchange, from, later);
        co_return taken;
    }
    const Team& team = exchange.team;
    const BlockPlace place =
        source_place(offer, exchange.meeting.cell_of(from), exchange.size(), team.rank());
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
    Status all = co_await end_together(executor, exchange.meeting, kStored, failed.status());
    co_return all;
}

// --- stores into mapped memory -------------------------------------------------------------------

// The copies of all blocks that this rank stores.
Result<std::vector<device::Copy>> plan_stores(Exchange& exchange, MappedPeers& mappings) {
    const Team& team = exchange.team;
    device::Device& device = team.context->device;
    const int me = team.rank(), size = exchange.size();
    const int gpu = device.gpu_of(exchange.offer(me).source.gpu);
    std::vector<device::Copy> copies;
    for (int from = 0; from < size; ++from) {
        const DirectOffer& source = exchange.offer(from);
        if (source.sends != Sends::device || exchange.storing(from) != me) continue;
        for (int to = 0; to < size; ++to) {
            // Who sends to the root alone says one place, for whoever asks.
            const int only = exchange.traffic.only_receiver;
            if (only >= 0 && to != only) continue;
            device::Copy copy = one_of_several(gpu);
            const p2p::Buffer& mine = exchange.traffic.outgoing[static_cast<std::size_t>(to)];
            BlockPlace place{reinterpret_cast<std::uint64_t>(mine.data()), mine.bytes()};
            if (from != me) place = source_place(source, exchange.meeting.cell_of(from), size, to);
            if (place.bytes == 0 || (from == to && !source.has_own)) continue;
            copy.bytes = place.bytes;
            copy.source = reinterpret_cast<const void*>(place.at);
            if (from != me) {
                Result<std::byte*> mapped = mappings.at(source.source, gpu, place.at);
                GANTRY_TRY(mapped.status());
                copy.source = *mapped;
            }
            BlockPlace room;
            if (to == me) {
                const p2p::Buffer& sink = exchange.traffic.incoming[static_cast<std::size_t>(from)];
                room = {reinterpret_cast<std::uint64_t>(sink.data()), sink.bytes()};
                copy.destination = sink.data();
            } else {
                const DirectOffer& sink = exchange.offer(to);
                room = sink_place(sink, exchange.meeting.cell_of(to), from);
                if (place.bytes <= room.bytes) {
                    Result<std::byte*> mapped = mappings.at(sink.sink, gpu, room.at);
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
        SharedStores shares(exchange.team, exchange.meeting, root, vector, piece);
        stored = co_await store_shares(executor, &shares);
    }
    Status all = co_await end_together(executor, exchange.meeting, kStored, std::move(stored));
    co_return all;
}

// A failed copy of ours has failed for all; what could not be mapped goes another way.
Task<Status> store(Executor& executor, Exchange& exchange, Status ready) {
    Status stored = std::move(ready);
    if (stored.ok()) stored = co_await store_blocks(executor, exchange);
    Status all = co_await end_together(executor, exchange.meeting, kStored, std::move(stored));
    co_return all;
}

}  // namespace

Task<Status> end_together(Executor& executor, Meeting& meeting, int step, Status mine) {
    if (mine.ok())
        meeting.raise(step);
    else
        meeting.fail(mine);
    Status all = co_await meeting.all_raised(executor, step);
    // Of its own failure a rank knows more. But that it cannot go this way is no failure, if no rank fails
    // otherwise: then all go by messages.
    const bool other = all.error_class() != MPI_ERR_UNSUPPORTED_OPERATION;
    if (!mine.ok() && !(other && mine.error_class() == MPI_ERR_UNSUPPORTED_OPERATION))
        co_return mine;
    co_return all;
}

Task<Result<plan::CollPlan>> exchange_directly(Executor& executor, Team team, Traffic traffic,
                                               plan::CallQuestion question) {
    Exchange exchange(team, std::move(traffic));
    Status opened = co_await exchange.meeting.open(executor);
    if (!opened.ok()) co_return opened;
    DirectScratch scratch(team);
    CellCopies copies;
    DirectOffer offer =
        make_offer(team, exchange.traffic, exchange.meeting.cell(), question, copies);
    std::vector<p2p::Buffer> incoming;  // where scratch memory takes their place
    if (offer.sends == Sends::other || offer.takes == Takes::other) {
        incoming = exchange.traffic.incoming;
        scratch.replace(exchange.traffic);
        if (scratch.replaces() && offer.sends != Sends::in_cell)
            offer = make_offer(team, exchange.traffic, exchange.meeting.cell(), question, copies);
    }
    if (offer.on_device) {
        Status filled = co_await scratch.pack(executor);
        if (filled.ok()) filled = co_await copy_blocks(executor, team, copies.from, copies.to);
        if (!filled.ok()) offer.sends = Sends::other;
    }
    if (offer.time_sliced) {
        // Another rank may copy as soon as this one has posted.
        Status packed = co_await scratch.pack(executor);
        if (!packed.ok()) offer.sends = Sends::other;
    }
    exchange.meeting.post(offer);
    const auto asked = [&](int first, int end) {
        return AgreedQuestion(question, exchange.offers(), first, end,
                              exchange.traffic.only_receiver);
    };
    // What the only one who sends says is all that is needed, unless ranks store.
    const int sender = exchange.traffic.only_sender;
    plan::CollPlan plan{.algorithm = plan::Algorithm::direct};
    Status posted;
    if (sender >= 0) {
        posted = co_await exchange.meeting.posted(executor, sender);
        if (posted.ok()) plan = plan_of(team, asked(sender, sender + 1));
    }
    const auto stores = [&plan] {
        return plan.algorithm == plan::Algorithm::direct ||
               plan.algorithm == plan::Algorithm::direct_shares;
    };
    const auto reads = [&plan] { return plan.algorithm == plan::Algorithm::reads; };
    if (posted.ok() && (stores() || reads())) {
        posted = co_await exchange.meeting.all_posted(executor);
        if (posted.ok()) note_brought(team, brought_to(exchange.offers()));
        if (posted.ok() && (sender < 0 || reads() || !all_take_on_devices(exchange.offers())))
            plan = plan_of(team, asked(0, exchange.size()));
    }
    if (!posted.ok()) {
        exchange.meeting.fail(posted);
        co_return posted;
    }
    Status done;
    if (plan.algorithm == plan::Algorithm::cells) {
        // Contiguous blocks are put in their places at once; others are unpacked on the GPU.
        const bool at_once =
            !incoming.empty() && std::ranges::all_of(incoming, [](const p2p::Buffer& block) {
                return block.bytes() == 0 || block.contiguous();
            });
        if (at_once) exchange.traffic.incoming = std::move(incoming);
        done = co_await take_from_cells(executor, exchange);
        if (done.ok() && !at_once) done = co_await scratch.unpack(executor);
    } else if (stores() || reads()) {
        Status ready;
        if (!offer.time_sliced) ready = co_await scratch.pack(executor);
        switch (plan.algorithm) {
            case plan::Algorithm::reads: done = co_await read_blocks(executor, exchange); break;
            case plan::Algorithm::direct:
                done = co_await store(executor, exchange, std::move(ready));
                break;
            default:
                done = co_await store_in_shares(executor, exchange, std::move(ready), plan.segment);
                break;
        }
        if (done.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
            co_return plan_of(team, asked(0, exchange.size()).by_messages());
        if (done.ok()) done = co_await scratch.unpack(executor);
    }
    if (!done.ok()) co_return done;
    co_return plan;
}

}  // namespace gantry::coll
