// SPDX-License-Identifier: BSD-3-Clause
//
// M ranks on each of N nodes, P = N M.
//
//   barrier     inside, the first ranks across, inside: nobody leaves the second one before all have
//               come to the first
//   bcast       across to the ranks that have the root's number in their nodes, then inside. A number
//               that not every node has: inside the root's node first, then from its first rank
//   allgather   inside to the first rank, those across, then inside to all
//
//     between nodes: steps log2 N; bytes to each node n (bcast), n M (N - 1) (allgather)
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/gather.hpp"
#include "coll/hierarchical.hpp"
#include "coll/nodes.hpp"

namespace gantry::coll {

Task<Status> barrier_hierarchical(Executor& executor, Run& run) {
    Nodes& nodes = nodes_of(run.team);
    Status met = co_await barrier(executor, inside_of(run, nodes, 0));
    run.note(std::move(met));
    if (nodes.number() == 0) {
        met = co_await barrier(executor, across_of(run, nodes, 1));
        run.note(std::move(met));
    }
    met = co_await barrier(executor, inside_of(run, nodes, 2));
    run.note(std::move(met));
    co_return run.status();
}

Task<Status> bcast_hierarchical(Executor& executor, Run& run, p2p::Buffer buffer, int root) {
    Nodes& nodes = nodes_of(run.team);
    const int number = nodes.number_of(root), node = nodes.node_of(root);
    const bool everywhere = number < nodes.leaders, at_root = nodes.node() == node;
    const int lead = everywhere ? number : 0;
    Status told;
    if (at_root && !everywhere) {
        told = co_await bcast(executor, inside_of(run, nodes, 0), buffer, number);
        run.note(std::move(told));
    }
    if (nodes.number() == lead) {
        const Team across = across_of(run, nodes, 1, plan::Collective::bcast, buffer.bytes());
        told = co_await bcast(executor, across, buffer, node);
        run.note(std::move(told));
    }
    if (!at_root || everywhere) {
        told = co_await bcast(executor, inside_of(run, nodes, 2), buffer, lead);
        run.note(std::move(told));
    }
    co_return run.status();
}

Task<Status> allgather_hierarchical(Executor& executor, Run& run, Blocks all) {
    Nodes& nodes = nodes_of(run.team);
    const int first = nodes.first_of(nodes.node());
    Blocks own = all;  // those of this node
    own.address = all.of(first).address;
    Status met = co_await gather(executor, inside_of(run, nodes, 0), all.of(run.rank()), own, 0,
                                 nodes.number() == 0, BlockSizes::equal);
    run.note(std::move(met));
    if (nodes.number() == 0) {
        Blocks of_nodes;
        of_nodes.address = all.address;
        of_nodes.layout = all.layout;
        of_nodes.count = all.count * static_cast<std::uint64_t>(nodes.leaders);
        const bool alike = nodes.leaders * nodes.count() == run.size();
        for (int node = 0; node < nodes.count() && !alike; ++node) {
            const auto block = static_cast<std::int64_t>(all.count);
            of_nodes.counts.push_back(block * (nodes.first_of(node + 1) - nodes.first_of(node)));
            of_nodes.displacements.push_back(block * nodes.first_of(node));
        }
        const p2p::Buffer mine = of_nodes.of(nodes.node());
        met =
            co_await allgather(executor, across_of(run, nodes, 1), mine, std::move(of_nodes), true);
        run.note(std::move(met));
    }
    const p2p::Buffer whole{all.address, all.count * static_cast<std::uint64_t>(run.size()),
                            all.layout};
    met = co_await bcast(executor, inside_of(run, nodes, 2), whole, 0);
    run.note(std::move(met));
    co_return run.status();
}

}  // namespace gantry::coll
