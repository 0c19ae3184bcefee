// SPDX-License-Identifier: BSD-3-Clause
#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gantry::apps::lbm {

double Model::alpha() const {
    const double phi2 = phi_star() * phi_star();
    return 3 * sigma / (4 * width * phi2 * phi2);
}

double Model::kappa() const {
    return alpha() * width * width * phi_star() * phi_star() / 2;
}

double Model::lift() const {
    if (drops.empty()) return 0;
    const double diameter = 2 * drops[0].radius;
    const double gravity = sigma * eotvos / ((rho_high - rho_low) * diameter * diameter);
    return 2 * phi_star() * gravity;
}

double Model::beyond(double x, double y, double z) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Drop& drop : drops) {
        const double dx = x - drop.at[0], dy = y - drop.at[1], dz = z - drop.at[2];
        least = std::min(least, std::sqrt(dx * dx + dy * dy + dz * dz) - drop.radius);
    }
    return least;
}

double Model::phi_at(double x, double y, double z) const {
    const double distance = beyond(x, y, z);
    return distance <= width ? phi_star() * std::tanh(-2 * distance / width) : -phi_star();
}

}  // namespace gantry::apps::lbm
