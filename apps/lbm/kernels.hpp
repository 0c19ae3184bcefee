// SPDX-License-Identifier: BSD-3-Clause
//
// A step of the multiphase lattice Boltzmann model of Zheng, Shu and Chew (J. Comput. Phys. 218, 2006), one
// function a cell. f moves the order parameter phi (D3Q7), g the density n and momentum (D3Q19):
//
//   collide   mu, F and u from phi beside the cell; f relaxes in place; g relaxes and is pushed into the
//             next level, beyond the block's edge into its halo
//   stream    f of the next level: f_i(x + c_i) = eta f*_i(x) + (1 - eta) f*_i(x + c_i), pushed likewise
//   sum       phi = sum of f
//
// Each array has one value a cell; those that move have two levels, which change places every step.
#pragma once

#include "../common/cells.hpp"
#include "velocities.hpp"

namespace gantry::apps::lbm {

// What the model is made of, as the kernels need it.
template <class Real>
struct Constants {
    Real alpha4, kappa, phi_star2;  // mu = alpha4 phi (phi^2 - phi*^2) - kappa Lap(phi)
    Real gamma, half_by_eta;        // of f's equilibrium
    Real eta, one_minus_eta;
    Real by_tau_phi, by_tau_n, force_share;  // 1/tau; 1 - 1/(2 tau_n)
    Real lift;                               // force along z where phi > 0
    Real unused = 0;                         // so that floats fill words of 8 bytes
};

template <class Real>
struct Work {
    Region region;
    Whole row, plane;
    Real *phi, *f0, *g0;
    Real *f[kAxial], *f_next[kAxial];
    Real *g[kMoving], *g_next[kMoving];
    Constants<Real> constants;
    APPS_CELL Whole items() const { return region.items; }
};

template <class Real>
struct Gradient {
    Real laplacian, x, y, z;
};

// 18-point stencils.
template <class Real>
APPS_CELL Gradient<Real> gradient_of(const Real* phi, int at, int y, int z) {
    const Real here = phi[at];
    const Real e = phi[at + 1], w = phi[at - 1], n = phi[at + y], s = phi[at - y], t = phi[at + z],
               b = phi[at - z];
    const Real ne = phi[at + 1 + y], sw = phi[at - 1 - y], se = phi[at + 1 - y],
               nw = phi[at - 1 + y];
    const Real te = phi[at + 1 + z], bw = phi[at - 1 - z], be = phi[at + 1 - z],
               tw = phi[at - 1 + z];
    const Real tn = phi[at + y + z], bs = phi[at - y - z], bn = phi[at + y - z],
               ts = phi[at - y + z];
    constexpr Real kSixth = Real(1) / 6, kTwelfth = Real(1) / 12;
    return {kSixth * (2 * (e + w + n + s + t + b) +
                      (ne + sw + se + nw + te + bw + be + tw + tn + bs + bn + ts) - 24 * here),
            kTwelfth * (2 * (e - w) + (ne - sw) + (se - nw) + (te - bw) + (be - tw)),
            kTwelfth * (2 * (n - s) + (ne - sw) + (nw - se) + (tn - bs) + (bn - ts)),
            kTwelfth * (2 * (t - b) + (te - bw) + (tw - be) + (tn - bs) + (ts - bn))};
}

// g's equilibrium of a velocity whose component along u is cu.
template <class Real>
APPS_CELL Real equilibrium_g(Real weight, Real n, Real phi_mu, Real cu, Real u2) {
    return weight * (n + 3 * phi_mu + n * (3 * cu + Real(4.5) * cu * cu - Real(1.5) * u2));
}

template <class Real>
APPS_CELL void collide(const Work<Real>& work, Whole item) {
    const Cell cell = cell_of(work.region, item);
    const int row = static_cast<int>(work.row), plane = static_cast<int>(work.plane);
    const int at = cell.x + row * cell.y + plane * cell.z;
    const Constants<Real>& k = work.constants;
    const Real phi = work.phi[at];
    const Gradient<Real> gradient = gradient_of(work.phi, at, row, plane);
    const Real mu = k.alpha4 * phi * (phi * phi - k.phi_star2) - k.kappa * gradient.laplacian;
    const Real force[3] = {mu * gradient.x, mu * gradient.y,
                           mu * gradient.z + (phi > 0 ? k.lift : Real(0))};

    Real g[kMoving + 1];
    g[0] = work.g0[at];
    Real n = g[0], momentum[3] = {0, 0, 0};
    APPS_UNROLL
    for (int i = 1; i <= kMoving; ++i) {
        g[i] = work.g[i - 1][at];
        n += g[i];
        APPS_UNROLL
        for (int a = 0; a < 3; ++a)
            if (kVelocity[i][a] != 0)
                momentum[a] = kVelocity[i][a] > 0 ? momentum[a] + g[i] : momentum[a] - g[i];
    }
    Real u[3];
    for (int a = 0; a < 3; ++a)
        u[a] = (momentum[a] + Real(0.5) * force[a]) / n;
    const Real u2 = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
    const Real uf = u[0] * force[0] + u[1] * force[1] + u[2] * force[2];

    const Real gamma_mu = k.gamma * mu, phi_half = phi * k.half_by_eta;
    work.f0[at] += (phi - 3 * gamma_mu - work.f0[at]) * k.by_tau_phi;
    APPS_UNROLL
    for (int i = 1; i <= kAxial; ++i) {
        const int axis = (i - 1) / 2;
        const Real cu = i % 2 != 0 ? u[axis] : -u[axis];
        const Real f = work.f[i - 1][at];
        work.f[i - 1][at] = f + (Real(0.5) * gamma_mu + phi_half * cu - f) * k.by_tau_phi;
    }

    const Real phi_mu = phi * mu;
    const Real still = Real(1) / 3;
    work.g0[at] = g[0] + (still * (n - 6 * phi_mu - Real(1.5) * n * u2) - g[0]) * k.by_tau_n -
                  k.force_share * still * 3 * uf;
    APPS_UNROLL
    for (int i = 1; i <= kMoving; ++i) {
        const Real weight = i <= kAxial ? Real(1) / 18 : Real(1) / 36;
        Real cu = 0, cf = 0;
        APPS_UNROLL
        for (int a = 0; a < 3; ++a)
            if (kVelocity[i][a] != 0) {
                cu = kVelocity[i][a] > 0 ? cu + u[a] : cu - u[a];
                cf = kVelocity[i][a] > 0 ? cf + force[a] : cf - force[a];
            }
        const Real relaxed = g[i] + (equilibrium_g(weight, n, phi_mu, cu, u2) - g[i]) * k.by_tau_n +
                             k.force_share * weight * (3 * (cf - uf) + 9 * cu * cf);
        work.g_next[i - 1][at + kVelocity[i][0] + row * kVelocity[i][1] + plane * kVelocity[i][2]] =
            relaxed;
    }
}

template <class Real>
APPS_CELL void stream(const Work<Real>& work, Whole item) {
    const Cell cell = cell_of(work.region, item);
    const int row = static_cast<int>(work.row), plane = static_cast<int>(work.plane);
    const int at = cell.x + row * cell.y + plane * cell.z;
    APPS_UNROLL
    for (int i = 1; i <= kAxial; ++i) {
        const int there = at + kVelocity[i][0] + row * kVelocity[i][1] + plane * kVelocity[i][2];
        work.f_next[i - 1][there] = work.constants.eta * work.f[i - 1][at] +
                                    work.constants.one_minus_eta * work.f[i - 1][there];
    }
}

template <class Real>
APPS_CELL void sum(const Work<Real>& work, Whole item) {
    const Cell cell = cell_of(work.region, item);
    const int at =
        cell.x + static_cast<int>(work.row) * cell.y + static_cast<int>(work.plane) * cell.z;
    Real phi = work.f0[at];
    APPS_UNROLL
    for (int i = 0; i < kAxial; ++i)
        phi += work.f_next[i][at];
    work.phi[at] = phi;
}

}  // namespace gantry::apps::lbm
