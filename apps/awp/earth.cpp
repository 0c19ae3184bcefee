// SPDX-License-Identifier: BSD-3-Clause
#include "earth.hpp"

#include <cmath>

namespace gantry::apps::awp {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kIntervals = 400;

double delta(int a, int b) {
    return a == b ? 1 : 0;
}

}  // namespace

double Earth::moment_rate(double time) const {
    const double t = (time - delay) / deviation;
    return moment / (deviation * std::sqrt(2 * kPi)) * std::exp(-t * t / 2);
}

double Earth::tensor(int p, int q) const {
    if (explosion) return delta(p, q);
    return (p == 0 && q == 1) || (p == 1 && q == 0) ? 1 : 0;
}

double exact_velocity(const Earth& earth, const Place& receiver, int component, double time) {
    const int* from = kStressPlace[earth.stress_of_source()];
    double way[3], r2 = 0;
    for (int a = 0; a < 3; ++a) {
        const double cells = static_cast<double>(receiver.cell[a] - earth.source.cell[a]) +
                             (kVelocityPlace[component][a] - from[a]) / 2.;
        way[a] = cells * earth.spacing;
        r2 += way[a] * way[a];
    }
    const double r = std::sqrt(r2), vp = earth.vp, vs = earth.vs;
    const auto rate = [&earth](double t) { return earth.moment_rate(t); };
    const auto change = [&earth, &rate](double t) {
        return -(t - earth.delay) / (earth.deviation * earth.deviation) * rate(t);
    };
    // The near field: between the two arrivals, by Simpson's rule.
    double near = 0;
    const double step = (r / vs - r / vp) / kIntervals;
    for (int i = 0; i <= kIntervals; ++i) {
        const double tau = r / vp + i * step;
        const double weight = i == 0 || i == kIntervals ? 1 : i % 2 != 0 ? 4 : 2;
        near += weight * tau * rate(time - tau);
    }
    near *= step / 3;

    double sum = 0;
    const int n = component;
    for (int p = 0; p < 3; ++p)
        for (int q = 0; q < 3; ++q) {
            if (earth.tensor(p, q) == 0) continue;
            const double gn = way[n] / r, gp = way[p] / r, gq = way[q] / r;
            const double ggg = gn * gp * gq;
            const double npq = gn * delta(p, q), pnq = gp * delta(n, q), qnp = gq * delta(n, p);
            sum += earth.tensor(p, q) *
                   ((15 * ggg - 3 * npq - 3 * pnq - 3 * qnp) / (r2 * r2) * near +
                    (6 * ggg - npq - pnq - qnp) / (vp * vp * r2) * rate(time - r / vp) -
                    (6 * ggg - npq - pnq - 2 * qnp) / (vs * vs * r2) * rate(time - r / vs) +
                    ggg / (vp * vp * vp * r) * change(time - r / vp) -
                    (ggg - qnp) / (vs * vs * vs * r) * change(time - r / vs));
        }
    return sum / (4 * kPi * earth.rho);
}

}  // namespace gantry::apps::awp
