// SPDX-License-Identifier: BSD-3-Clause
//
// How fast bytes move, as a curve over the size of one operation: points (bytes, bytes per second),
// between them a straight line over the logarithm of the size, constant outside. One point is a
// constant rate. An empty curve means "free": it takes no time.
#pragma once

#include "base/units.hpp"

#include <vector>

namespace gantry::model {

class Rate {
  public:
    struct Point {
        Bytes bytes = 0;
        double bytes_per_second = 0;
        bool operator==(const Point&) const = default;
    };

    Rate() = default;
    Rate(double bytes_per_second) : points_{{0, bytes_per_second}} {}
    // Points sorted by size, rates positive (`machine_json.cpp` checks both).
    explicit Rate(std::vector<Point> points) : points_(std::move(points)) {}

    const std::vector<Point>& points() const { return points_; }
    double at(Bytes bytes) const;
    // The rate of a very large operation, for facts that know one number only.
    double peak() const { return points_.empty() ? 0 : points_.back().bytes_per_second; }
    // How long `bytes` take at their own rate, rounded up to a nanosecond.
    Nanoseconds time(Bytes bytes) const;
    bool operator==(const Rate&) const = default;

  private:
    std::vector<Point> points_;
};

}  // namespace gantry::model
