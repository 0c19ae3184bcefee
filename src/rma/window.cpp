// SPDX-License-Identifier: BSD-3-Clause
//
// The life of a window. Everybody tells everybody what it has; ranks of one node share a segment; and
// nobody returns from the creation before all are ready, or all have failed alike.
#include "rma/window.hpp"

#include "base/process_memory.hpp"
#include "coll/barrier.hpp"
#include "base/first_failure.hpp"
#include "transfer/buffer.hpp"
#include "coll/gather_values.hpp"
#include "rma/windows.hpp"

#include <unistd.h>

#include <algorithm>

namespace gantry::rma {
namespace {

struct Facts {
    std::uint64_t base = 0, bytes = 0;
    std::int64_t unit = 1;
    std::int32_t error_class = MPI_SUCCESS;
    Probe probe;               // of host memory that the kernel may copy; else process 0
    device::IpcHandle handle;  // of device memory
    std::uint32_t inbox = 0;
    // What this rank has at a target, as an origin, that this has not said to have executed; it says so
    // four times before either bound is reached.
    std::uint64_t pending = 0, pending_bytes = 0;
    // Of memory that Gantry allocates: its layout must be one for all.
    std::uint64_t alignment = 0;
    std::uint64_t adjoining = 1;
};
constexpr std::uint64_t kReports = 4;

struct Ready {
    std::uint64_t base = 0;
    std::int32_t error_class = MPI_SUCCESS;
    std::uint32_t all_direct = 0;  // at this origin
    std::uint64_t keyed_base = 0;
    std::uint64_t on_device = 0;
    transport::RemoteKey key;  // empty: puts of the network do not reach it
};

template <class T>
Status first_failure(const std::vector<T>& all, const Status& mine) {
    if (!mine.ok()) return mine;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank].error_class != MPI_SUCCESS)
            return failure(all[rank].error_class,
                           "the window cannot be made: rank {} of its group could not take part",
                           rank);
    return success();
}

}  // namespace

Window::Window(Windows& its_windows, p2p::Group its_group)
    : windows(its_windows), group(std::move(its_group)), tasks(its_windows.executor()) {
    for (int peer : group.peers) {
        targets.push_back(std::make_unique<Target>());
        targets.back()->peer = peer;
    }
}

Window::~Window() {
    unmap_devices();
    windows.by_id_.erase(id());
}

coll::Team Window::team() {
    const int tag = static_cast<int>(sequence_++ & 0x3fff'ffff);
    return {&windows.messenger, &windows.context, &group, tag};
}

Task<Status> Window::open(Executor& executor, Wanted wanted) {
    flavor = wanted.flavor;
    const bool allocates = flavor == Flavor::allocate || flavor == Flavor::shared;
    Facts facts;
    facts.bytes = wanted.bytes;
    facts.unit = wanted.unit;
    facts.alignment = wanted.alignment;
    facts.adjoining = wanted.adjoining ? 1 : 0;
    Status usable;
    device::Location location;
    if (flavor == Flavor::create) {
        facts.base = reinterpret_cast<std::uintptr_t>(wanted.base);
        const transfer::Buffer all = transfer::bytes_buffer(wanted.base, wanted.bytes);
        Result<device::Location> found = windows.context.locate(all);
        if (wanted.base == nullptr && wanted.bytes > 0)
            usable = failure(MPI_ERR_BASE, "the base of a window of {} bytes is a null pointer",
                             wanted.bytes);
        else if (found.ok())
            location = *found;
        else
            usable = failure(MPI_ERR_BASE, "the memory of a window: {}", found.status().text());
    }
    const DeviceName device = name_device(location);
    facts.handle = device.handle;
    facts.inbox = device.inbox;
    if (!allocates && transfer::in_host_memory(location)) facts.probe = own_probe();
    facts.error_class = usable.error_class();
    const config::Config& config = windows.context.config;
    facts.pending = static_cast<std::uint64_t>(config.window_pending);
    facts.pending_bytes = config.window_pending_bytes;
    std::vector<Facts> all;
    coll::Team everybody = team();
    Status told = co_await coll::gather_values(executor, everybody, facts, &all);
    GANTRY_CO_TRY(told);
    usable = first_failure(all, usable);
    refused_by_all = !usable.ok();
    GANTRY_CO_TRY(usable);
    std::vector<Bytes> sizes;
    std::vector<DeviceName> devices;
    for (int rank = 0; rank < size(); ++rank) {
        Target& of = target(rank);
        const Facts& its = all[static_cast<std::size_t>(rank)];
        of.base = its.base;
        of.bytes = its.bytes;
        of.unit = its.unit;
        of.told_each = its.pending / kReports;
        of.told_each_bytes = its.pending_bytes / kReports;
        sizes.push_back(its.bytes);
        wanted.alignment = std::max<Bytes>(wanted.alignment, its.alignment);
        wanted.adjoining = wanted.adjoining || its.adjoining != 0;
        devices.push_back({its.handle, its.inbox});
        if (on_my_node(rank) && reaches(its.probe)) {
            of.process = its.probe.process;
            of.direct = flavor == Flavor::create;
        }
    }
    send_descriptors(devices);
    mine().location = location;
    usable = co_await set_up_memory(executor, wanted, wanted.bytes, sizes);
    if (usable.ok()) {
        map_devices(devices);
        for (int rank = 0; rank < size(); ++rank) {
            Target& of = target(rank);
            if (rank == this->rank() || (allocates && of.control != nullptr)) of.direct = true;
            all_direct_ = all_direct_ && of.direct;
        }
    }
    Ready ready;
    ready.base = mine().base;
    ready.error_class = usable.error_class();
    ready.all_direct = all_direct_ ? 1 : 0;
    if (usable.ok()) rdma.register_own(&ready.key, &ready.keyed_base);
    ready.on_device = transfer::in_host_memory(location) ? 0 : 1;
    std::vector<Ready> states;
    everybody = team();
    told = co_await coll::gather_values(executor, everybody, ready, &states);
    GANTRY_CO_TRY(told);
    usable = first_failure(states, usable);
    refused_by_all = !usable.ok();
    GANTRY_CO_TRY(usable);
    for (int rank = 0; rank < size(); ++rank) {
        const Ready& its = states[static_cast<std::size_t>(rank)];
        Target& of = target(rank);
        of.base = its.base;
        of.on_device = its.on_device != 0;
        if (!of.direct && its.key.length > 0) {
            of.key = std::make_unique<transport::RemoteKey>(its.key);
            of.keyed_base = its.keyed_base;
            of.keyed_on_device = its.on_device != 0;
        }
        all_direct_ = all_direct_ && its.all_direct != 0;
    }
    mine().memory = reinterpret_cast<std::byte*>(mine().base);
    for (const auto& each : targets) {
        const bool mapped = each->direct && each->process == 0 && each->control != nullptr;
        if (mapped && flavor != Flavor::dynamic && transfer::in_host_memory(each->location))
            each->loads_and_stores = each->memory;
    }
    number_ = ++windows.made_;
    ways.explain_ways();
    co_return success();
}

// The control blocks of this node, and memory where Gantry allocates it.
Task<Status> Window::set_up_memory(Executor& executor, const Wanted& wanted, Bytes own_bytes,
                                   const std::vector<Bytes>& sizes) {
    const bool allocates = flavor == Flavor::allocate || flavor == Flavor::shared;
    std::vector<int> local;
    for (int rank = 0; rank < size(); ++rank)
        if (rank == this->rank() ||
            windows.context.endpoints.to(target(rank).peer).facts.shared_memory)
            local.push_back(rank);
    std::vector<Bytes> own_sizes;
    for (int rank : local)
        own_sizes.push_back(allocates ? sizes[static_cast<std::size_t>(rank)] : 0);
    const bool adjoining = flavor == Flavor::shared && wanted.adjoining;
    NodeMemory::Parts parts =
        NodeMemory::parts(own_sizes, adjoining, std::max<Bytes>(wanted.alignment, 64));
    const auto number = static_cast<std::size_t>(
        std::find(local.begin(), local.end(), this->rank()) - local.begin());
    Status usable;
    if (flavor == Flavor::shared && local.size() < targets.size())
        usable = failure(MPI_ERR_RMA_SHARED,
                         "MPI_Win_allocate_shared needs ranks that share memory; {} of {} do: "
                         "split the communicator with MPI_COMM_TYPE_SHARED first",
                         local.size(), size());
    struct Name {
        SegmentName segment;
        std::int32_t error_class = MPI_SUCCESS;
        Attachments::Room attaches;
    };
    Name name;
    parts.errands = !allocates && local.size() > 1;
    if (flavor == Flavor::dynamic) parts.attaches = name.attaches = dynamic.room_for_attachments();
    if (usable.ok() && local.size() == 1)
        usable = node_memory.make_private(parts);
    else if (usable.ok() && number == 0) {
        Result<SegmentName> segment = node_memory.make_shared(parts);
        usable = segment.status();
        if (segment.ok()) name.segment = segment.value();
    }
    name.error_class = usable.error_class();
    std::vector<Name> names;
    const coll::Team everybody = team();
    Status told = co_await coll::gather_values(executor, everybody, name, &names);
    GANTRY_CO_TRY(told);
    usable = first_failure(names, usable);
    GANTRY_CO_TRY(usable);
    const Name& first = names[static_cast<std::size_t>(local.front())];
    parts.attaches = first.attaches;
    if (local.size() > 1)
        usable = node_memory.map_shared(first.segment, parts, number, allocates ? own_bytes : 0);
    GANTRY_CO_TRY(usable);
    self = number;
    local_ranks = local;
    for (std::size_t i = 0; i < local.size(); ++i) {
        Target& of = target(local[i]);
        of.control = node_memory.control(i);
        of.local = i;
        of.attachments = node_memory.attachments(i);
        if (allocates) of.memory = node_memory.memory(i);
        const bool is_another = of.process != 0 && of.process != getpid();
        // Who is not late does what either end could.
        const bool may_help = windows.context.tuning.mechanisms.claims;
        if (is_another && may_help) of.errands = node_memory.errands(i);
    }
    mine().errands = node_memory.errands(self);
    if (allocates) mine().base = reinterpret_cast<std::uintptr_t>(mine().memory);
    co_return success();
}

Task<Status> Window::close(Executor& executor) {
    FirstFailure failed;
    failed.note(revoked);
    Status flushed = co_await synchronisation.complete_everywhere(executor);
    failed.note(std::move(flushed));
    Status joined = co_await tasks.join(executor);
    failed.note(std::move(joined));
    Status met = lost;
    if (met.ok()) {
        const coll::Team everybody = team();
        met = co_await coll::barrier(executor, everybody);
    }
    failed.note(outcome(met));
    // Of a get that its origin has already, this end may still be under way.
    joined = co_await tasks.join(executor);
    failed.note(std::move(joined));
    if (!met.ok() || !lost.ok()) leave_early();
    co_return failed.status();
}

bool Window::idle() const {
    return tasks.running() == 0 && !locks.anybody_waits();
}

void Window::on_peer_lost(int peer, const Status& why) {
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        if (target(of_rank).peer == peer) do_without(of_rank, why);
}

// That rank takes no part any more: nothing begins there, and nobody waits for it.
void Window::do_without(int of_rank, const Status& why) {
    Target& of = target(of_rank);
    if (!of.gone.ok()) return;
    of.gone = why;
    of.batch.clear();
    of.loads_and_stores = nullptr;
    of.errands = nullptr;
    std::vector<Operation*> over;
    for (const auto& [operation_id, operation] : windows.awaiting_answers())
        if (operation->window == this && operation->access.target == of_rank)
            over.push_back(operation);
    for (Operation* operation : over) {
        operation->status = why;
        outbound.end_if_over(*operation);
    }
    lost = why;
    windows.messenger.revoke(p2p::base_context(group.context));
    if (of_rank != rank()) locks.forget(of_rank);
}

void Window::revoke(const Status& why) {
    if (!revoked.ok()) return;
    revoked = why;
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        do_without(of_rank, why);
}

// Others may be waiting for this rank, and it comes to nothing any more.
void Window::leave_early() {
    locks.give_all_back();
    const int why = lost.ok() ? MPI_ERR_PROC_ABORTED : lost.error_class();
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        if (of_rank != rank() && windows.lost(target(of_rank).peer).ok())
            static_cast<void>(send(of_rank, wire::kLeft, wire::Left{{}, why}));
}

}  // namespace gantry::rma
