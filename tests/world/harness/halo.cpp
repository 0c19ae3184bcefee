// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/halo.hpp"

#include "layout/rows.hpp"
#include "world/harness/collectives.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <malloc.h>
#include <memory>
#include <mpi.h>
#include <numeric>
#include <sstream>

namespace gantry::world {
namespace {

constexpr int kSteps = 1;
// Before the clock. Where ranks map each other's memory they do so once messages have shown that it pays,
// one mapping after the other.
int warm_ups(const model::Machine& machine) {
    return machine.ipc ? 10 : 1;
}
// Longer than the end of a meeting takes, and than what it leaves under way.
constexpr Nanoseconds kRest = 200 * kMicrosecond;
constexpr std::byte kSent{0x5A};

struct Counted {
    std::uint64_t envelopes = 0;
    Bytes bytes = 0;
};

struct Setup {
    const Cluster& cluster;
    const AppCase& step;
    Halo way;
    // The results.
    Nanoseconds starts_at = 0, last_end = 0;
    std::uint64_t messages = 0;  // of a step, of all ranks
    Counted before{};
};

// --- what is exchanged ---------------------------------------------------------------------------

// Rows as long and as many as those of the box in its padded block, each a little apart from the next
// where they are not adjacent there.
layout::FormPtr form_of(const apps::Box& box, const apps::Extent& extent, Bytes element) {
    Bytes n[3];
    for (int axis = 0; axis < 3; ++axis)
        n[axis] = static_cast<Bytes>(box.n[axis]);
    const auto padded = [&](int axis) {
        return n[axis] + (box.n[axis] < extent.padded(axis) ? 1 : 0);
    };
    layout::FormBuilder row;
    row.add_run(0, n[0] * element);
    const auto pitch = static_cast<std::ptrdiff_t>(padded(0) * element);
    return layout::repeated(layout::repeated(row.finish(), n[1], pitch), n[2],
                            pitch * static_cast<std::ptrdiff_t>(padded(1)));
}

struct Prepared {
    int to, from, tag;
    layout::Layout layout;  // of the fields, at both ends alike
    Bytes bytes = 0, span = 0;
    std::vector<layout::FormPtr> pieces;
    std::vector<std::ptrdiff_t> offsets;
};

Prepared prepared(const apps::Message& message, const apps::Extent& extent, Bytes element) {
    Prepared all{message.to, message.from, message.tag, {}, 0, 0, {}, {}};
    layout::FormBuilder builder;
    std::ptrdiff_t at = 0;
    std::ptrdiff_t gap = 0;  // fields are not equally far apart, in the order of a message
    for (const apps::Piece& piece : message.pieces) {
        const layout::FormPtr form = form_of(piece.from, extent, element);
        builder.add(at, form);
        all.pieces.push_back(form);
        all.offsets.push_back(at);
        gap += static_cast<std::ptrdiff_t>(element);
        at += static_cast<std::ptrdiff_t>(form->span.bytes()) + gap;
    }
    all.layout = layout::Layout(builder.finish(), at);
    all.bytes = all.layout.size;
    all.span = static_cast<Bytes>(at);
    return all;
}

struct Exchange {
    Exchange(const StepPhase& phase, Bytes element) {
        for (const apps::Message& message : phase.messages)
            messages.push_back(prepared(message, phase.extent, element));
        auto lists = std::make_shared<coll::Neighbors>();
        for (const Prepared& message : messages) {
            lists->sources.push_back(message.from);
            lists->destinations.push_back(message.to);
        }
        neighbours = std::move(lists);
    }
    std::vector<Prepared> messages;
    std::shared_ptr<const coll::Neighbors> neighbours;

    Bytes sent() const {
        Bytes all = 0;
        for (const Prepared& message : messages)
            if (message.to != MPI_PROC_NULL) all += message.bytes;
        return all;
    }
    std::uint64_t sends() const {
        return static_cast<std::uint64_t>(std::ranges::count_if(
            messages, [](const Prepared& message) { return message.to != MPI_PROC_NULL; }));
    }
    Bytes longest() const {
        Bytes most = 1;
        for (const Prepared& message : messages)
            most = std::max(most, message.span);
        return most;
    }
};

// --- one rank ------------------------------------------------------------------------------------

struct Halos {
    Halos(Rank& its_rank, Setup& its_setup, Communicator& its_all, Bytes longest)
        : rank(its_rank),
          setup(its_setup),
          all(its_all),
          gpu(its_rank.number % its_rank.world.machine().gpus_per_node),
          out(its_rank, Place::device, longest, gpu),
          in(its_rank, Place::device, longest, gpu) {
        const bool on_host = setup.way == Halo::copies || setup.way == Halo::staged;
        if (on_host) {
            host_out = std::make_unique<Bytebuffer>(rank, Place::pinned, longest);
            host_in = std::make_unique<Bytebuffer>(rank, Place::pinned, longest);
        }
        std::fill_n(rank.device.behind(out.address(), longest), longest, kSent);
    }
    operator Executor&() { return rank.executor; }
    bool on_host() const { return host_out != nullptr; }

    Rank& rank;
    Setup& setup;
    Communicator& all;
    const int gpu;
    Bytebuffer out, in;
    std::unique_ptr<Bytebuffer> host_out, host_in;
};

Task<Status> kernel(Halos& halos, Nanoseconds time) {
    Rank& rank = halos.rank;
    rank.work(rank.world.machine().gpu.calls.launch);
    rank.device.compute(halos.gpu, time);
    Status slept = co_await rank.sleep(rank.executor, time);
    co_return slept;
}

// One launch for all messages; every byte is read and written.
Task<Status> pack_kernel(Halos& halos, const Exchange& exchange) {
    const double rate = halos.setup.cluster.kernel_rate;
    const auto moved = static_cast<Nanoseconds>(2e9 * static_cast<double>(exchange.sent()) / rate);
    return kernel(halos, halos.rank.world.machine().gpu.kernel.latency + moved);
}

enum class Side : std::uint8_t { sends, receives };

// The rows of a piece between the fields and packed host memory.
std::vector<device::Rows> rows_of(const layout::FormPtr& piece, Side side) {
    std::vector<device::Rows> rows;
    const layout::Layout whole(piece, static_cast<std::ptrdiff_t>(piece->span.bytes()));
    layout::RowWalk walk(whole, 0, whole.size);
    layout::Rows next;
    while (walk.next(next)) {
        device::Rows one;
        const auto packed = static_cast<std::ptrdiff_t>(next.packed);
        one.width = next.width;
        one.count = next.count;
        one.source = side == Side::sends ? next.offset : packed;
        one.destination = side == Side::sends ? packed : next.offset;
        one.source_pitch = side == Side::sends ? next.pitch : next.packed_pitch;
        one.destination_pitch = side == Side::sends ? next.packed_pitch : next.pitch;
        rows.push_back(one);
    }
    return rows;
}

// All copies between device and host are started, then waited for together.
Task<Status> copy_all(Halos& halos, const Exchange& exchange, Side side) {
    Rank& rank = halos.rank;
    std::deque<Completion> done;
    Bytebuffer& device_memory = side == Side::sends ? halos.out : halos.in;
    Bytebuffer& host_memory = side == Side::sends ? *halos.host_out : *halos.host_in;
    Bytebuffer& to = side == Side::sends ? host_memory : device_memory;
    Bytebuffer& from = side == Side::sends ? device_memory : host_memory;
    const device::Engine engine = side == Side::sends ? device::Engine::d2h : device::Engine::h2d;
    for (const Prepared& message : exchange.messages) {
        if ((side == Side::sends ? message.to : message.from) == MPI_PROC_NULL) continue;
        if (halos.setup.way == Halo::staged) {
            device::Copy copy{to.address(), from.address(), message.bytes, halos.gpu, engine};
            rank.device.copy(copy, done.emplace_back(rank.executor));
            continue;
        }
        Bytes packed = 0;
        for (std::size_t p = 0; p < message.pieces.size(); ++p) {
            const std::vector<device::Rows> rows = rows_of(message.pieces[p], side);
            const Bytes bytes = message.pieces[p]->size;
            const auto field = static_cast<Bytes>(message.offsets[p]);
            device::Copy copy{to.address() + (side == Side::sends ? packed : field),
                              from.address() + (side == Side::sends ? field : packed), bytes,
                              halos.gpu, engine};
            packed += bytes;
            copy.rows = rows;
            rank.device.copy(copy, done.emplace_back(rank.executor));
        }
    }
    for (Completion& each : done) {
        Status copied = co_await each;
        GANTRY_CO_TRY(copied);
    }
    co_return success();
}

Task<Status> pass_messages(Halos& halos, const Exchange& exchange) {
    Rank& rank = halos.rank;
    const bool typed = halos.setup.way == Halo::datatypes;
    std::vector<Result<p2p::Request*>> requests;
    Bytebuffer& in = halos.on_host() ? *halos.host_in : halos.in;
    Bytebuffer& out = halos.on_host() ? *halos.host_out : halos.out;
    for (const Prepared& message : exchange.messages) {
        if (message.from == MPI_PROC_NULL) continue;
        const p2p::Buffer buffer =
            typed ? p2p::Buffer{in.address(), 1, &message.layout} : in.part(0, message.bytes);
        requests.push_back(rank.messenger.ireceive(rank.all, buffer, message.from, message.tag));
    }
    for (const Prepared& message : exchange.messages) {
        if (message.to == MPI_PROC_NULL) continue;
        const p2p::Buffer buffer =
            typed ? p2p::Buffer{out.address(), 1, &message.layout} : out.part(0, message.bytes);
        requests.push_back(rank.messenger.isend(rank.all, buffer, message.to, message.tag,
                                                p2p::SendMode::standard));
    }
    for (Result<p2p::Request*>& request : requests) {
        Received ended = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(ended.status);
    }
    co_return success();
}

coll::Blocks blocks_of(Bytebuffer& memory, const Exchange& exchange) {
    coll::Blocks blocks;
    blocks.address = memory.address();
    for (const Prepared& message : exchange.messages) {
        blocks.counts.push_back(1);
        blocks.displacements.push_back(0);
        blocks.layouts.push_back(&message.layout);
    }
    return blocks;
}

Task<Status> pass_to_neighbours(Halos& halos, const Exchange& exchange) {
    return coll::neighbor_exchange(halos.rank.executor, halos.all.blocking(), exchange.neighbours,
                                   blocks_of(halos.out, exchange), blocks_of(halos.in, exchange));
}

Task<Status> pass(Halos& halos, const Exchange& exchange) {
    if (halos.setup.way == Halo::neighbours) return pass_to_neighbours(halos, exchange);
    return pass_messages(halos, exchange);
}

Task<Status> exchanged(Halos& halos, const Exchange& exchange) {
    const bool packs = halos.setup.way == Halo::staged || halos.setup.way == Halo::packed;
    Status status = success();
    if (packs) status = co_await pack_kernel(halos, exchange);
    GANTRY_CO_TRY(status);
    if (halos.on_host()) status = co_await copy_all(halos, exchange, Side::sends);
    GANTRY_CO_TRY(status);
    status = co_await pass(halos, exchange);
    GANTRY_CO_TRY(status);
    if (halos.on_host()) status = co_await copy_all(halos, exchange, Side::receives);
    GANTRY_CO_TRY(status);
    if (packs) status = co_await pack_kernel(halos, exchange);
    co_return status;
}

// What came last is there, in the rows of the longest message.
bool arrived(Halos& halos, const Exchange& exchange) {
    const auto longest = std::ranges::max_element(
        exchange.messages, {},
        [](const Prepared& message) { return message.from != MPI_PROC_NULL ? message.bytes : 0; });
    std::vector<std::byte> packed(longest->bytes);
    const std::byte* stored = halos.rank.device.behind(halos.in.address(), longest->span);
    const bool typed = halos.setup.way != Halo::staged && halos.setup.way != Halo::packed;
    if (typed)
        layout::pack(longest->layout, stored, 0, longest->bytes, packed.data());
    else
        std::copy_n(stored, longest->bytes, packed.data());
    return std::ranges::all_of(packed, [](std::byte each) { return each == kSent; });
}

Counted counted(World& world) {
    return {world.network().messages() + world.shared_memory().messages(),
            world.network().bytes_on_the_wire() + world.shared_memory().bytes_on_the_wire()};
}

// All ranks go on at one moment of the virtual clock; between the meeting and that nobody sends, and rank 0
// counts.
Task<Status> start_together(Rank& rank, Setup& setup) {
    Status status = co_await meet(rank, 9);
    GANTRY_CO_TRY(status);
    setup.starts_at = std::max(setup.starts_at, rank.processor.now() + 2 * kRest);
    status = co_await rank.sleep(rank.executor, kRest);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) setup.before = counted(rank.world);
    status = co_await rank.sleep(rank.executor, setup.starts_at - rank.processor.now());
    co_return status;
}

Task<Status> steps(Rank& rank, Setup& setup) {
    const std::vector<StepPhase> phases = phases_of(setup.cluster, setup.step, rank.number);
    std::vector<Exchange> exchanges;
    Bytes longest = 1;
    for (const StepPhase& phase : phases) {
        exchanges.emplace_back(phase, setup.step.element());
        longest = std::max(longest, exchanges.back().longest());
        setup.messages += exchanges.back().sends();
    }
    std::vector<int> members(static_cast<std::size_t>(rank.world.ranks()));
    std::iota(members.begin(), members.end(), 0);
    Communicator all(rank, 77, members, plan::Algorithm::automatic);
    Halos halos(rank, setup, all, longest);
    const int before = warm_ups(rank.world.machine());
    for (int n = 0; n < before + kSteps; ++n) {
        if (n == before) {
            Status met = co_await start_together(rank, setup);
            GANTRY_CO_TRY(met);
        }
        for (std::size_t p = 0; p < phases.size(); ++p) {
            Status status = co_await kernel(halos, phases[p].compute);
            GANTRY_CO_TRY(status);
            if (!exchanges[p].messages.empty()) status = co_await exchanged(halos, exchanges[p]);
            GANTRY_CO_TRY(status);
        }
    }
    setup.last_end = std::max(setup.last_end, rank.processor.now());
    const auto last = std::ranges::find_if(exchanges.rbegin(), exchanges.rend(),
                                           [](const Exchange& e) { return !e.messages.empty(); });
    if (last != exchanges.rend()) WORLD_CHECK(arrived(halos, *last));
    co_return success();
}

Bytes allocated() {
    const struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

}  // namespace

std::string_view name(Halo way) {
    switch (way) {
        case Halo::copies: return "copies";
        case Halo::staged: return "staged";
        case Halo::packed: return "packed";
        case Halo::datatypes: return "datatypes";
        case Halo::neighbours: return "neighbours";
    }
    return "?";
}

HaloTimes measure_halo(const Cluster& cluster, const AppCase& step, Halo way, Turns turns) {
    Setup setup{.cluster = cluster, .step = step, .way = way};
    const int ranks = step.ranks();
    const Bytes before = allocated();
    Options options = world_of(cluster, ranks);
    options.turns = turns;
    World world(options);
    const Ending ending = world.run([&setup](Rank& rank) { return steps(rank, setup); });
    if (!ending.good()) {
        std::ostringstream story;
        story << ending;
        std::fprintf(stderr, "the world of %s, %s: %s\n", step.words().c_str(),
                     std::string(name(way)).c_str(), story.str().c_str());
        std::abort();
    }
    HaloTimes times{.way = way};
    times.step = (setup.last_end - setup.starts_at) / kSteps;
    times.compute = compute_time(cluster, step);
    const double each = static_cast<double>(ranks) * kSteps;
    times.messages = static_cast<double>(setup.messages) / ranks;
    const Counted after = counted(world);
    times.envelopes = static_cast<double>(after.envelopes - setup.before.envelopes) / each;
    times.bytes = static_cast<double>(after.bytes - setup.before.bytes) / each;
    times.memory = (allocated() - before) / static_cast<Bytes>(ranks);
    for (int rank = 0; rank < ranks; ++rank)
        times.turns += static_cast<double>(world.network().end(rank).looks()) / ranks;
    return times;
}

}  // namespace gantry::world
