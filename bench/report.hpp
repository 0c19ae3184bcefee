// SPDX-License-Identifier: BSD-3-Clause
//
// Results as columns in the manner of the OSU benchmarks, or as JSON. Only rank 0 prints.
#pragma once

#include "measure.hpp"

#include <string>
#include <vector>

namespace gantry::bench {

struct Unit {
    const char* name;  // "us", "MB/s"
    bool smaller_is_better;
    // From the seconds of one sample; null for a benchmark that makes its own rows.
    double (*value)(double seconds, const Plan& plan);
};

class Report {
  public:
    Report(const Options& options, Unit unit, std::string timed);
    void add(const Plan& plan, const std::vector<Figure>& figures);
    // One row of JSON, made by a benchmark that has more to tell.
    void add_row(const std::string& json);
    void end();

  private:
    void heading(const std::vector<Figure>& figures);
    const Options& options_;
    Unit unit_;
    std::string timed_;
    bool begun_ = false;
    std::string rows_;  // JSON rows, joined
};

// "rank 0: D (GPU 0, NVIDIA H200), rank 1: H"; needs both ranks.
std::string placement_text(const Options& options);

}  // namespace gantry::bench
