// SPDX-License-Identifier: BSD-3-Clause
//
// The job of a program that no launcher started: one rank, whose store is a map of its own.
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
    void abort(int, std::string_view) override {}  // no launcher to tell: the caller exits
    Status finalize() override { return success(); }

  private:
    std::string id_;
    std::vector<int> nodes_{0};
    std::map<std::string, std::string, std::less<>> pending_;
    std::map<std::string, std::string, std::less<>> store_;
};

}  // namespace gantry::job
