// SPDX-License-Identifier: BSD-3-Clause
//
// Gets that the network carries between the two memories. Where a card reads memory of the target by
// itself, that is a get of the network. Elsewhere, and over several rails, the target is asked to put the bytes
// into memory of the origin, which is registered for as long as the get takes.
//
//   by a card        origin <=================== bytes == target, which does nothing
//   by the target    origin -- 78 get into | key -------> target
//                    origin <=================== bytes == target
//                    origin <- 69 answer | bytes in place - target
#include "base/log.hpp"
#include "rma/windows.hpp"

namespace gantry::rma {

Task<Status> Rdma::get(Executor& executor, Operation* operation) {
    operation->being_sent = true;
    Status got = failure(MPI_ERR_UNSUPPORTED_OPERATION, "not tried");
    if (windows.context.endpoints.to(target(operation->access.target).peer).facts.get)
        got = co_await get_run(executor, *operation);
    if (got.error_class() == MPI_ERR_UNSUPPORTED_OPERATION && operation->into.id == 0)
        got = co_await ask_for_puts(executor, operation);
    operation->being_sent = false;
    if (!got.ok()) operation->status = std::move(got);
    window.outbound.end_if_over(*operation);
    co_return success();
}

Task<Status> Rdma::get_run(Executor& executor, Operation& operation) {
    const Access& access = operation.access;
    const Target& of = target(access.target);
    transfer::Endpoint& peer = windows.context.endpoints.to(of.peer);
    if (!peer.lost.ok()) co_return peer.lost;
    std::byte* const sink = access.origin.at(0);
    Result<transport::Region> into = register_run(peer, access.origin.location, sink, access.bytes);
    if (!into.ok()) co_return std::move(into).status();
    operation.into = *into;
    Completion arrived(executor);
    peer.transport->get(peer.rank, peer.facts.home_rail, sink, access.bytes, operation.into,
                        *of.key, keyed_offset(operation), arrived);
    Status got = co_await arrived;
    if (!got.ok() && !peer.lost.ok()) co_return peer.lost;
    if (got.ok() && access.origin.on_device())
        got = windows.context.device.settle_network_writes(access.origin.location.gpu);
    co_return got;
}

Task<Status> Rdma::ask_for_puts(Executor& executor, Operation* operation) {
    const Access& access = operation->access;
    Target& of = target(access.target);
    transfer::Endpoint& peer = windows.context.endpoints.to(of.peer);
    operation->being_sent = true;
    if (!peer.lost.ok()) co_return peer.lost;
    std::byte* const sink = access.origin.at(0);
    Result<transport::Region> region = peer.transport->register_memory(
        transfer::extent_of(access.origin.location, sink, access.bytes));
    if (!region.ok()) {
        log::info("rma: a get of {} bytes does not come by RDMA: {}", access.bytes,
                  region.status().text());
        plan::WindowFacts facts = window.ways.ways_to(access.target);
        facts.keyed = false;
        Status sent;
        if (window.ways.way_by(access, facts) == plan::WindowWay::rendezvous)
            sent = co_await window.rendezvous.announce_get(executor, *operation);
        else
            sent = co_await window.outbound.carry_out_by_message(executor, *operation);
        co_return sent;
    }
    operation->into = *region;
    Status room = co_await window.outbound.until_room(executor, of);
    GANTRY_CO_TRY(room);
    operation->missing = access.bytes;
    windows.await_answer(*operation);
    wire::GetInto get{};
    get.span = {operation->address + static_cast<std::uint64_t>(access.layout->first), access.bytes,
                0, access.bytes, 0};
    get.id = operation->id;
    get.offset = static_cast<Bytes>(sink - static_cast<std::byte*>(region->address));
    const transport::RemoteKey key = peer.transport->key(*region);
    Status sent = window.send_behind_batch(access.target, wire::kGetInto, get, key.view());
    GANTRY_CO_TRY(sent);
    ++of.sent;
    co_return success();
}

// At the target. The bytes travel beside the messages that follow; the answer counts it as executed.
bool Rdma::serve_get_into(int from, transport::ConstSpan header, transport::ConstSpan payload) {
    const auto get = wire::read<wire::GetInto>(header);
    Result<Region> region = window.inbound.region_of(from, get.span);
    Status possible = region.status();
    const bool reached =
        region.ok() &&
        network_reaches(region->side, windows.context.endpoints.to(target(from).peer));
    if (region.ok() && (!reached || payload.size() > transport::RemoteKey::kLongest))
        possible = failure(MPI_ERR_INTERN, "rank {} asks for bytes that cannot be put", from);
    if (!possible.ok()) {
        log::warn("rma: {}", possible.text());
        window.inbound.answer(from, get.id, get.span, possible, {});
        window.inbound.served(from, possible, 0);
        return true;
    }
    window.tasks.spawn(put_where_asked(windows.executor(), from, get, region->side,
                                       transport::RemoteKey(payload)));
    return true;
}

Task<Status> Rdma::put_where_asked(Executor& executor, int from, wire::GetInto get, Side source,
                                   transport::RemoteKey key) {
    Status put = co_await put_run(executor, from, source.location, source.at(0), get.span.bytes,
                                  &key, get.offset);
    if (!put.ok()) log::warn("rma: {}", put.text());
    window.inbound.answer(from, get.id, get.span, put, {}, put.ok() ? get.span.bytes : 0);
    window.inbound.served(from, put, 0);
    co_return success();
}

}  // namespace gantry::rma
