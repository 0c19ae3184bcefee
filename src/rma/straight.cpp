// SPDX-License-Identifier: BSD-3-Clause
//
// Operations that the network carries between the two memories. A put goes to where the target's
// region has been registered; gets are in straight_gets.cpp. Memory may be device memory where cards
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
#include <map>
#include <tuple>

namespace gantry::rma {
namespace {

// Of puts that are copied to host memory first: two pieces are under way at once. Large enough that the
// cost of beginning one is hidden on any link; it bounds nothing but this memory, so it is no parameter.
constexpr Bytes kPiece = kMiB;

bool is_one_run(const Access& access) {
    const layout::Layout& layout = *access.layout;
    return layout.contiguous() || (access.count == 1 && layout.one_run);
}

}  // namespace

// One run of host memory, or of device memory that cards reach.
bool Window::network_reaches(const Side& side, const transfer::Endpoint& peer) const {
    const bool reached = transfer::in_host_memory(side.location) ||
                         (side.location.on_device() && peer.facts.device_memory);
    return reached && side.contiguous();
}

// Memory that cannot be registered is reached by messages.
void Window::register_own(transport::RemoteKey* key, std::uint64_t* base) {
    *key = transport::RemoteKey(transport::ConstSpan{});
    const Target& own = mine();
    if (flavor == Flavor::dynamic || own.bytes == 0 || windows.context.config.window_straight == 0)
        return;
    for (const auto& each : targets_) {
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

// What is attached to a dynamic window may be.
bool Window::is_on_device(const Target& of) const {
    return of.on_device || flavor == Flavor::dynamic;
}

plan::WindowFacts Window::ways_to(int of_rank) const {
    const Target& of = *targets_[static_cast<std::size_t>(of_rank)];
    plan::WindowFacts facts;
    facts.direct = of.direct || (of.attachments.has_value() && of.process != 0);
    facts.changed_by_gpu = of.location.kind == device::MemoryKind::device &&
                           windows.context.tuning.kernels &&
                           windows.context.config.reduce_on != "host";
    if (of.direct) return facts;
    const transfer::Endpoint& peer = windows.context.endpoints.to(of.peer);
    facts.keyed = of.key != nullptr;
    facts.on_device = is_on_device(of);
    facts.unattended = peer.facts.unattended;
    facts.gets = peer.facts.get;
    facts.rails = peer.facts.rails;
    facts.straight_from = windows.context.config.window_straight;
    facts.rendezvous_from = windows.context.config.window_rendezvous;
    facts.batch_bytes = windows.context.config.window_batch;
    return facts;
}

plan::WindowWay Window::way_of(const Access& access, std::uint64_t address) {
    const Target& of = target(access.target);
    if (of.direct) return plan::WindowWay::direct;
    if (of.attachments.has_value() && reaches_attached(access, address))
        return plan::WindowWay::direct;
    if (changes_items(access.verb)) return plan::WindowWay::message;
    plan::WindowFacts facts = ways_to(access.target);
    facts.direct = false;
    return way_by(access, facts);
}

// Of a put or get, as if that were known of its target.
plan::WindowWay Window::way_by(const Access& access, const plan::WindowFacts& facts) {
    plan::WindowQuestion question = question_of(access);
    if (plan::may_be_announced(question, facts))
        price(question, target(access.target), access.origin.location);
    return plan::window_way(question, facts);
}

// As if the target's memory, where it is a device's, were of a GPU like this one's.
void Window::price(plan::WindowQuestion& question, const Target& of,
                   const device::Location& origin) const {
    transfer::Endpoint& peer = windows.context.endpoints.to(of.peer);
    const bool puts = question.verb == plan::WindowQuestion::Verb::put;
    const bool target_on_device = is_on_device(of);
    const plan::Facts facts = windows.context.facts_for(peer, origin, puts, nullptr);
    plan::Question large;
    large.bytes = question.bytes;
    large.sink_known = true;
    large.eager_credit = false;  // an RTS goes first
    plan::End &here = puts ? large.source : large.sink, &there = puts ? large.sink : large.source;
    here.kind = origin.kind;
    if (target_on_device) there.kind = device::MemoryKind::device;
    question.announced = plan::announced_time(
        question.verb, windows.context.selections.select(large, facts).plan(), peer.facts);
    const bool origin_on_device = question.origin_on_device;
    question.by_message =
        plan::message_time({.verb = question.verb,
                            .bytes = question.bytes,
                            .piece = largest_piece(of),
                            .source_on_device = puts ? origin_on_device : target_on_device,
                            .sink_on_device = puts ? target_on_device : origin_on_device},
                           peer.facts, windows.context.gpu(facts.source_gpu));
}

plan::WindowQuestion Window::question_of(const Access& access) {
    using Question = plan::WindowQuestion;
    const transfer::Endpoint& peer = windows.context.endpoints.to(target(access.target).peer);
    return {.verb = access.verb == Verb::put ? Question::Verb::put : Question::Verb::get,
            .bytes = access.bytes,
            .one_run = is_one_run(access),
            .origin_plain = network_reaches(access.origin, peer),
            .origin_on_device = access.origin.on_device(),
            .whole = access.origin.buffer.bytes() == access.bytes &&
                     access.count * access.layout->size == access.bytes};
}

// The power of two from which puts from device memory like this rank's are announced; 0: none is.
Bytes Window::announced_from(const Target& of) const {
    constexpr Bytes kMost = kGiB;
    device::Location on_device;
    on_device.kind = device::MemoryKind::device;
    for (Bytes bytes = 1; bytes <= kMost; bytes *= 2) {
        plan::WindowQuestion question{.bytes = bytes, .origin_on_device = true};
        price(question, of, on_device);
        if (question.announced < question.by_message) return bytes;
    }
    return 0;
}

// One sentence for all ranks that are reached alike.
void Window::explain_ways() const {
    if (!windows.context.explain.on()) return;
    std::map<std::tuple<bool, bool, bool, bool, int>, std::pair<int, plan::WindowFacts>> alike;
    for (int of_rank = 0; of_rank < size(); ++of_rank) {
        if (of_rank == rank()) continue;
        const plan::WindowFacts facts = ways_to(of_rank);
        auto& [ranks, known] =
            alike[{facts.direct, facts.changed_by_gpu, facts.keyed, facts.unattended, facts.rails}];
        ++ranks;
        known = facts;
        if (facts.on_device && facts.rendezvous_from == 0)
            known.rendezvous_from = announced_from(*targets_[static_cast<std::size_t>(of_rank)]);
    }
    for (const auto& [key, of] : alike)
        windows.context.explain.note_of_window(number(),
                                               plan::window_sentence(of.first, of.second));
}

// Memory here, for as long as the network reads or writes it. An id of 0: host memory that the network
// copies, or registers by itself, because there is little of it or a registration is refused.
// MPI_ERR_UNSUPPORTED_OPERATION: device memory that is refused.
Result<transport::Region> Window::register_run(const transfer::Endpoint& peer,
                                               const device::Location& location,
                                               const std::byte* address, Bytes bytes) const {
    const bool pays =
        peer.facts.registers_sources && bytes >= windows.context.config.window_straight;
    if (!pays && !location.on_device()) return transport::Region{};
    Result<transport::Region> region = peer.transport->register_memory(
        transfer::extent_of(location, const_cast<std::byte*>(address), bytes));
    if (region.ok()) return region;
    if (!location.on_device()) return transport::Region{};
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", region.status().text());
}

Task<Status> Window::put_run(Executor& executor, int of_rank, device::Location location,
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

Task<Status> Window::carry_straight(Executor& executor, Operation* operation) {
    if (operation->access.verb == Verb::get) {
        Status got = co_await get_straight(executor, operation);
        co_return got;
    }
    Status put = co_await put_straight(executor, *operation);
    ended(*operation, std::move(put));
    co_return success();
}

// Where the first byte of an operation lies in the target's region.
Bytes Window::keyed_offset(const Operation& operation) {
    return operation.address + static_cast<std::uint64_t>(operation.access.layout->first) -
           target(operation.access.target).keyed_base;
}

Task<Status> Window::put_straight(Executor& executor, Operation& operation) {
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
    Status told = signal(access.target, wire::kSettle);
    GANTRY_CO_TRY(told);
    ++of.sent;
    co_return success();
}

Task<Status> Window::put_staged(Executor& executor, Operation& operation) {
    Scope pieces(executor);
    pieces.spawn(put_every_other(executor, &operation, 0));
    pieces.spawn(put_every_other(executor, &operation, kPiece));
    Status joined = co_await pieces.join(executor);
    co_return joined;
}

// By way of host memory here: while one piece is put, the next one is copied.
Task<Status> Window::put_every_other(Executor& executor, Operation* operation, Bytes first) {
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
