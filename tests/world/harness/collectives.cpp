// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/collectives.hpp"

#include "coll/allreduce.hpp"
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/gather.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "plan/coll_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace gantry::world {
namespace {

constexpr std::array<std::string_view, kKinds> kNames = {
    "barrier", "bcast",     "reduce",     "allreduce", "reduce_scatter", "scan",
    "exscan",  "allgather", "allgatherv", "alltoall",  "alltoallv",      "gather",
    "gatherv", "scatter",   "scatterv",   "neighbors"};

const layout::Layout& number_layout() {
    static const layout::Layout layout = layout::contiguous_layout(sizeof(std::int64_t));
    return layout;
}

coll::Reducer sum() {
    coll::Reducer reducer;
    reducer.predefined = layout::reduction(layout::Operation::sum, layout::Element::int64);
    reducer.operation = layout::Operation::sum;
    reducer.element = layout::Element::int64;
    reducer.extent = sizeof(std::int64_t);
    return reducer;
}

std::size_t total(const std::vector<std::int64_t>& counts, std::size_t blocks) {
    return static_cast<std::size_t>(std::accumulate(
        counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(blocks), std::int64_t{0}));
}
std::size_t total(const std::vector<std::int64_t>& counts) {
    return total(counts, counts.size());
}

coll::Blocks listed(Bytebuffer* memory, std::vector<std::int64_t> counts) {
    coll::Blocks blocks;
    blocks.address = memory != nullptr ? memory->address() : nullptr;
    blocks.layout = &number_layout();
    std::int64_t at = 0;
    for (const std::int64_t count : counts) {
        blocks.displacements.push_back(at);
        at += count;
    }
    blocks.counts = std::move(counts);
    return blocks;
}

coll::Blocks equal(Bytebuffer* memory, std::size_t count) {
    coll::Blocks blocks;
    blocks.address = memory != nullptr ? memory->address() : nullptr;
    blocks.layout = &number_layout();
    blocks.count = count;
    return blocks;
}

p2p::Buffer whole(Bytebuffer* memory, std::size_t count) {
    return {memory != nullptr ? memory->address() : nullptr, count, &number_layout()};
}

}  // namespace

// --- communicators -------------------------------------------------------------------------------

Communicator::Communicator(Rank& rank, std::uint32_t context, const std::vector<int>& members,
                           plan::Algorithm fixed)
    : rank_(rank),
      group_(rank.all),
      common_(rank.transfer.config, &rank.explain),
      planner_(&common_) {
    group_.context = context | p2p::kCollectiveContext;
    group_.peers = members;
    const auto me = std::ranges::find(members, rank.number);
    group_.rank = static_cast<int>(me - members.begin());
    common_.nodes = rank.job.nodes();
    common_.job.facts = plan::coll_facts_of(rank.world.machine());
    common_.job.tuning.fixed.fill(fixed);
}

// --- what there is -------------------------------------------------------------------------------

std::string describe(const What& what) {
    std::string text =
        fmt::format("{} of {} numbers, root {}{}", kNames[static_cast<std::size_t>(what.kind)],
                    what.count, what.root, what.in_place ? ", in place" : "");
    for (const auto& [from, into] : what.places)
        text += fmt::format(" {}-{}", name(from), name(into));
    return text;
}

std::vector<std::int64_t> Operation::sent_by(int rank) const {
    const auto count = static_cast<std::int64_t>(what_.count);
    std::vector<std::int64_t> counts;
    switch (what_.kind) {
        case Kind::neighbors: return {count, count};
        case Kind::alltoall:
        case Kind::scatter: counts.assign(static_cast<std::size_t>(size_), count); break;
        case Kind::alltoallv:
        case Kind::scatterv:
            for (int to = 0; to < size_; ++to)
                counts.push_back(count * ((rank + to) % 3));
            break;
        default: break;
    }
    return counts;
}

std::vector<std::int64_t> Operation::got_by(int rank) const {
    const auto count = static_cast<std::int64_t>(what_.count);
    std::vector<std::int64_t> counts;
    switch (what_.kind) {
        case Kind::neighbors: return {count, count};
        case Kind::alltoall:
        case Kind::allgather:
        case Kind::gather: counts.assign(static_cast<std::size_t>(size_), count); break;
        case Kind::alltoallv:
            for (int from = 0; from < size_; ++from)
                counts.push_back(count * ((rank + from) % 3));
            break;
        case Kind::allgatherv:
        case Kind::gatherv:
        case Kind::reduce_scatter:  // the shares of the ranks
            for (int from = 0; from < size_; ++from)
                counts.push_back(count * (from % 3));
            break;
        default: break;
    }
    return counts;
}

bool Operation::in_place() const {
    switch (what_.kind) {
        case Kind::bcast: return true;
        case Kind::reduce:
        case Kind::gather:
        case Kind::gatherv:
        case Kind::scatter:
        case Kind::scatterv: return what_.in_place && is_root();
        case Kind::barrier:
        case Kind::neighbors: return false;
        default: return what_.in_place;
    }
}

std::size_t Operation::source_numbers() const {
    switch (what_.kind) {
        case Kind::barrier: return 0;
        case Kind::reduce_scatter: return total(got_by(me_));
        case Kind::allgatherv:
        case Kind::gatherv: return what_.count * static_cast<std::size_t>(me_ % 3);
        case Kind::alltoall:
        case Kind::alltoallv:
        case Kind::neighbors: return total(sent_by(me_));
        case Kind::scatter:
        case Kind::scatterv: return is_root() ? total(sent_by(me_)) : 0;
        default: return what_.count;
    }
}

std::size_t Operation::sink_numbers() const {
    const auto me = static_cast<std::size_t>(me_);
    switch (what_.kind) {
        case Kind::barrier: return 0;
        case Kind::reduce: return is_root() ? what_.count : 0;
        case Kind::reduce_scatter:
            return what_.in_place ? total(got_by(me_)) : what_.count * (me % 3);
        case Kind::allgather:
        case Kind::allgatherv:
        case Kind::alltoall:
        case Kind::alltoallv:
        case Kind::neighbors: return total(got_by(me_));
        case Kind::gather:
        case Kind::gatherv: return is_root() ? total(got_by(me_)) : 0;
        // In place, all blocks stay where they are.
        case Kind::scatter: return in_place() ? total(sent_by(me_)) : what_.count;
        case Kind::scatterv:
            return in_place() ? total(sent_by(me_))
                              : static_cast<std::size_t>(sent_by(what_.root)[me]);
        default: return what_.count;
    }
}

Operation::Operation(Rank& rank, const Communicator& communicator, What what)
    : rank_(rank), me_(communicator.rank()), size_(communicator.size()), what_(std::move(what)) {
    const auto [from, into] = what_.places[static_cast<std::size_t>(me_)];
    const auto memory_of = [&](Place place, std::size_t count) {
        return std::make_unique<Bytebuffer>(rank, place, std::max<Bytes>(count, 1) * sizeof(Number),
                                            rank.number % what_.gpus, what_.ipc);
    };
    if (!in_place()) source_ = memory_of(from, source_numbers());
    sink_ = memory_of(into, sink_numbers());
    auto ring = std::make_shared<coll::Neighbors>();
    const int left = (me_ + size_ - 1) % size_, right = (me_ + 1) % size_;
    ring->sources = {left, right};
    ring->destinations = {right, left};
    neighbors_ = std::move(ring);
}

// --- numbers -------------------------------------------------------------------------------------

Operation::Number Operation::number(int rank, std::size_t index) const {
    return what_.key * 1'000'000'007 + Number{rank} * 10'000'019 + static_cast<Number>(index);
}

Operation::Number* Operation::numbers(Bytebuffer& buffer) {
    return reinterpret_cast<Number*>(rank_.device.behind(buffer.address(), buffer.bytes()));
}

void Operation::fill(std::int64_t key) {
    what_.key = key;
    sink_->clear();
    if (what_.kind == Kind::bcast && !is_root()) return;
    std::size_t first = 0;  // where this rank's numbers begin
    const bool own_block = what_.kind == Kind::allgather || what_.kind == Kind::allgatherv ||
                           what_.kind == Kind::gather || what_.kind == Kind::gatherv;
    if (in_place() && own_block) first = total(got_by(me_), static_cast<std::size_t>(me_));
    const bool all_blocks = what_.kind == Kind::scatter || what_.kind == Kind::scatterv;
    const std::size_t count = in_place() && all_blocks ? total(sent_by(me_)) : source_numbers();
    for (std::size_t i = 0; i < count; ++i)
        numbers(from())[first + i] = number(me_, i);
}

bool Operation::holds(std::size_t at, std::size_t count, int rank, std::size_t first) {
    const Number* const there = numbers(*sink_);
    for (std::size_t i = 0; i < count; ++i)
        if (there[at + i] != number(rank, first + i)) return false;
    return true;
}

bool Operation::holds_sums(std::size_t at, std::size_t count, int ranks, std::size_t first) {
    const Number* const there = numbers(*sink_);
    for (std::size_t i = 0; i < count; ++i) {
        // That of rank r is that of rank 0 and r times as far as rank 1 is from it.
        const Number all = Number{ranks} * number(0, first + i) +
                           Number{ranks} * (ranks - 1) / 2 * (number(1, 0) - number(0, 0));
        if (there[at + i] != all) return false;
    }
    return true;
}

bool Operation::is_right() {
    const auto me = static_cast<std::size_t>(me_);
    const std::vector<std::int64_t> got = got_by(me_);
    switch (what_.kind) {
        case Kind::barrier: return true;
        case Kind::bcast: return holds(0, what_.count, what_.root, 0);
        case Kind::reduce: return !is_root() || holds_sums(0, what_.count, size_, 0);
        case Kind::allreduce: return holds_sums(0, what_.count, size_, 0);
        case Kind::scan: return holds_sums(0, what_.count, me_ + 1, 0);
        case Kind::exscan: return me_ == 0 || holds_sums(0, what_.count, me_, 0);
        case Kind::reduce_scatter:
            return holds_sums(0, static_cast<std::size_t>(got[me]), size_, total(got, me));
        case Kind::scatter:
        case Kind::scatterv: {
            const std::vector<std::int64_t> sent = sent_by(what_.root);
            const std::size_t first = total(sent, me);
            return holds(in_place() ? first : 0, static_cast<std::size_t>(sent[me]), what_.root,
                         first);
        }
        default: break;
    }
    std::size_t at = 0;
    for (std::size_t block = 0; block < got.size(); ++block) {
        int rank = static_cast<int>(block);
        std::size_t first = 0;
        if (what_.kind == Kind::alltoall || what_.kind == Kind::alltoallv)
            first = total(sent_by(rank), me);
        if (what_.kind == Kind::neighbors) {
            rank = neighbors_->sources[block];
            first = block * what_.count;
        }
        const bool gathers = what_.kind == Kind::gather || what_.kind == Kind::gatherv;
        const auto count = static_cast<std::size_t>(got[block]);
        if ((!gathers || is_root()) && !holds(at, count, rank, first)) return false;
        at += count;
    }
    return true;
}

// --- the call ------------------------------------------------------------------------------------

Task<Status> Operation::run(Executor& executor, coll::Team team) {
    const p2p::Buffer mine = whole(&from(), source_numbers());
    const p2p::Buffer into = whole(sink_numbers() > 0 ? sink_.get() : nullptr, what_.count);
    const auto sink_blocks = [&] {
        const bool equal_ones = what_.kind == Kind::allgather || what_.kind == Kind::alltoall ||
                                what_.kind == Kind::gather;
        return equal_ones ? equal(sink_.get(), what_.count) : listed(sink_.get(), got_by(me_));
    };
    const auto source_blocks = [&](int rank) {
        const bool equal_ones = what_.kind == Kind::alltoall || what_.kind == Kind::scatter;
        return equal_ones ? equal(&from(), what_.count) : listed(&from(), sent_by(rank));
    };
    const auto sizes = what_.kind == Kind::gather || what_.kind == Kind::scatter
                           ? coll::BlockSizes::equal
                           : coll::BlockSizes::listed;
    p2p::Buffer own = into;
    switch (what_.kind) {
        case Kind::barrier: return coll::barrier(executor, team);
        case Kind::bcast: return coll::bcast(executor, team, into, what_.root);
        case Kind::reduce: return coll::reduce(executor, team, mine, into, sum(), what_.root);
        case Kind::allreduce: return coll::allreduce(executor, team, mine, into, sum());
        case Kind::scan: return coll::scan(executor, team, mine, into, sum(), false);
        case Kind::exscan: return coll::scan(executor, team, mine, into, sum(), true);
        case Kind::reduce_scatter:
            own.count = what_.count * static_cast<std::size_t>(me_ % 3);
            return coll::reduce_scatter(executor, team, mine, sink_blocks(), own, sum());
        case Kind::allgather:
        case Kind::allgatherv:
            return coll::allgather(executor, team, mine, sink_blocks(), in_place());
        case Kind::alltoall:
        case Kind::alltoallv:
            if (in_place()) return coll::alltoall_in_place(executor, team, sink_blocks());
            return coll::alltoall(executor, team, source_blocks(me_), sink_blocks());
        case Kind::gather:
        case Kind::gatherv:
            return coll::gather(executor, team, mine, sink_blocks(), what_.root, in_place(), sizes);
        case Kind::scatter:
        case Kind::scatterv:
            own.count =
                static_cast<std::size_t>(sent_by(what_.root)[static_cast<std::size_t>(me_)]);
            return coll::scatter(executor, team, source_blocks(me_), own, what_.root, in_place(),
                                 sizes);
        case Kind::neighbors:
            return coll::neighbor_exchange(executor, team, neighbors_, source_blocks(me_),
                                           sink_blocks());
    }
    return Task<Status>(success());
}

}  // namespace gantry::world
