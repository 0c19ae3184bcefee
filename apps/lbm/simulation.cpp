// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <type_traits>

namespace gantry::apps::lbm {
namespace {

template <class Real>
const Kernel& pick(const Kernel& doubles, const Kernel& floats) {
    return std::is_same_v<Real, double> ? doubles : floats;
}

}  // namespace

template <class Real>
Simulation<Real>::Simulation(Machine& machine, const Grid& grid, const Model& model,
                             Allocation allocation, bool overlap, Stopwatch& watch)
    : machine_(machine),
      grid_(grid),
      model_(model),
      overlap_(overlap),
      watch_(watch),
      fields_(machine, grid.local, kHalo, kFields, sizeof(Real), allocation) {
    const Box all = {{kHalo, kHalo, kHalo}, {grid.local[0], grid.local[1], grid.local[2]}};
    const Whole thick[3] = {1, 1, 1};
    const Box inner = inside_of(all, thick);
    whole_ = whole_of(all);
    shell_ = shell_of(all, inner);
    inside_ = whole_of(inner);
}

template <class Real>
Simulation<Real>::~Simulation() {
    if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
}

template <class Real>
void Simulation<Real>::use(const std::string& exchange, std::size_t chunk_bytes) {
    if (needs_window(exchange) && window_ == MPI_WIN_NULL)
        MPI_Win_create(fields_.base(), static_cast<MPI_Aint>(fields_.all_bytes()), 1, MPI_INFO_NULL,
                       grid_.comm, &window_);
    const ExchangeSetting setting{grid_.comm, fields_, watch_, chunk_bytes, window_};
    const auto made = [&](const std::vector<Crossing>& crossings) {
        return make_exchange(exchange, setting, pattern_of(grid_, fields_, crossings));
    };
    for (int level : {0, 1}) {
        relax_[level] = made(relax_crossings(level));
        move_[level] = made(move_crossings(1 - level));
        settle_[level] = made(settle_crossings(1 - level));
    }
    phi_ = made(phi_crossings());
}

template <class Real>
Work<Real> Simulation<Real>::work(const Region& region) const {
    Work<Real> work{};
    work.region = region;
    work.row = fields_.row();
    work.plane = fields_.plane();
    work.phi = fields_.template as<Real>(kPhi);
    work.f0 = fields_.template as<Real>(kF0);
    work.g0 = fields_.template as<Real>(kG0);
    for (int i = 1; i <= kMoving; ++i) {
        if (i <= kAxial) {
            work.f[i - 1] = fields_.template as<Real>(f_field(level_, i));
            work.f_next[i - 1] = fields_.template as<Real>(f_field(1 - level_, i));
        }
        work.g[i - 1] = fields_.template as<Real>(g_field(level_, i));
        work.g_next[i - 1] = fields_.template as<Real>(g_field(1 - level_, i));
    }
    work.constants = model_.constants<Real>();
    return work;
}

template <class Real>
void Simulation<Real>::phase(const Kernel& kernel, Exchange& exchange) {
    if (!overlap_) {
        const Work<Real> all = work(whole_);
        machine_.launch(Stream::edge, kernel, &all, all.items());
        exchange.begin();
        exchange.end();
        return;
    }
    machine_.join();
    const Work<Real> outer = work(shell_), inner = work(inside_);
    machine_.launch(Stream::edge, kernel, &outer, outer.items());
    exchange.begin();
    machine_.launch(Stream::inside, kernel, &inner, inner.items());
    exchange.end();
}

template <class Real>
void Simulation<Real>::step() {
    phase(pick<Real>(kCollideDouble, kCollideFloat), *relax_[level_]);
    phase(pick<Real>(kStreamDouble, kStreamFloat), *move_[level_]);
    phase(pick<Real>(kSumDouble, kSumFloat), *settle_[level_]);
    level_ = 1 - level_;
    ++steps_;
}

template <class Real>
void Simulation<Real>::finish() {
    machine_.wait(Stream::edge);
    machine_.wait(Stream::inside);
    watch_.lap(Part::compute);
}

template <class Real>
void Simulation<Real>::settle() {
    level_ = 1 - level_;  // the sum is of the next level
    const Work<Real> all = work(whole_);
    machine_.launch(Stream::edge, pick<Real>(kSumDouble, kSumFloat), &all, all.items());
    level_ = 1 - level_;
    phi_->begin();
    phi_->end();
    finish();
}

template <class Real>
void Simulation<Real>::set_steps(Whole steps) {
    steps_ = steps;
    level_ = 0;
}

template <class Real>
std::vector<int> Simulation<Real>::state_fields() const {
    std::vector<int> all = {kF0, kG0};
    for (int i = 1; i <= kAxial; ++i)
        all.push_back(f_field(level_, i));
    for (int i = 1; i <= kMoving; ++i)
        all.push_back(g_field(level_, i));
    return all;
}

template <class Real>
void Simulation<Real>::start_with_drops() {
    set_steps(0);
    const auto cells = static_cast<std::size_t>(fields_.cells());
    std::vector<Real> phi(cells), value(cells);
    const auto each = [this](Whole margin, auto visit) {
        for (Whole z = kHalo - margin; z < kHalo + grid_.local[2] + margin; ++z)
            for (Whole y = kHalo - margin; y < kHalo + grid_.local[1] + margin; ++y)
                for (Whole x = kHalo - margin; x < kHalo + grid_.local[0] + margin; ++x)
                    visit(x, y, z, static_cast<std::size_t>(fields_.place(x, y, z)));
    };
    const auto global = [this](int axis, Whole at) {  // periodic; cells are counted from 1
        const Whole n = grid_.global[axis];
        return static_cast<double>((grid_.first(axis) + at - kHalo + n) % n + 1);
    };
    each(kHalo, [&](Whole x, Whole y, Whole z, std::size_t at) {
        phi[at] = static_cast<Real>(model_.phi_at(global(0, x), global(1, y), global(2, z)));
    });
    const Constants<Real> k = model_.constants<Real>();
    const Real n = static_cast<Real>(model_.n0());
    // Each field of the state at equilibrium, with u = 0.
    const auto fill = [&](int field, auto equilibrium) {
        each(0, [&](Whole, Whole, Whole, std::size_t at) {
            const Gradient<Real> gradient =
                gradient_of(phi.data(), static_cast<int>(at), static_cast<int>(fields_.row()),
                            static_cast<int>(fields_.plane()));
            const Real mu = k.alpha4 * phi[at] * (phi[at] * phi[at] - k.phi_star2) -
                            k.kappa * gradient.laplacian;
            value[at] = equilibrium(phi[at], mu);
        });
        machine_.upload(fields_.field(field), value.data(), fields_.bytes());
    };
    fill(kF0, [&](Real p, Real mu) { return p - 3 * k.gamma * mu; });
    for (int i = 1; i <= kAxial; ++i)
        fill(f_field(level_, i), [&](Real, Real mu) { return Real(0.5) * k.gamma * mu; });
    fill(kG0, [&](Real p, Real mu) { return (n - 6 * p * mu) / 3; });
    for (int i = 1; i <= kMoving; ++i)
        fill(g_field(level_, i), [&](Real p, Real mu) {
            return (n + 3 * p * mu) / (i <= kAxial ? Real(18) : Real(36));
        });
    settle();
}

template <class Real>
Whole Simulation<Real>::bytes_per_step() const {
    return relax_[0]->bytes_sent() + move_[0]->bytes_sent() + settle_[0]->bytes_sent();
}

template <class Real>
int Simulation<Real>::messages_per_step() const {
    return relax_[0]->messages_sent() + move_[0]->messages_sent() + settle_[0]->messages_sent();
}

template class Simulation<double>;
template class Simulation<float>;

}  // namespace gantry::apps::lbm
