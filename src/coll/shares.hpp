// SPDX-License-Identifier: BSD-3-Clause
//
// Shares: a vector in parts that follow each other, one for each rank: nearly equal ones, or those of
// MPI_Reduce_scatter.
#pragma once

#include "coll/exchange.hpp"
#include "coll/host_image.hpp"

#include <algorithm>
#include <vector>

namespace gantry::coll {

class Shares {
  public:
    // Nearly equal ones.
    Shares(std::uint64_t count, int parts) : count_(count), parts_(parts) {}
    explicit Shares(std::vector<std::int64_t> counts)
        : parts_(static_cast<int>(counts.size())), starts_(counts.size() + 1) {
        for (std::size_t i = 0; i < counts.size(); ++i)
            starts_[i + 1] = starts_[i] + static_cast<std::uint64_t>(counts[i]);
        count_ = starts_.back();
    }
    int parts() const { return parts_; }
    std::uint64_t count() const { return count_; }
    // Where part `index` starts; with `index` parts(): where the last one ends.
    std::uint64_t start(int index) const {
        if (!starts_.empty()) return starts_[static_cast<std::size_t>(index)];
        const auto number = static_cast<std::uint64_t>(index),
                   ranks = static_cast<std::uint64_t>(parts_);
        return count_ / ranks * number + std::min(number, count_ % ranks);
    }
    std::uint64_t count_of(int index) const { return start(index + 1) - start(index); }
    std::uint64_t largest() const {
        std::uint64_t most = 0;
        for (int index = 0; index < parts_; ++index)
            most = std::max(most, count_of(index));
        return most;
    }
    // Parts [first, end) of that vector.
    p2p::Buffer range(const p2p::Buffer& vector, int first, int end) const {
        return part_of(vector, start(first), start(end) - start(first));
    }
    p2p::Buffer of(const p2p::Buffer& vector, int index) const {
        return range(vector, index, index + 1);
    }
    // Counted around the end.
    p2p::Buffer around(const p2p::Buffer& vector, int index) const {
        return of(vector, (index % parts_ + parts_) % parts_);
    }

  private:
    std::uint64_t count_ = 0;
    int parts_ = 1;
    std::vector<std::uint64_t> starts_;
};

class StagedVector;
// Everybody's share to everybody; share i is that of the rank i behind `root`. `staged`: where `vector` is
// the slot of one, whom to tell of what comes.
Task<Status> gather_shares(Executor& executor, Run& run, p2p::Buffer vector, Shares shares,
                           int root, StagedVector* staged = nullptr);
// To the root alone; share i is that of rank i.
Task<Status> gather_shares_at(Executor& executor, Run& run, p2p::Buffer vector, Shares shares,
                              int root);

}  // namespace gantry::coll
