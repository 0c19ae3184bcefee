// SPDX-License-Identifier: BSD-3-Clause
//
// Binomial tree: ranks counted from the root, a rank stands for those from itself up to its lowest set
// bit. It collects the blocks of the ranges above it, nearest first, and sends them on together; a
// scatter runs the other way, farthest first. Blocks travel packed.
//
//     steps ceil(log2 P); bytes into the root n (P - 1); memory: n times the ranks of the range,
//     n P at the root
#include "coll/gather_algorithms.hpp"
#include "coll/host_image.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

// A rank's place in the tree: the blocks of [relative, relative + range) pass through it.
struct Place {
    int size, root, relative, bit, range;
    Place(const Team& team, int of_root)
        : size(team.size()), root(of_root), relative((team.rank() - root + size) % size), bit(1) {
        while (bit < size && (relative & bit) == 0)
            bit *= 2;
        range = std::min(bit, size - relative);
    }
    int rank_of(int of_relative) const { return (of_relative + root) % size; }
    int parent() const { return rank_of(relative - bit); }
    // How many ranks the child at that distance stands for; 0: there is none.
    int range_of_child(int distance) const {
        return std::max(0, std::min(distance, size - relative - distance));
    }
};

struct Together {
    HostImage image;
    Bytes block = 0;
    Status allocate(const Team& team, Bytes bytes, int blocks) {
        block = bytes;
        return image.allocate(team, bytes * static_cast<Bytes>(blocks),
                              *transfer::bytes_buffer(nullptr, 0).layout);
    }
    p2p::Buffer of(int first, int count) const {
        return part_of(image.buffer(), block * static_cast<Bytes>(first),
                       block * static_cast<Bytes>(count));
    }
};

}  // namespace

Task<Status> gather_binomial(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                             bool in_place) {
    Run run(team);
    const Place place(team, root);
    const bool at_root = place.relative == 0;
    if (place.range == 1 && !at_root) {
        Status sent = co_await send(executor, run, mine, place.parent());
        co_return sent;
    }
    Together blocks;
    Status ready =
        blocks.allocate(team, at_root ? all.of(root).bytes() : mine.bytes(), place.range);
    GANTRY_CO_TRY(ready);
    InFlight receives(run);
    for (int distance = 1; distance < place.bit && distance < place.size; distance *= 2)
        if (const int count = place.range_of_child(distance); count > 0)
            receives.receive(blocks.of(distance, count), place.rank_of(place.relative + distance));
    if (!at_root) {
        Status placed = co_await copy(executor, team, mine, blocks.of(0, 1));
        run.note(std::move(placed));
    } else if (!in_place) {
        Status placed = co_await copy(executor, team, mine, all.of(root));
        run.note(std::move(placed));
    }
    Status received = co_await receives.all(executor);
    if (!at_root) {
        Status sent = co_await send(executor, run, blocks.of(0, place.range), place.parent());
        co_return sent;
    }
    for (int i = 1; i < place.size && !run.failed(); ++i) {
        Status placed = co_await copy(executor, team, blocks.of(i, 1), all.of(place.rank_of(i)));
        run.note(std::move(placed));
    }
    co_return run.status();
}

Task<Status> scatter_binomial(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                              bool in_place) {
    Run run(team);
    const Place place(team, root);
    const bool at_root = place.relative == 0;
    if (place.range == 1 && !at_root) {
        Status received = co_await receive(executor, run, mine, place.parent());
        co_return received;
    }
    Together blocks;
    Status ready =
        blocks.allocate(team, at_root ? all.of(root).bytes() : mine.bytes(), place.range);
    GANTRY_CO_TRY(ready);
    for (int i = 1; at_root && i < place.size && !run.failed(); ++i) {
        Status placed = co_await copy(executor, team, all.of(place.rank_of(i)), blocks.of(i, 1));
        run.note(std::move(placed));
    }
    if (!at_root) {
        Status received =
            co_await receive(executor, run, blocks.of(0, place.range), place.parent());
    }
    InFlight sends(run);
    for (int distance = place.bit / 2; distance > 0; distance /= 2)
        if (const int count = place.range_of_child(distance); count > 0)
            sends.send(blocks.of(distance, count), place.rank_of(place.relative + distance));
    if (!run.failed() && !(at_root && in_place)) {
        const p2p::Buffer own = at_root ? all.of(root) : blocks.of(0, 1);
        Status placed = co_await copy(executor, team, own, mine);
        run.note(std::move(placed));
    }
    Status sent = co_await sends.all(executor);
    co_return run.status();
}

}  // namespace gantry::coll
