// SPDX-License-Identifier: BSD-3-Clause
//
// Recorded velocities beside the exact ones of an unbounded medium: as numbers, a table, a picture.
#pragma once

#include "earth.hpp"

#include <string>
#include <vector>

namespace gantry::apps::awp {

struct Seismogram {
    std::vector<double> times;                                      // s
    std::vector<double> computed[kVelocities], exact[kVelocities];  // m/s

    // L2 norm of the difference over that of the exact one, of all components.
    double misfit() const;
    // Largest computed value over the largest exact one.
    double peak_ratio() const;
};

// `trace`: [component][step]; step n is of the time (first + n + 1/2) dt.
Seismogram seismogram_of(const Earth& earth, const Place& receiver, const float* trace, Whole first,
                         Whole steps);
// By the file's name: .csv is a table, .svg a picture of all components.
void write_seismogram(const std::string& path, const Seismogram& seismogram);

}  // namespace gantry::apps::awp
