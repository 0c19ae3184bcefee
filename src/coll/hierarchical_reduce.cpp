// SPDX-License-Identifier: BSD-3-Clause
//
//                  leaders 1                              leaders L
//     inside       reduced at one rank of each node     each of L ranks reduces its share
//     across       reduced by those                     by the ranks of one share
//     inside       told to all (to the root)            everybody gets all shares (the root does)
//
// The order of ranks is kept where the ranks of a node follow each other.
//
//     N nodes; between nodes: bytes sent per node as one rank of N has; memory: a share
#include "coll/allreduce.hpp"
#include "coll/bcast.hpp"
#include "coll/gather.hpp"
#include "coll/hierarchical.hpp"
#include "coll/nodes.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/shares.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {
namespace {

// The vector as the ranks of a node share it.
struct Split {
    Split(const Nodes& its_nodes, std::uint64_t count, int its_leaders, int its_lead)
        : nodes(its_nodes), shares(count, its_leaders), leaders(its_leaders), lead(its_lead) {}

    // Whether this rank has a share.
    bool has_share() const {
        return leaders == 1 ? nodes.number() == lead : nodes.number() < leaders;
    }
    p2p::Buffer mine(const p2p::Buffer& vector) const {
        if (!has_share()) return part_of(vector, 0, 0);
        return leaders == 1 ? vector : shares.of(vector, nodes.number());
    }
    std::uint64_t count() const {
        if (!has_share()) return 0;
        return leaders == 1 ? shares.count() : shares.count_of(nodes.number());
    }
    // One block for each rank of the node.
    Blocks blocks(const p2p::Buffer& vector) const {
        Blocks blocks;
        blocks.address = vector.address;
        blocks.layout = vector.layout;
        for (int number = 0; number < nodes.inside.size(); ++number) {
            const int share = std::min(number, leaders);
            blocks.displacements.push_back(static_cast<std::int64_t>(shares.start(share)));
            blocks.counts.push_back(
                number < leaders ? static_cast<std::int64_t>(shares.count_of(number)) : 0);
        }
        return blocks;
    }

    const Nodes& nodes;
    const Shares shares;
    const int leaders, lead;  // of one leader: which rank it is
};

// What the node's ranks have, into each share at the rank that has it.
Task<Status> reduce_inside(Executor& executor, Run& run, Nodes& nodes, const Split& split,
                           p2p::Buffer source, p2p::Buffer mine, Reducer reducer) {
    const Team inside = inside_of(run, nodes, 0);
    Status met;
    if (split.leaders == 1)
        met = co_await reduce(executor, inside, source, mine, reducer, split.lead);
    else
        met =
            co_await reduce_scatter(executor, inside, source, split.blocks(source), mine, reducer);
    run.note(std::move(met));
    co_return run.status();
}

}  // namespace

Task<Status> allreduce_hierarchical(Executor& executor, Run& run, p2p::Buffer source,
                                    p2p::Buffer sink, Reducer reducer, int leaders) {
    Nodes& nodes = nodes_of(run.team);
    const Split split(nodes, source.count, leaders, 0);
    const p2p::Buffer mine = split.mine(sink);
    Status met = co_await reduce_inside(executor, run, nodes, split, source, mine, reducer);
    if (split.has_share()) {
        const Team across = across_of(run, nodes, 1, plan::Collective::allreduce, source.bytes());
        met = co_await allreduce(executor, across, mine, mine, reducer);
        run.note(std::move(met));
    }
    const Team inside = inside_of(run, nodes, 2);
    if (leaders == 1)
        met = co_await bcast(executor, inside, sink, 0);
    else
        met = co_await allgather(executor, inside, mine, split.blocks(sink), true);
    run.note(std::move(met));
    co_return run.status();
}

Task<Status> reduce_hierarchical(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                                 Reducer reducer, int root, int leaders) {
    Nodes& nodes = nodes_of(run.team);
    const int number = nodes.number_of(root), node = nodes.node_of(root);
    const Split split(nodes, source.count, leaders, number < nodes.leaders ? number : 0);
    Image share;
    if (run.rank() == root) {
        share.borrow(split.mine(sink));
    } else {
        Status ready = share.allocate(run.team, split.count(), *source.layout,
                                      placed(run.team, source, part_of(sink, 0, 0), reducer));
        GANTRY_CO_TRY(ready);
    }
    const p2p::Buffer mine = share.buffer();
    Status met = co_await reduce_inside(executor, run, nodes, split, source, mine, reducer);
    if (split.has_share()) {
        const Team across = across_of(run, nodes, 1, plan::Collective::reduce, source.bytes());
        met = co_await reduce(executor, across, mine, mine, reducer, node);
        run.note(std::move(met));
    }
    if (nodes.node() != node) co_return run.status();
    const Team inside = inside_of(run, nodes, 2);
    if (leaders > 1) {
        met =
            co_await gather(executor, inside, mine, split.blocks(sink), number, run.rank() == root);
        run.note(std::move(met));
    } else if (split.lead != number && (split.has_share() || run.rank() == root)) {
        Run last(inside);
        if (run.rank() == root)
            met = co_await receive(executor, last, sink, split.lead);
        else
            met = co_await send(executor, last, mine, number);
        run.note(std::move(met));
    }
    co_return run.status();
}

}  // namespace gantry::coll
