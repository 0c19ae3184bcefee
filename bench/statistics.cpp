// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace gantry::bench {

Median median(std::vector<double> samples) {
    Median result;
    result.samples = static_cast<int>(samples.size());
    if (samples.empty()) return result;
    std::ranges::sort(samples);
    const auto n = samples.size();
    result.value = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
    // The number of samples below the true median is binomial(n, 1/2): 1.96 standard deviations are
    // 0.98 sqrt(n).
    const double half_width = 0.98 * std::sqrt(static_cast<double>(n));
    const double low = std::floor(static_cast<double>(n) / 2 - half_width) - 1;
    const double high = std::ceil(static_cast<double>(n) / 2 + half_width);
    result.low = samples[static_cast<std::size_t>(std::max(0.0, low))];
    result.high = samples[static_cast<std::size_t>(std::min(static_cast<double>(n - 1), high))];
    return result;
}

}  // namespace gantry::bench
