// SPDX-License-Identifier: BSD-3-Clause
//
// The job of a simulated world: a KeyValueSpace holds the store and the fence of N ranks, and a FakeJob is
// one rank's view of it. A rank that died is not waited for.
#pragma once

#include "job/job.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gantry::job::fake {

class KeyValueSpace {
  public:
    explicit KeyValueSpace(std::vector<int> nodes)
        : nodes_(std::move(nodes)), dead_(nodes_.size(), false) {}
    void kill(int rank);

  private:
    friend class FakeJob;
    void open_fence_when_complete();
    std::vector<int> nodes_;
    std::vector<bool> dead_;
    std::map<std::pair<int, std::string>, std::string> store_;
    std::map<int, Completion*> waiting_;  // rank -> its fence
};

class FakeJob final : public Job {
  public:
    FakeJob(KeyValueSpace& key_value_space, int rank) : space_(key_value_space), rank_(rank) {}
    const char* launcher() const override { return "fake"; }
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(space_.nodes_.size()); }
    std::string_view id() const override { return "world"; }
    const std::vector<int>& nodes() const override { return space_.nodes_; }
    Status put(std::string_view key, std::string_view value) override;
    Task<Status> fence(Executor& executor) override;
    Result<std::string> get(int rank, std::string_view key) override;
    void abort(int exit_code, std::string_view reason) override;
    Status finalize() override { return success(); }

  private:
    KeyValueSpace& space_;
    const int rank_;
    std::map<std::string, std::string> unpublished_;  // visible to others from the next fence on
};

}  // namespace gantry::job::fake
