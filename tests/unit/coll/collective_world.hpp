// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives in the world: real engines of N ranks on a virtual clock with reordering and jitter,
// so a test runs every rank of every algorithm in one process.
#pragma once

#include "coll/blocks.hpp"
#include "coll/planner.hpp"
#include "coll/team.hpp"
#include "p2p/wire.hpp"
#include "plan/coll_facts.hpp"
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <memory>
#include <vector>

namespace gantry::coll {

// Messages in the node, but for those that tell of memory that a program freed.
inline std::uint64_t messages_of(world::World& world) {
    const transport::fake::Fabric& node = world.shared_memory();
    return node.messages() - node.count(p2p::wire::kForget).messages;
}

using world::Place;
using world::Rank;

// A rank's view of a communicator of all ranks: each collective takes the next tag.
class Everybody {
  public:
    explicit Everybody(Rank& rank)
        : rank_(rank),
          group_(rank.all),
          common_(rank.transfer.config, &rank.explain),
          planner_(&common_) {
        group_.context |= p2p::kCollectiveContext;
        common_.nodes = rank.job.nodes();
        common_.job.facts = plan::coll_facts_of(rank.world.machine());
    }
    Team team() {
        return {&rank_.messenger, &rank_.transfer, &group_, next_tag_++, 0, -1, 0, &planner_};
    }
    Planner& planner() { return planner_; }
    Common& common() { return common_; }
    int size() const { return group_.size(); }

  private:
    Rank& rank_;
    p2p::Group group_;
    Common common_;
    Planner planner_;
    int next_tag_ = 0;
};

// An array of T in some kind of memory, with its content on the host.
template <class T>
class Array {
  public:
    Array(Rank& rank, Place place, std::size_t count) : rank_(rank), place_(place), host_(count) {
        layout_ = layout::contiguous_layout(sizeof(T));
        if (place == Place::device) device_ = rank.device_memory(bytes() > 0 ? bytes() : 1);
    }
    T& operator[](std::size_t index) { return host_[index]; }
    std::vector<T>& host() { return host_; }
    Bytes bytes() const { return host_.size() * sizeof(T); }
    void* address() { return device_ != nullptr ? static_cast<void*>(device_) : host_.data(); }
    p2p::Buffer buffer() { return {address(), host_.size(), &layout_}; }
    const layout::Layout& layout() const { return layout_; }
    // Between what the test wrote and what collectives see.
    Task<Status> store(Executor& executor) { return copy(executor, address(), host_.data()); }
    Task<Status> load(Executor& executor) { return copy(executor, host_.data(), address()); }

  private:
    Task<Status> copy(Executor& executor, void* to, const void* from) {
        if (to == from || bytes() == 0) co_return success();
        Status copied = co_await rank_.driver_copy(executor, to, from, bytes());
        co_return copied;
    }
    Rank& rank_;
    Place place_;
    std::vector<T> host_;
    layout::Layout layout_;
    std::byte* device_ = nullptr;
};

// The array as one block for each rank, of `count` items each.
template <class T>
Blocks equal_blocks(Array<T>& all, std::size_t count) {
    Blocks blocks;
    blocks.address = all.address();
    blocks.count = count;
    blocks.layout = &all.layout();
    return blocks;
}

// Runs the program on every number of ranks up to `most` and on several seeds, in rough weather.
inline void expect_good(const world::Program& program, int most = 7) {
    for (int ranks = 1; ranks <= most; ++ranks) {
        for (std::uint64_t seed = 1; seed <= repetitions(3); ++seed) {
            world::Options options;
            options.machine = "h200";
            options.ranks = ranks;
            options.ranks_per_node = 1 + static_cast<int>(seed % 2);
            options.seed = seed;
            options.jitter = 20 * kMicrosecond;
            options.network_order = transport::fake::Order::shuffled;
            world::World world(options);
            const world::Ending ending = world.run(program);
            ASSERT_TRUE(ending.good()) << ranks << " ranks: " << ending;
            ASSERT_TRUE(world.settle())
                << ranks << " ranks, seed " << seed << ": something is left";
        }
    }
}

}  // namespace gantry::coll
