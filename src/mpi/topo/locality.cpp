// SPDX-License-Identifier: BSD-3-Clause
//
// A walk visits every position of the grid once; processes take positions in the order of the walk,
// node after node. Three walks are compared by the number of neighbors that they put on two nodes:
//
//   rank order   row by row; nobody moves when the ranks of a node follow each other
//   blocks       for nodes of equal size: the grid is cut into equal blocks of one node's size,
//                which one node after another takes. Of all blocks that divide the grid, the one
//                whose faces cut the fewest pairs
//   halves       for all other sizes: the longest side is halved again and again, so that any run
//                of the walk lies close together
//
// On equal terms the first one stays.
#include "mpi/topo/locality.hpp"

#include <algorithm>
#include <numeric>

namespace gantry::mpi {
namespace {

using Walk = std::vector<int>;

// How many processes each node has, by first appearance; and all processes, node after node.
struct Nodes {
    std::vector<int> sizes;
    std::vector<int> processes;

    bool equal() const {
        return std::all_of(sizes.begin(), sizes.end(),
                           [this](int size) { return size == sizes.front(); });
    }
};

Nodes group_by_node(std::span<const int> node_of) {
    std::vector<int> seen_at(
        static_cast<std::size_t>(*std::max_element(node_of.begin(), node_of.end())) + 1, -1);
    Nodes nodes;
    std::vector<int> number(node_of.size());  // of each process's node, by first appearance
    for (std::size_t i = 0; i < node_of.size(); ++i) {
        int& seen = seen_at[static_cast<std::size_t>(node_of[i])];
        if (seen < 0) {
            seen = static_cast<int>(nodes.sizes.size());
            nodes.sizes.push_back(0);
        }
        ++nodes.sizes[static_cast<std::size_t>(seen)];
        number[i] = seen;
    }
    nodes.processes.resize(node_of.size());
    std::iota(nodes.processes.begin(), nodes.processes.end(), 0);
    std::stable_sort(nodes.processes.begin(), nodes.processes.end(), [&number](int a, int b) {
        return number[static_cast<std::size_t>(a)] < number[static_cast<std::size_t>(b)];
    });
    return nodes;
}

// Calls visit(position, neighbor) for every pair of neighbors. Along a periodic dimension of two
// positions there are two edges between them.
template <class Visit>
void for_each_pair(const Cartesian& grid, Visit visit) {
    const int size = grid.size();
    int stride = size;
    for (std::size_t i = 0; i < grid.dims.size(); ++i) {
        const int length = grid.dims[i];
        stride /= length;
        if (length == 1) continue;
        for (int position = 0; position < size; ++position) {
            const int here = position / stride % length;
            if (here + 1 < length)
                visit(position, position + stride);
            else if (grid.periods[i] != 0)
                visit(position, position - here * stride);
        }
    }
}

std::int64_t count_apart(const Cartesian& grid, const std::vector<int>& process_at,
                         std::span<const int> node_of) {
    const auto node_at = [&](int position) {
        const int process = process_at[static_cast<std::size_t>(position)];
        return node_of[static_cast<std::size_t>(process)];
    };
    std::int64_t apart = 0;
    for_each_pair(grid, [&](int a, int b) { apart += node_at(a) != node_at(b) ? 1 : 0; });
    return apart;
}

// The block of `volume` positions that divides the grid and whose faces cut the fewest pairs. Only
// dimensions longer than 1 are looked at: at most 31.
class BestBlock {
  public:
    BestBlock(const Cartesian& grid, int volume)
        : grid_(grid), positions_(grid.size()), block_(grid.dims.size(), 1) {
        for (std::size_t i = grid.dims.size(); i-- > 0;)
            if (grid.dims[i] > 1) long_dimensions_.push_back(i);
        choose(0, volume, 0);
    }
    // Empty when no block of this size divides the grid.
    const std::vector<int>& sides() const { return best_; }

  private:
    void choose(std::size_t next, int volume, std::int64_t cut) {
        if (!best_.empty() && cut >= least_cut_) return;
        if (next == long_dimensions_.size()) {
            if (volume != 1) return;
            best_ = block_;
            least_cut_ = cut;
            return;
        }
        const std::size_t i = long_dimensions_[next];
        const int length = grid_.dims[i];
        // The longest side first: of blocks that are equally good, the one nearest to rows.
        for (int side = std::min(length, volume); side >= 1; --side) {
            if (length % side != 0 || volume % side != 0) continue;
            const int blocks = length / side;
            const int faces = blocks == 1 ? 0 : blocks - (grid_.periods[i] != 0 ? 0 : 1);
            block_[i] = side;
            choose(next + 1, volume / side, cut + std::int64_t{faces} * (positions_ / length));
        }
        block_[i] = 1;
    }

    const Cartesian& grid_;
    int positions_;
    std::vector<std::size_t> long_dimensions_;  // the last one first
    std::vector<int> block_, best_;
    std::int64_t least_cut_ = 0;
};

// Block after block, row by row inside and outside.
Walk walk_blocks(const Cartesian& grid, const std::vector<int>& sides) {
    Cartesian inside, outside;
    inside.dims = sides;
    for (std::size_t i = 0; i < sides.size(); ++i)
        outside.dims.push_back(grid.dims[i] / sides[i]);
    std::vector<int> block(sides.size()), within(sides.size());
    Walk walk;
    walk.reserve(static_cast<std::size_t>(grid.size()));
    for (int b = 0; b < outside.size(); ++b) {
        outside.coordinates(b, block.data());
        for (int p = 0; p < inside.size(); ++p) {
            inside.coordinates(p, within.data());
            int position = 0;
            for (std::size_t i = 0; i < sides.size(); ++i)
                position = position * grid.dims[i] + block[i] * sides[i] + within[i];
            walk.push_back(position);
        }
    }
    return walk;
}

// One half of the box, then the other, each in the same way.
void walk_halves(const Cartesian& grid, std::vector<int>& corner, std::vector<int>& sides,
                 Walk& walk) {
    const auto longest = std::max_element(sides.begin(), sides.end());
    if (longest == sides.end() || *longest == 1) {
        int position = 0;
        for (std::size_t i = 0; i < corner.size(); ++i)
            position = position * grid.dims[i] + corner[i];
        walk.push_back(position);
        return;
    }
    int& from = corner[static_cast<std::size_t>(longest - sides.begin())];
    const int whole = *longest, first = (whole + 1) / 2;
    *longest = first;
    walk_halves(grid, corner, sides, walk);
    from += first;
    *longest = whole - first;
    walk_halves(grid, corner, sides, walk);
    from -= first;
    *longest = whole;
}

Walk walk_halves(const Cartesian& grid) {
    std::vector<int> corner(grid.dims.size(), 0), sides = grid.dims;
    Walk walk;
    walk.reserve(static_cast<std::size_t>(grid.size()));
    walk_halves(grid, corner, sides, walk);
    return walk;
}

// Takes the positions of the walk, node after node, if that puts fewer neighbors on two nodes.
void improve(Arrangement& best, const Cartesian& grid, const Walk& walk, const Nodes& nodes,
             std::span<const int> node_of, std::string how) {
    std::vector<int> process_at(walk.size());
    for (std::size_t i = 0; i < walk.size(); ++i)
        process_at[static_cast<std::size_t>(walk[i])] = nodes.processes[i];
    const std::int64_t apart = count_apart(grid, process_at, node_of);
    if (apart >= best.apart) return;
    best.apart = apart;
    best.process_at = std::move(process_at);
    best.how = std::move(how);
}

}  // namespace

std::string Arrangement::text(const Cartesian& grid) const {
    return fmt::format(
        "grid {}: {}; {} of {} pairs of neighbors are on two nodes ({} in rank order)", grid.text(),
        how, apart, pairs, apart_in_rank_order);
}

int Arrangement::position_of(int process) const {
    const auto found = std::find(process_at.begin(), process_at.end(), process);
    return found == process_at.end() ? MPI_UNDEFINED : static_cast<int>(found - process_at.begin());
}

Arrangement keep_ranks(const Cartesian& grid, std::string why) {
    Arrangement kept;
    kept.process_at.resize(static_cast<std::size_t>(grid.size()));
    std::iota(kept.process_at.begin(), kept.process_at.end(), 0);
    kept.how = std::move(why);
    return kept;
}

Arrangement arrange_by_node(const Cartesian& grid, std::span<const int> node_of) {
    Arrangement best = keep_ranks(grid, "ranks keep their order");
    for_each_pair(grid, [&](int, int) { ++best.pairs; });
    best.apart = best.apart_in_rank_order = count_apart(grid, best.process_at, node_of);
    if (best.apart == 0) return best;
    const Nodes nodes = group_by_node(node_of);
    Walk rows(best.process_at);
    improve(best, grid, rows, nodes, node_of, "the processes of a node in one run of rows");
    if (nodes.equal()) {
        const BestBlock block(grid, nodes.sizes.front());
        if (!block.sides().empty())
            improve(best, grid, walk_blocks(grid, block.sides()), nodes, node_of,
                    fmt::format("blocks of {} on each node", fmt::join(block.sides(), " x ")));
    }
    improve(best, grid, walk_halves(grid), nodes, node_of, "halves of halves shared out by node");
    return best;
}

}  // namespace gantry::mpi
