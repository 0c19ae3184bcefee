// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank offers to the others of a direct reduction (coll/direct_reduce.hpp), on the board of the node:
// where its vector and its result lie, and how they can be had.
#pragma once

#include "coll/agreed.hpp"
#include "coll/device_scratch.hpp"
#include "coll/direct_reduce.hpp"
#include "coll/host_image.hpp"
#include "coll/host_reader.hpp"
#include "coll/mapped_peers.hpp"
#include "device/device.hpp"
#include "transfer/board.hpp"
#include "transfer/context.hpp"

#include <cstdint>
#include <utility>

namespace gantry::coll {

struct ReduceOffer {
    enum class Vector : std::uint8_t { nothing, in_cell, host, device, other };
    Vector source = ReduceOffer::Vector::nothing;
    Vector sink = ReduceOffer::Vector::nothing;
    bool in_place = false;
    bool time_sliced = false;
    bool on_device = false;   // what lies in the cell comes from device memory
    std::uint64_t bytes = 0;  // of the source
    std::uint64_t source_at = 0, sink_at = 0;
    device::IpcHandle source_handle, sink_handle;
    std::uint64_t share_at =
        0;  // of a long vector in host memory: where this rank's share will lie
    MayRead reads;
};

struct RunningReduction {
    Team team;
    ReductionCall what;
    transfer::Meeting meeting;
    // Of vectors that cannot be used where they lie (make_reachable).
    DeviceScratch source_scratch, sink_scratch;
    p2p::Buffer sink_later;  // where the result goes from the scratch memory
    HostImage share;         // of a result in host memory that has no other place
    bool unusable = false;

    RunningReduction(const Team& its_team, const ReductionCall& its)
        : team(its_team),
          what(its),
          meeting(team.context->board, ranks_of(team), team.rank(),
                  {team.group->context, team.tag, team.phase}) {}

    int size() const { return team.size(); }
    const ReduceOffer& offer(int member) const { return meeting.offer<ReduceOffer>(member); }
    bool wants(int member) const { return what.is_for(member); }
    // The elements of the vectors that a rank gets.
    std::pair<std::uint64_t, std::uint64_t> range_of(int member) const {
        if (what.share != Share::part) return {0, what.source.count};
        const auto index = static_cast<std::size_t>(member);
        return {static_cast<std::uint64_t>(what.parts.displacements[index]),
                static_cast<std::uint64_t>(what.parts.counts[index])};
    }
    // How many vectors, of the first ranks, make up what a rank gets.
    int operands_of(int member) const {
        if (what.share == Share::before) return member;
        return what.share == Share::up_to ? member + 1 : size();
    }
    Offers<ReduceOffer> offers() const { return Offers<ReduceOffer>(meeting); }
    int worker(int member) const { return worker_of(offers(), member); }
    bool any_in_place() const { return coll::any_in_place(offers(), what); }
};

// Whether a rank's result lies where the others may still read its vector. Where everybody gets
// everything, or the root does, only the owner of a share reads it.
bool is_in_the_way(const RunningReduction& running);
// The offer of this rank. A short vector in host memory is written into the cell.
ReduceOffer make_offer(RunningReduction& running);
// A short vector of device memory, for the cell.
Task<Status> put_into_cell(Executor& executor, RunningReduction& running, ReduceOffer& offer);
// Vectors in device memory that peers cannot map, and results that are in the way, get scratch memory in
// their place; where there is none, all stays as it is.
Task<Status> make_reachable(Executor& executor, RunningReduction& running);

}  // namespace gantry::coll
