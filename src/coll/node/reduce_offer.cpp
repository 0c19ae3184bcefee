// SPDX-License-Identifier: BSD-3-Clause
#include "coll/node/reduce_offer.hpp"

#include "coll/exchange.hpp"
#include "coll/node/mapped_peers.hpp"
#include "coll/node/reduce_by_reading.hpp"
#include "layout/layout.hpp"
#include "transfer/mover.hpp"

namespace gantry::coll {
namespace {

// Where a vector lies, and how others may map it.
struct Place {
    Held kind = Held::nothing;  // in_cell: host memory
    bool pageable = false;
    std::uint64_t at = 0;
    device::IpcHandle handle;
    SeenVector seen;
};

Place place_of(const Team& team, const p2p::Buffer& buffer) {
    transfer::Context& context = *team.context;
    Place place;
    place.kind = Held::in_cell;
    place.pageable = true;
    if (!context.config.cuda || !context.device.active()) return place;
    place.kind = Held::other;
    place.pageable = false;
    if (!buffer.contiguous()) return place;
    Result<device::Location> location = context.device.classify(buffer.data(), buffer.bytes());
    if (!location.ok()) return place;
    place.seen = {buffer.address, location->on_device() ? location->gpu : -1};
    if (transfer::in_host_memory(*location)) place.kind = Held::in_cell;
    place.pageable = location->kind == device::MemoryKind::host;
    if (!location->on_device() || context.config.reduce_on == "host") return place;
    place.handle = export_to_all(team, *location);
    if (place.handle.kind == device::IpcKind::none) return place;
    context.arbiter.use(location->gpu);
    place.kind = Held::device;
    place.at = reinterpret_cast<std::uint64_t>(buffer.data());
    return place;
}

}  // namespace

bool is_in_the_way(const RunningReduction& running) {
    const ReductionCall& what = running.what;
    if (what.share == Share::all || what.share == Share::root || !what.source.contiguous() ||
        !what.sink.contiguous() || !running.wants(running.team.rank()))
        return false;
    const std::byte *source = what.source.data(), *sink = what.sink.data();
    return sink < source + what.source.bytes() && source < sink + what.sink.bytes();
}

namespace {

// Of a long vector in host memory: where the others may read it, and this rank's share of the result.
bool offer_host(RunningReduction& running, const Place& source, const Place& sink,
                MemoryOffer& offer) {
    const ReductionCall& what = running.what;
    const Team& team = running.team;
    const bool gets = running.wants(team.rank()) && what.sink.bytes() > 0;
    if (!source.pageable || !what.source.layout->contiguous()) return false;
    if (gets && (sink.kind != Held::in_cell || !what.sink.layout->contiguous())) return false;
    offer.sources.first = reinterpret_cast<std::uint64_t>(what.source.data());
    if (!is_in_shares(what.share, team.size())) return true;
    const auto [first, end] = share_of(what.source.count, team.rank(), team.size());
    const std::byte* share = what.sink.data() + first * what.source.layout->size;
    // In place, nobody else reads this rank's vector there.
    if (!gets || !sink.pageable) {
        if (running.share.address() == nullptr &&
            !running.share.allocate(team, end - first, *what.source.layout).ok())
            return false;
        share = running.share.buffer().data();
    }
    offer.share_at = reinterpret_cast<std::uint64_t>(share);
    return true;
}

// The offer of this rank. A short vector in host memory is written into the cell.
MemoryOffer make_offer(RunningReduction& running) {
    ReductionCall& what = running.what;
    MemoryOffer offer;
    offer.reads = may_read(running.team);
    offer.bytes = what.source.bytes();
    const bool failed = running.unusable || running.team.failed_before();
    if (failed) offer.source = Held::other;  // messages tell the others
    if (offer.bytes == 0 || failed) return offer;
    const Place source = place_of(running.team, what.source);
    const bool same = what.source.address == what.sink.address && what.sink.bytes() > 0;
    Place sink;
    if (running.wants(running.team.rank()) && what.sink.bytes() > 0)
        sink = same ? source : place_of(running.team, what.sink);
    const bool owner_alone_reads = what.share == Share::all || what.share == Share::root;
    offer.in_place = owner_alone_reads ? same : is_in_the_way(running);
    what.reducer.source = source.seen;
    what.reducer.sink = sink.seen;
    offer.source = source.kind;
    offer.sources.first = source.at;
    offer.source_handle = source.handle;
    offer.sink = sink.kind;
    offer.sinks.first = sink.at;
    offer.sink_handle = sink.handle;
    transfer::Context& context = *running.team.context;
    offer.on_device = source.seen.gpu >= 0;
    offer.time_sliced = offer.on_device && context.arbiter.is_time_sliced(source.seen.gpu);
    if (offer.source != Held::in_cell) return offer;
    const std::span<std::byte> cell = running.handshake.cell();
    if (offer.bytes <= cell.size())
        layout::pack(*what.source.layout, what.source.address, 0, offer.bytes, cell.data());
    else
        offer.source = offer_host(running, source, sink, offer) ? Held::host : Held::other;
    return offer;
}

// A short vector of device memory, for the cell.
Task<Status> put_into_cell(Executor& executor, RunningReduction& running, MemoryOffer& offer) {
    const p2p::Buffer& source = running.what.source;
    const std::span<std::byte> cell = running.handshake.cell();
    if (!offer.on_device || offer.time_sliced || offer.bytes > cell.size()) co_return success();
    transfer::Context& context = *running.team.context;
    context.arbiter.use(running.what.reducer.source.gpu);
    context.pin_node_segment();
    Status copied = co_await copy(executor, running.team, source,
                                  transfer::bytes_buffer(cell.data(), offer.bytes));
    GANTRY_CO_TRY(copied);
    offer.source = Held::in_cell;
    co_return success();
}

// Vectors in device memory that peers cannot map, and results that are in the way, get scratch memory in
// their place; where there is none, all stays as it is.
Task<Status> make_reachable(Executor& executor, RunningReduction& running) {
    const Team& team = running.team;
    ReductionCall& what = running.what;
    device::Device& device = team.context->device;
    if (!device.active() || !what.source.contiguous() || !what.sink.contiguous() ||
        what.source.bytes() == 0)
        co_return success();
    Result<device::Location> source = device.classify(what.source.data(), what.source.bytes());
    if (!source.ok() || !source->on_device()) co_return success();
    if (running.wants(team.rank()) && what.sink.bytes() > 0) {
        Result<device::Location> sink = device.classify(what.sink.data(), what.sink.bytes());
        if (!sink.ok() || !sink->on_device()) co_return success();
        if (is_in_the_way(running) || sink->ipc != device::IpcKind::legacy) {
            running.sink_scratch = DeviceScratch(team, what.sink.data(), what.sink.bytes());
            if (running.sink_scratch.data() == nullptr) co_return success();
            running.sink_later = what.sink;
            what.sink.address = running.sink_scratch.data() - what.sink.layout->first;
        }
    }
    if (source->ipc == device::IpcKind::legacy) co_return success();
    running.source_scratch = DeviceScratch(team, what.source.data(), what.source.bytes());
    if (running.source_scratch.data() == nullptr) co_return success();
    Status copied = co_await transfer::copy(executor, *team.context, running.source_scratch.data(),
                                            what.source.data(), what.source.bytes());
    what.source.address = running.source_scratch.data() - what.source.layout->first;
    co_return copied;
}

}  // namespace

Task<Result<MemoryOffer>> RunningReduction::bring(Executor& executor) {
    MemoryOffer offer = make_offer(*this);
    if (offer.on_device && brings_in_cell(team, question)) {
        Status filled = co_await put_into_cell(executor, *this, offer);
        unusable = !filled.ok();
        if (unusable) offer = make_offer(*this);
    }
    if (offer.source != Held::in_cell && offer.source != Held::host && !unusable &&
        (offer.source == Held::other || offer.sink == Held::other || is_in_the_way(*this))) {
        Status reachable = co_await make_reachable(executor, *this);
        unusable = !reachable.ok();
        offer = make_offer(*this);
    }
    co_return offer;
}

}  // namespace gantry::coll
