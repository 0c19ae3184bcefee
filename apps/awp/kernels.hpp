// SPDX-License-Identifier: BSD-3-Clause
//
// Elastic waves by finite differences on a staggered grid: fourth order in space, second in time
// (leapfrog), as AWP-ODC computes them. One function a cell:
//
//   velocity   rho dv/dt = div(s)
//   stress     ds/dt = lambda div(v) I + mu (grad v + grad v^T)
//   source     s_ij -= dt/h^3 Mdot_ij at one cell
//   record     a velocity at a receiver, into its trace
//
// Where values lie, in cells:   u (0, 0, 0)      v (1/2, 1/2, 0)   w (1/2, 0, 1/2)
//   xx yy zz (1/2, 0, 0)   xy (0, 1/2, 0)   xz (0, 0, 1/2)   yz (1/2, 1/2, 1/2)
#pragma once

#include "../common/cells.hpp"

namespace gantry::apps::awp {

inline constexpr int kVelocities = 3, kStresses = 6, kMaterials = 3;
enum Component { kU, kV, kW };
enum Tensor { kXX, kYY, kZZ, kXY, kXZ, kYZ };
enum Material { kBuoyancy, kLambda, kMu };  // dt/(rho h), dt lambda/h, dt mu/h

// Half cells by which a value is beyond its cell's corner.
inline constexpr int kVelocityPlace[kVelocities][3] = {{0, 0, 0}, {1, 1, 0}, {1, 0, 1}};
inline constexpr int kStressPlace[kStresses][3] = {{1, 0, 0}, {1, 0, 0}, {1, 0, 0},
                                                   {0, 1, 0}, {0, 0, 1}, {1, 1, 1}};

struct Work {
    Region region;
    Whole row, plane;
    float* velocity[kVelocities];
    float* stress[kStresses];
    const float* material[kMaterials];
    const float* damping[3];  // of the sponge, a factor for each padded coordinate of an axis
    APPS_CELL Whole items() const { return region.items; }
};

// Both point at the cell's value; `step` is one cell along the axis.
APPS_CELL float forward(const float* f, int step) {
    return 1.125f * (f[step] - f[0]) - (1.f / 24.f) * (f[2 * step] - f[-step]);
}
APPS_CELL float backward(const float* f, int step) {
    return 1.125f * (f[0] - f[-step]) - (1.f / 24.f) * (f[step] - f[-2 * step]);
}

APPS_CELL void velocity(const Work& work, Whole item) {
    const Cell cell = cell_of(work.region, item);
    const int x = 1, y = static_cast<int>(work.row), z = static_cast<int>(work.plane);
    const int at = cell.x + y * cell.y + z * cell.z;
    const float b = work.material[kBuoyancy][at];
    const float damping =
        work.damping[0][cell.x] * work.damping[1][cell.y] * work.damping[2][cell.z];
    const float* xx = work.stress[kXX] + at;
    const float* yy = work.stress[kYY] + at;
    const float* zz = work.stress[kZZ] + at;
    const float* xy = work.stress[kXY] + at;
    const float* xz = work.stress[kXZ] + at;
    const float* yz = work.stress[kYZ] + at;
    float& u = work.velocity[kU][at];
    float& v = work.velocity[kV][at];
    float& w = work.velocity[kW][at];
    u = damping * (u + b * (backward(xx, x) + backward(xy, y) + backward(xz, z)));
    v = damping * (v + b * (forward(xy, x) + forward(yy, y) + backward(yz, z)));
    w = damping * (w + b * (forward(xz, x) + backward(yz, y) + forward(zz, z)));
}

APPS_CELL void stress(const Work& work, Whole item) {
    const Cell cell = cell_of(work.region, item);
    const int x = 1, y = static_cast<int>(work.row), z = static_cast<int>(work.plane);
    const int at = cell.x + y * cell.y + z * cell.z;
    const float lambda = work.material[kLambda][at], mu = work.material[kMu][at];
    const float damping =
        work.damping[0][cell.x] * work.damping[1][cell.y] * work.damping[2][cell.z];
    const float* u = work.velocity[kU] + at;
    const float* v = work.velocity[kV] + at;
    const float* w = work.velocity[kW] + at;
    const float ux = forward(u, x), vy = backward(v, y), wz = backward(w, z);
    const float volume = lambda * (ux + vy + wz);
    float* const* s = work.stress;
    s[kXX][at] = damping * (s[kXX][at] + volume + 2 * mu * ux);
    s[kYY][at] = damping * (s[kYY][at] + volume + 2 * mu * vy);
    s[kZZ][at] = damping * (s[kZZ][at] + volume + 2 * mu * wz);
    s[kXY][at] = damping * (s[kXY][at] + mu * (forward(u, y) + backward(v, x)));
    s[kXZ][at] = damping * (s[kXZ][at] + mu * (forward(u, z) + backward(w, x)));
    s[kYZ][at] = damping * (s[kYZ][at] + mu * (forward(v, z) + forward(w, y)));
}

// One item a component.
struct SourceWork {
    Whole at;
    float* stress[kStresses];
    double rate[kStresses];  // dt/h^3 Mdot
    APPS_CELL Whole items() const { return kStresses; }
};

APPS_CELL void source(const SourceWork& work, Whole item) {
    APPS_UNROLL
    for (int i = 0; i < kStresses; ++i)
        if (i == item) work.stress[i][work.at] -= static_cast<float>(work.rate[i]);
}

// One item a receiver and component.
inline constexpr Whole kMostReceivers = 16;
struct RecordWork {
    Whole receivers;
    Word places;  // address of their cells, Whole each
    const float* velocity[kVelocities];
    float* traces;  // [receiver][component][step]
    Whole step, steps;
    APPS_CELL Whole items() const { return receivers * kVelocities; }
};

APPS_CELL void record(const RecordWork& work, Whole item) {
    const Whole receiver = item / kVelocities, component = item % kVelocities;
    const Whole at = reinterpret_cast<const Whole*>(work.places)[receiver];
    const float* field = component == kU   ? work.velocity[kU]
                         : component == kV ? work.velocity[kV]
                                           : work.velocity[kW];
    work.traces[item * work.steps + work.step] = field[at];
}

}  // namespace gantry::apps::awp
