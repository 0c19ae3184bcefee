// SPDX-License-Identifier: BSD-3-Clause
//
// What is computed: the fluids, the drops at the beginning, and what follows from them, in lattice units.
#pragma once

#include "kernels.hpp"

#include <vector>

namespace gantry::apps::lbm {

struct Drop {
    double at[3], radius;
};

struct Model {
    double rho_low = 1, rho_high = 1000;
    double tau_n = 0.85, tau_phi = 0.70;
    double width = 4;       // of the interface
    double sigma = 0.01;    // surface tension
    double mobility = 400;  // Gamma
    double eotvos = 0;      // gravity; 0: none
    std::vector<Drop> drops;

    double phi_star() const { return (rho_high - rho_low) / 2; }
    double n0() const { return (rho_high + rho_low) / 2; }
    double alpha() const;
    double kappa() const;
    double eta() const { return 1 / (tau_phi + 0.5); }
    double lift() const;
    template <class Real>
    Constants<Real> constants() const {
        const double phi2 = phi_star() * phi_star();
        return {static_cast<Real>(4 * alpha()),
                static_cast<Real>(kappa()),
                static_cast<Real>(phi2),
                static_cast<Real>(mobility),
                static_cast<Real>(1 / (2 * eta())),
                static_cast<Real>(eta()),
                static_cast<Real>(1 - eta()),
                static_cast<Real>(1 / tau_phi),
                static_cast<Real>(1 / tau_n),
                static_cast<Real>(1 - 1 / (2 * tau_n)),
                static_cast<Real>(lift())};
    }
    // phi at a place, of drops alone: no periodic images, so keep them inside.
    double phi_at(double x, double y, double z) const;
    // Of a place's distance to the drop's surface: positive outside.
    double beyond(double x, double y, double z) const;
};

}  // namespace gantry::apps::lbm
