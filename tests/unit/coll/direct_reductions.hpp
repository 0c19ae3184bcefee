// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions of ranks of one node in the world, checked number by number, and what they cost.
#pragma once

#include "coll/allreduce.hpp"
#include "coll/node/reduce.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "collective_world.hpp"
#include "node_costs.hpp"
#include "number_sum.hpp"

#include <fmt/format.h>

namespace gantry::coll::direct_reductions {

using world::Bytebuffer;
using world::Ending;
using world::World;

struct Trial {
    int ranks = 2;
    int gpus = 8;
    std::size_t count = 1;
    bool in_place = false;
    Place place = Place::device;
    std::function<void(Rank&)> prepare = [](Rank&) {};
    device::IpcKind ipc = device::IpcKind::legacy;
    plan::Algorithm fixed = plan::Algorithm::automatic;
    std::function<void(world::Options&)> change = [](world::Options&) {};
};

inline Number summand(int rank, std::size_t index) {
    return (rank + 1) * 1000 + static_cast<Number>(index);
}
// Of the first ranks.
inline Number total(int ranks, std::size_t index) {
    Number all = 0;
    for (int rank = 0; rank < ranks; ++rank)
        all += summand(rank, index);
    return all;
}

inline const layout::Layout& number_layout() {
    static const layout::Layout layout = layout::contiguous_layout(sizeof(Number));
    return layout;
}

// Numbers in some kind of memory, behind the device's back.
class Numbers {
  public:
    Numbers(Rank& rank, const Trial& trial, std::size_t count)
        : rank_(rank),
          count_(count),
          memory_(rank, trial.place, std::max<Bytes>(count * sizeof(Number), 1),
                  rank.number % trial.gpus, trial.ipc) {}
    p2p::Buffer buffer() { return {memory_.address(), count_, &number_layout()}; }
    Number* data() {
        return reinterpret_cast<Number*>(rank_.device.behind(memory_.address(), memory_.bytes()));
    }
    void fill() {
        for (std::size_t i = 0; i < count_; ++i)
            data()[i] = summand(rank_.number, i);
    }
    bool hold(int ranks, std::size_t first, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            if (data()[i] != total(ranks, first + i)) return false;
        return true;
    }

  private:
    Rank& rank_;
    std::size_t count_;
    Bytebuffer memory_;
};

inline Task<Status> allreduces(Rank& rank, const Trial& trial) {
    trial.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(trial.fixed);
    Numbers source(rank, trial, trial.count), sink(rank, trial, trial.count);
    for (int round = 0; round < 3; ++round) {
        source.fill();
        const p2p::Buffer into = trial.in_place ? source.buffer() : sink.buffer();
        Status met =
            co_await allreduce(rank.executor, everybody.team(), source.buffer(), into, sum());
        GANTRY_CO_TRY(met);
        WORLD_CHECK((trial.in_place ? source : sink).hold(trial.ranks, 0, trial.count));
    }
    co_return success();
}

inline Task<Status> reduces(Rank& rank, const Trial& trial) {
    trial.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(trial.fixed);
    Numbers source(rank, trial, trial.count), sink(rank, trial, trial.count);
    for (int root = 0; root < trial.ranks; ++root) {
        source.fill();
        const p2p::Buffer into = trial.in_place ? source.buffer() : sink.buffer();
        Status met =
            co_await reduce(rank.executor, everybody.team(), source.buffer(), into, sum(), root);
        GANTRY_CO_TRY(met);
        if (rank.number == root)
            WORLD_CHECK((trial.in_place ? source : sink).hold(trial.ranks, 0, trial.count));
    }
    co_return success();
}

// Rank r gets count + r numbers.
inline Task<Status> reduce_scatters(Rank& rank, const Trial& trial) {
    trial.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(trial.fixed);
    Blocks shares;
    shares.layout = &number_layout();
    std::int64_t all = 0;
    for (int each = 0; each < trial.ranks; ++each) {
        shares.displacements.push_back(all);
        shares.counts.push_back(static_cast<std::int64_t>(trial.count) + each);
        all += shares.counts.back();
    }
    const auto me = static_cast<std::size_t>(rank.number);
    const auto mine = static_cast<std::size_t>(shares.counts[me]);
    const auto first = static_cast<std::size_t>(shares.displacements[me]);
    Numbers source(rank, trial, static_cast<std::size_t>(all)), sink(rank, trial, mine);
    source.fill();
    p2p::Buffer into = trial.in_place ? source.buffer() : sink.buffer();
    into.count = mine;
    Status met = co_await reduce_scatter(rank.executor, everybody.team(), source.buffer(), shares,
                                         into, sum());
    GANTRY_CO_TRY(met);
    WORLD_CHECK((trial.in_place ? source : sink).hold(trial.ranks, first, mine));
    co_return success();
}

inline Task<Status> scans(Rank& rank, const Trial& trial) {
    trial.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(trial.fixed);
    for (const bool exclusive : {false, true}) {
        Numbers source(rank, trial, trial.count), sink(rank, trial, trial.count);
        source.fill();
        const p2p::Buffer into = trial.in_place ? source.buffer() : sink.buffer();
        Status met =
            co_await scan(rank.executor, everybody.team(), source.buffer(), into, sum(), exclusive);
        GANTRY_CO_TRY(met);
        const int ranks = exclusive ? rank.number : rank.number + 1;
        if (ranks > 0) WORLD_CHECK((trial.in_place ? source : sink).hold(ranks, 0, trial.count));
    }
    co_return success();
}

using Operations = Task<Status> (*)(Rank&, const Trial&);

inline NodeCosts run(Operations operations, const Trial& trial, std::uint64_t seed = 1) {
    return costs_on_node(
        trial.ranks, seed, [&](Rank& rank) { return operations(rank, trial); },
        fmt::format("{} numbers", trial.count), trial.change);
}

}  // namespace gantry::coll::direct_reductions
