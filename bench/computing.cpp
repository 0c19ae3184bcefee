// SPDX-License-Identifier: BSD-3-Clause
#include "computing.hpp"

#include "measure.hpp"
#include "statistics.hpp"

#include <algorithm>
#include <vector>

namespace gantry::bench {
namespace {

constexpr long kStepsOfCalibration = 200000;

}  // namespace

void compute(long steps) {
    double value = 1;
    for (long step = 0; step < steps; ++step) {
        value = value * 0.999 + 0.5;
        asm volatile("" : "+m"(value));
    }
}

double seconds_per_step() {
    std::vector<double> samples;
    for (int i = 0; i < 9; ++i) {
        const double start = now_seconds();
        compute(kStepsOfCalibration);
        samples.push_back((now_seconds() - start) / kStepsOfCalibration);
    }
    return median(samples).value;
}

double hidden_percent(double call, double computing, double total) {
    return 100 * std::clamp(1 - (total - computing) / call, 0.0, 1.0);
}

}  // namespace gantry::bench
