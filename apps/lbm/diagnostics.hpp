// SPDX-License-Identifier: BSD-3-Clause
//
// What the physics says of a state: masses, the pressure of a drop, the speed that should not be there.
#pragma once

#include "simulation.hpp"

namespace gantry::apps::lbm {

struct Diagnosis {
    double phi_sum = 0, n_sum = 0;  // over all cells
    double volume = 0;              // cells with phi >= 0
    double pressure_jump = 0;       // mean inside (r < R - W) minus mean outside (r > R + W)
    double most_speed = 0;
};

// On every rank.
template <class Real>
Diagnosis diagnose(const Grid& grid, const Model& model, Simulation<Real>& simulation);

}  // namespace gantry::apps::lbm
