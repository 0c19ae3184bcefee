// SPDX-License-Identifier: BSD-3-Clause
//
// What is computed: a homogeneous elastic medium, a point source in it and receivers; and the exact
// seismogram of an unbounded medium (Aki and Richards, Quantitative Seismology, equation 4.29).
#pragma once

#include "kernels.hpp"

#include <vector>

namespace gantry::apps::awp {

struct Place {
    Whole cell[3];
};

struct Earth {
    double vp = 6000, vs = 3464, rho = 2670;  // m/s, m/s, kg/m^3
    double spacing = 100;                     // m
    double dt = 0;                            // s
    double moment = 1e15;                     // N m
    double deviation = 0.1;                   // s: the moment rate is a Gaussian
    double delay = 0.5;                       // s: of its peak
    bool explosion = true;                    // else a double couple, Mxy
    Place source{};
    std::vector<Place> receivers;
    Whole sponge = 20;  // cells at each side
    double sponge_strength = 0.92;

    double lambda() const { return rho * (vp * vp - 2 * vs * vs); }
    double mu() const { return rho * vs * vs; }
    // The largest step that is stable.
    double largest_dt() const { return 6 * spacing / (7 * 1.7320508075688772 * vp); }
    double moment_rate(double time) const;
    // M_pq / moment.
    double tensor(int p, int q) const;
    int stress_of_source() const { return explosion ? kXX : kXY; }
};

// Velocity of a component at its own place in a receiver's cell.
double exact_velocity(const Earth& earth, const Place& receiver, int component, double time);

}  // namespace gantry::apps::awp
