// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/published_alltoall.hpp"

#include "coll/gather.hpp"
#include "coll/planner.hpp"
#include "plan/coll_facts.hpp"
#include "world/harness/programs.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace gantry::world {
namespace {

constexpr int kWarmUps = 2, kRounds = 2;

enum class Method { user_staging, messages, gantry, host_to_host };

struct Setup {
    Method method;
    Bytes block;
    int ranks;
    Bytes unit = 0;  // of a staged device message; 0: the planner chooses
    plan::Algorithm algorithm = plan::Algorithm::automatic;
    // The result: of all ranks.
    Nanoseconds first_start = std::numeric_limits<Nanoseconds>::max(), last_end = 0;
};

// All ranks as a communicator.
struct Communicator {
    Communicator(Rank& rank, const Setup& setup)
        : group(rank.all), common(rank.transfer.config, &rank.explain), planner(&common) {
        group.context |= p2p::kCollectiveContext;
        common.nodes = rank.job.nodes();
        common.job.facts = plan::coll_facts_of(rank.world.machine());
        common.job.tuning.fixed[static_cast<std::size_t>(plan::Collective::alltoall)] =
            setup.algorithm;
    }
    coll::Team team(Rank& rank) {
        return {&rank.messenger, &rank.transfer, &group, tag++, 0, -1, 0, &planner};
    }
    p2p::Group group;
    coll::Common common;
    coll::Planner planner;
    int tag = 0;
};

struct Buffers {
    Buffers(Rank& rank, Bytes bytes)
        : outgoing(rank, Place::device, bytes),
          incoming(rank, Place::device, bytes),
          out_host(rank, Place::pinned, bytes),
          in_host(rank, Place::pinned, bytes) {}
    Bytebuffer outgoing, incoming, out_host, in_host;
};

coll::Blocks blocks_of(Bytebuffer& buffer, Bytes block) {
    coll::Blocks blocks;
    blocks.address = buffer.address();
    blocks.count = block;
    blocks.layout = buffer.whole().layout;
    return blocks;
}

Task<Status> once(Rank& rank, Communicator& all, Buffers& buffers, const Setup& setup) {
    const bool by_hand = setup.method == Method::user_staging;
    const bool on_host = by_hand || setup.method == Method::host_to_host;
    const Bytes bytes = buffers.outgoing.bytes();
    if (by_hand) {
        Status copied = co_await rank.driver_copy(rank.executor, buffers.out_host.address(),
                                                  buffers.outgoing.address(), bytes);
        GANTRY_CO_TRY(copied);
    }
    Bytebuffer &from = on_host ? buffers.out_host : buffers.outgoing,
               &to = on_host ? buffers.in_host : buffers.incoming;
    Status met = co_await coll::alltoall(rank.executor, all.team(rank),
                                         blocks_of(from, setup.block), blocks_of(to, setup.block));
    GANTRY_CO_TRY(met);
    if (by_hand) {
        Status copied = co_await rank.driver_copy(rank.executor, buffers.incoming.address(),
                                                  buffers.in_host.address(), bytes);
        GANTRY_CO_TRY(copied);
    }
    co_return success();
}

std::byte content(int from, int to) {
    return static_cast<std::byte>(17 * from + to + 1);
}

Task<Status> rounds(Rank& rank, Setup& setup) {
    Communicator all(rank, setup);
    Buffers buffers(rank, setup.block * static_cast<Bytes>(setup.ranks));
    for (Bytebuffer* out : {&buffers.outgoing, &buffers.out_host})
        for (int to = 0; to < setup.ranks; ++to) {
            std::byte* const block = rank.device.behind(
                out->address() + setup.block * static_cast<Bytes>(to), setup.block);
            std::fill_n(block, setup.block, content(rank.number, to));
        }
    for (int round = 0; round < kWarmUps + kRounds; ++round) {
        if (round == kWarmUps) {
            Status met = co_await meet(rank, 9);
            GANTRY_CO_TRY(met);
            setup.first_start = std::min(setup.first_start, rank.processor.now());
        }
        Status done = co_await once(rank, all, buffers, setup);
        GANTRY_CO_TRY(done);
    }
    setup.last_end = std::max(setup.last_end, rank.processor.now());
    Bytebuffer& in = setup.method == Method::host_to_host ? buffers.in_host : buffers.incoming;
    for (int from = 0; from < setup.ranks; ++from) {
        const std::byte* const block =
            rank.device.behind(in.address() + setup.block * static_cast<Bytes>(from), setup.block);
        WORLD_CHECK(std::all_of(block, block + setup.block, [&](std::byte each) {
            return each == content(from, rank.number);
        }));
    }
    co_return success();
}

Nanoseconds measure(Setup setup) {
    World world(
        {.machine = "c2050-qdr",
         .ranks = setup.ranks,
         .seed = 1,
         .change_config = [unit = setup.unit](config::Config& config) { config.chunk = unit; }});
    const Ending ending = world.run([&setup](Rank& rank) { return rounds(rank, setup); });
    if (!ending.good()) {
        std::ostringstream story;
        story << ending;
        std::fprintf(stderr, "the world of the published all-to-all: %s\n", story.str().c_str());
        std::abort();
    }
    return (setup.last_end - setup.first_start) / kRounds;
}

// Blocks that travel together are moved several times.
constexpr Bytes kLongestTogether = 16 * kKiB;

// By the algorithm that suits host buffers best.
Nanoseconds measure_on_host(Method method, Bytes block, int ranks) {
    Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
    for (const plan::Algorithm algorithm : {plan::Algorithm::bruck, plan::Algorithm::pairwise,
                                            plan::Algorithm::spread, plan::Algorithm::staged}) {
        if (algorithm == plan::Algorithm::bruck && block > kLongestTogether) continue;
        best = std::min(best, measure({method, block, ranks, 0, algorithm}));
    }
    return best;
}

}  // namespace

PublishedAlltoall measure_alltoall(Bytes block, int ranks) {
    PublishedAlltoall table{.block = block};
    table.user_staging = measure_on_host(Method::user_staging, block, ranks);
    table.messages =
        measure({Method::messages, block, ranks, 256 * kKiB, plan::Algorithm::pairwise});
    table.own_messages = measure({Method::messages, block, ranks, 0, plan::Algorithm::pairwise});
    table.gantry = measure({Method::gantry, block, ranks});
    table.host_to_host = measure_on_host(Method::host_to_host, block, ranks);
    const model::Machine machine = model::load("c2050-qdr").value();
    const auto each = static_cast<Bytes>(ranks);
    table.ideal = std::max(machine.network.rate.time(block * (each - 1)),
                           machine.gpu.d2h.rate.time(block * each));
    return table;
}

}  // namespace gantry::world
