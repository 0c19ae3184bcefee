// SPDX-License-Identifier: BSD-3-Clause
//
// Operations that the network carries between the two memories. A put goes to where the target's
// region has been registered; gets are in rdma_gets.cpp. Memory may be device memory where cards
// reach that.
//
//   put   origin == bytes ====================> target          ended: the bytes are there
//
// Both end at the origin only when all bytes lie where they belong, so flushes and the ends of epochs
// have nothing else to count. A put that is repeated, because a rail failed, does no harm.
#include "base/log.hpp"
#include "base/scope.hpp"
#include "rma/windows.hpp"

#include "transfer/mover.hpp"

#include <algorithm>

namespace gantry::rma {
namespace {

// Of puts that are copied to host memory first: two pieces are under way at once. Large enough that the
// cost of beginning one is hidden on any link; it bounds nothing but this memory, so it is no parameter.
constexpr Bytes kPiece = kMiB;

}  // namespace

Rdma::~Rdma() {
    if (registered_with_ != nullptr) registered_with_->release_memory(registered_);
}

// One run of host memory, or of device memory that cards reach.
bool Rdma::network_reaches(const Side& side, const transfer::Endpoint& peer) const {
    const bool reached = transfer::in_host_memory(side.location) ||
                         (side.location.on_device() && peer.facts.device_memory);
    return reached && side.contiguous();
}

// Memory that cannot be registered is reached by messages.
void Rdma::register_own(transport::RemoteKey* key, std::uint64_t* base) {
    *key = transport::RemoteKey(transport::ConstSpan{});
    const Target& own = mine();
    if (window.flavor == Flavor::dynamic || own.bytes == 0 ||
        windows.context.config.window_rdma == 0)
        return;
    for (const auto& each : window.targets) {
        const transfer::Endpoint& peer = windows.context.endpoints.to(each->peer);
        if (each->direct || peer.transport == nullptr || !peer.facts.put) continue;
        const Side all{transfer::Buffer{}, own.location};
        if (!network_reaches(all, peer)) continue;
        Result<transport::Region> region = peer.transport->register_memory(
            transfer::extent_of(own.location, reinterpret_cast<void*>(own.base), own.bytes));
        if (!region.ok())
            return log::info("rma: {} bytes of a window are reached by messages only: {}",
                             own.bytes, region.status().text());
        registered_ = *region;
        registered_with_ = peer.transport;
        *key = peer.transport->key(*region);
        *base = reinterpret_cast<std::uintptr_t>(region->address);
        return;
    }
}

// Memory here, for as long as the network reads or writes it. An id of 0: host memory that the network
// copies, or registers by itself, because there is little of it or a registration is refused.
// MPI_ERR_UNSUPPORTED_OPERATION: device memory that is refused.
Result<transport::Region> Rdma::register_run(const transfer::Endpoint& peer,
                                             const device::Location& location,
                                             const std::byte* address, Bytes bytes) const {
    const bool pays = peer.facts.registers_sources && bytes >= windows.context.config.window_rdma;
    if (!pays && !location.on_device()) return transport::Region{};
    Result<transport::Region> region = peer.transport->register_memory(
        transfer::extent_of(location, const_cast<std::byte*>(address), bytes));
    if (region.ok()) return region;
    if (!location.on_device()) return transport::Region{};
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", region.status().text());
}

Task<Status> Rdma::put_run(Executor& executor, int of_rank, device::Location location,
                           const std::byte* source, Bytes bytes, const transport::RemoteKey* key,
                           Bytes offset) {
    transfer::Endpoint& peer = windows.context.endpoints.to(target(of_rank).peer);
    if (!peer.lost.ok()) co_return peer.lost;
    Result<transport::Region> from = register_run(peer, location, source, bytes);
    if (!from.ok()) co_return std::move(from).status();
    Status status;
    if (transfer::RailScheduler::serves(peer)) {
        const transfer::Put put{source, bytes, *from, key, offset};
        status = co_await windows.context.rails.put(executor, peer, put);
    } else {
        Completion arrived(executor);
        peer.transport->put(peer.rank, peer.facts.home_rail, source, bytes, *from, *key, offset,
                            arrived);
        status = co_await arrived;
    }
    if (from->id != 0) peer.transport->release_memory(*from);
    if (!status.ok() && !peer.lost.ok()) co_return peer.lost;
    co_return status;
}

Task<Status> Rdma::carry(Executor& executor, Operation* operation) {
    if (operation->access.verb == Verb::get) {
        Status got = co_await get(executor, operation);
        co_return got;
    }
    Status arrived = co_await put(executor, *operation);
    window.origin.ended(*operation, std::move(arrived));
    co_return success();
}

// Where the first byte of an operation lies in the target's region.
Bytes Rdma::keyed_offset(const Operation& operation) {
    return operation.address + static_cast<std::uint64_t>(operation.access.layout->first) -
           target(operation.access.target).keyed_base;
}

Task<Status> Rdma::put(Executor& executor, Operation& operation) {
    const Access& access = operation.access;
    Target& of = target(access.target);
    Status put = failure(MPI_ERR_UNSUPPORTED_OPERATION, "not tried");
    if (network_reaches(access.origin, windows.context.endpoints.to(of.peer)))
        put = co_await put_run(executor, access.target, access.origin.location, access.origin.at(0),
                               access.bytes, of.key.get(), keyed_offset(operation));
    if (put.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
        put = co_await put_staged(executor, operation);
    GANTRY_CO_TRY(put);
    if (!of.keyed_on_device) co_return success();
    // One more message that the target executes: its epoch and our flush wait for that.
    Status told = window.signal(access.target, wire::kSettle);
    GANTRY_CO_TRY(told);
    ++of.sent;
    co_return success();
}

Task<Status> Rdma::put_staged(Executor& executor, Operation& operation) {
    Scope pieces(executor);
    pieces.spawn(put_every_other(executor, &operation, 0));
    pieces.spawn(put_every_other(executor, &operation, kPiece));
    Status joined = co_await pieces.join(executor);
    co_return joined;
}

// By way of host memory here: while one piece is put, the next one is copied.
Task<Status> Rdma::put_every_other(Executor& executor, Operation* operation, Bytes first) {
    const Access& access = operation->access;
    const Target& of = target(access.target);
    if (first >= access.bytes) co_return success();
    Result<std::unique_ptr<std::byte[]>> memory =
        transfer::host_memory(std::min(kPiece, access.bytes - first), "a put on its way");
    if (!memory.ok()) co_return std::move(memory).status();
    const device::Location on_host;
    for (; first < access.bytes; first += 2 * kPiece) {
        const Bytes some = std::min(kPiece, access.bytes - first);
        const Region from{access.origin, first, some, 0};
        Status status = co_await read(executor, windows.context, from, memory->get());
        GANTRY_CO_TRY(status);
        status = co_await put_run(executor, access.target, on_host, memory->get(), some,
                                  of.key.get(), keyed_offset(*operation) + first);
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

}  // namespace gantry::rma
