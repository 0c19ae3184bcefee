// SPDX-License-Identifier: BSD-3-Clause
#include "model/rate.hpp"

#include <cmath>

namespace gantry::model {

double Rate::at(Bytes bytes) const {
    if (points_.empty()) return 0;
    if (bytes <= points_.front().bytes) return points_.front().bytes_per_second;
    // Linear search: a measured curve has a handful of points.
    for (std::size_t i = 1; i < points_.size(); ++i) {
        const Point& low = points_[i - 1];
        const Point& high = points_[i];
        if (bytes > high.bytes) continue;
        const double low_size = std::log2(static_cast<double>(low.bytes) + 1);
        const double high_size = std::log2(static_cast<double>(high.bytes) + 1);
        const double size = std::log2(static_cast<double>(bytes) + 1);
        const double part = (size - low_size) / (high_size - low_size);
        return low.bytes_per_second + part * (high.bytes_per_second - low.bytes_per_second);
    }
    return points_.back().bytes_per_second;
}

Nanoseconds Rate::time(Bytes bytes) const {
    if (points_.empty() || bytes == 0) return 0;
    return static_cast<Nanoseconds>(
        std::ceil(static_cast<double>(bytes) / at(bytes) * static_cast<double>(kSecond)));
}

}  // namespace gantry::model
