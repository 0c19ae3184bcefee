// SPDX-License-Identifier: BSD-3-Clause
//
// JointJob: two groups that meet, as a transport sees a job: a place for each process, in the same order
// for all, and a store whose fence is a round of the handshake. All are on one node.
#pragma once

#include "job/job.hpp"
#include "mpi/dynamic/handshake.hpp"

#include <map>

namespace gantry::mpi {

class JointJob final : public job::Job {
  public:
    JointJob(int place, int size) : place_(place), nodes_(static_cast<std::size_t>(size)) {}
    const char* launcher() const override { return "handshake"; }
    int rank() const override { return place_; }
    int size() const override { return static_cast<int>(nodes_.size()); }
    std::string_view id() const override { return "handshake"; }
    const std::vector<int>& nodes() const override { return nodes_; }

    Status put(std::string_view key, std::string_view value) override {
        mine_.emplace_back(key);
        mine_.emplace_back(value);
        return success();
    }
    // What this process has put, and what all have, by place.
    std::string published() const { return packed(mine_); }
    void hear(std::vector<std::string> all) { all_ = std::move(all); }
    Task<Status> fence(Executor&) override { co_return success(); }
    Result<std::string> get(int place, std::string_view key) override {
        const std::vector<std::string> texts = unpacked(all_[static_cast<std::size_t>(place)]);
        for (std::size_t i = 0; i + 1 < texts.size(); i += 2)
            if (texts[i] == key) return texts[i + 1];
        return failure(MPI_ERR_INTERN, "process {} of the handshake has put no '{}'", place, key);
    }
    void abort(int, std::string_view) override {}
    Status finalize() override { return success(); }

  private:
    int place_;
    std::vector<int> nodes_;
    std::vector<std::string> mine_;  // a key, its value, and so on
    std::vector<std::string> all_;
};

}  // namespace gantry::mpi
