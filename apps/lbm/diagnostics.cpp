// SPDX-License-Identifier: BSD-3-Clause
#include "diagnostics.hpp"

#include "../common/global_fields.hpp"

#include <algorithm>
#include <cmath>

namespace gantry::apps::lbm {
namespace {

struct Sums {
    // Masses are compared to sixteen digits.
    long double phi = 0, n = 0;
    double volume = 0, inside = 0, inside_cells = 0, outside = 0, outside_cells = 0, speed2 = 0;
};

}  // namespace

template <class Real>
Diagnosis diagnose(const Grid& grid, const Model& model, Simulation<Real>& simulation) {
    simulation.finish();
    const Fields& fields = simulation.fields();
    const auto cells = static_cast<std::size_t>(fields.cells());
    const std::vector<Real> phi = download<Real>(fields, kPhi);
    std::vector<double> n(cells), momentum[3];
    {
        const std::vector<Real> g = download<Real>(fields, kG0);
        std::copy(g.begin(), g.end(), n.begin());
    }
    for (std::vector<double>& component : momentum)
        component.assign(cells, 0);
    for (int i = 1; i <= kMoving; ++i) {
        const std::vector<Real> g = download<Real>(fields, g_field(simulation.level(), i));
        for (std::size_t at = 0; at < cells; ++at) {
            n[at] += static_cast<double>(g[at]);
            for (int a = 0; a < 3; ++a)
                momentum[a][at] += kVelocity[i][a] * static_cast<double>(g[at]);
        }
    }
    const double alpha = model.alpha(), kappa = model.kappa(), star = model.phi_star();
    const double star2 = star * star;
    Sums sums;
    for (Whole z = 0; z < grid.local[2]; ++z)
        for (Whole y = 0; y < grid.local[1]; ++y)
            for (Whole x = 0; x < grid.local[0]; ++x) {
                const auto at =
                    static_cast<std::size_t>(fields.place(x + kHalo, y + kHalo, z + kHalo));
                const Gradient<Real> stencil =
                    gradient_of(phi.data(), static_cast<int>(at), static_cast<int>(fields.row()),
                                static_cast<int>(fields.plane()));
                const double p = static_cast<double>(phi[at]), p2 = p * p;
                const double laplacian = static_cast<double>(stencil.laplacian);
                const double gradient[3] = {static_cast<double>(stencil.x),
                                            static_cast<double>(stencil.y),
                                            static_cast<double>(stencil.z)};
                const double mu = 4 * alpha * p * (p2 - star2) - kappa * laplacian;
                double speed2 = 0, slope2 = 0;
                for (int a = 0; a < 3; ++a) {
                    const double lift = a == 2 && p > 0 ? model.lift() : 0;
                    const double u = (momentum[a][at] + 0.5 * (mu * gradient[a] + lift)) / n[at];
                    speed2 += u * u;
                    slope2 += gradient[a] * gradient[a];
                }
                const double pressure = alpha * (3 * p2 * p2 - 2 * star2 * p2 - star2 * star2) -
                                        kappa * (p * laplacian - slope2 / 2) + n[at] / 3;
                const double beyond = model.beyond(static_cast<double>(grid.first(0) + x + 1),
                                                   static_cast<double>(grid.first(1) + y + 1),
                                                   static_cast<double>(grid.first(2) + z + 1));
                if (beyond < -model.width) {
                    sums.inside += pressure;
                    ++sums.inside_cells;
                } else if (beyond > model.width) {
                    sums.outside += pressure;
                    ++sums.outside_cells;
                }
                sums.phi += p;
                sums.n += n[at];
                sums.volume += p >= 0 ? 1 : 0;
                sums.speed2 = std::max(sums.speed2, speed2);
            }
    double mine[] = {static_cast<double>(sums.phi),
                     static_cast<double>(sums.n),
                     sums.volume,
                     sums.inside,
                     sums.inside_cells,
                     sums.outside,
                     sums.outside_cells};
    double all[std::size(mine)], speed2 = 0;
    MPI_Allreduce(mine, all, static_cast<int>(std::size(mine)), MPI_DOUBLE, MPI_SUM, grid.comm);
    MPI_Allreduce(&sums.speed2, &speed2, 1, MPI_DOUBLE, MPI_MAX, grid.comm);
    return {all[0], all[1], all[2], all[3] / std::max(all[4], 1.) - all[5] / std::max(all[6], 1.),
            std::sqrt(speed2)};
}

template Diagnosis diagnose(const Grid&, const Model&, Simulation<double>&);
template Diagnosis diagnose(const Grid&, const Model&, Simulation<float>&);

}  // namespace gantry::apps::lbm
