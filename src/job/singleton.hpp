// SPDX-License-Identifier: BSD-3-Clause
//
// The job of a program that no launcher started: one rank, whose store is a map of its own. When it
// spawns, it gets a launcher (guest.hpp).
#pragma once

#include "job/job.hpp"

#include <map>

namespace gantry::job {

class Singleton final : public Job {
  public:
    Singleton();
    const char* launcher() const override { return "singleton"; }
    int rank() const override { return 0; }
    int size() const override { return 1; }
    std::string_view id() const override { return id_; }
    const std::vector<int>& nodes() const override { return nodes_; }
    Status put(std::string_view key, std::string_view value) override;
    Task<Status> fence(Executor& executor) override;
    Result<std::string> get(int rank, std::string_view key) override;
    int progress() override { return launcher_ != nullptr ? launcher_->progress() : 0; }
    Task<Status> spawn(Executor& executor, SpawnOrder order) override;
    Task<Status> publish_name(Executor& executor, std::string name, std::string port) override;
    Task<Status> unpublish_name(Executor& executor, std::string name) override;
    Task<Status> lookup_name(Executor& executor, std::string name, std::string* port) override;
    // Without a launcher there is nobody to tell: the caller exits.
    void abort(int exit_code, std::string_view reason) override {
        if (launcher_ != nullptr) launcher_->abort(exit_code, reason);
    }
    Status finalize() override { return launcher_ != nullptr ? launcher_->finalize() : success(); }

  private:
    Status need_launcher();

    std::unique_ptr<Job> launcher_;
    std::string id_;
    std::vector<int> nodes_{0};
    std::map<std::string, std::string, std::less<>> pending_;
    std::map<std::string, std::string, std::less<>> store_;
};

}  // namespace gantry::job
