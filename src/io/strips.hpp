// SPDX-License-Identifier: BSD-3-Clause
//
// Strips: the runs of a rank's view as ranks tell them to each other, equal runs at equal distances
// together. A StripReader takes them window by window.
#pragma once

#include "layout/form.hpp"
#include "layout/layout.hpp"

#include <cstdint>
#include <vector>

namespace gantry::io {

// Plain data: it travels as bytes.
struct Strip {
    std::int64_t offset = 0;  // of the first run, in the file
    Bytes bytes = 0;          // of a run
    Bytes count = 1;
    std::int64_t stride = 0;
    bool operator==(const Strip&) const = default;
};

// Behind those that are there, whose runs lie in front of it.
void add_run(std::vector<Strip>& strips, std::int64_t offset, Bytes bytes);

struct Interval {
    std::int64_t begin = 0, end = 0;
    bool operator==(const Interval&) const = default;
};
// In order, and those that touch, or lie no further apart than that, as one.
std::vector<Interval> merged(std::vector<Interval> intervals, std::int64_t gap);

class StripReader {
  public:
    explicit StripReader(std::vector<Strip> strips = {}) : strips_(std::move(strips)) {}
    // What lies in front of `end` and was not taken: its bytes. Where they are given, a form counted
    // from `origin`, and the intervals, those no further apart than `gap` as one.
    Bytes take(std::int64_t end, std::int64_t origin, layout::FormBuilder* form,
               std::vector<Interval>* intervals, std::int64_t gap = 0);

  private:
    std::vector<Strip> strips_;
    std::size_t at_ = 0;
    Bytes skipped_ = 0;  // of the first run of strips_[at_]
};

}  // namespace gantry::io
