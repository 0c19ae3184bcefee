// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <algorithm>
#include <cmath>

namespace gantry::apps::awp {

Simulation::Simulation(Machine& machine, const Grid& grid, const Earth& earth,
                       Allocation allocation, bool overlap, Stopwatch& watch)
    : machine_(machine),
      grid_(grid),
      earth_(earth),
      overlap_(overlap),
      watch_(watch),
      fields_(machine, grid.local, kHalo, kFields, sizeof(float), allocation) {
    Box block, stresses;
    Whole sent[3], read[3];
    for (int axis = 0; axis < 3; ++axis) {
        block.lo[axis] = stresses.lo[axis] = kHalo;
        block.n[axis] = stresses.n[axis] = grid.local[axis];
        sent[axis] = grid.divided(axis) ? kHalo : 0;
        read[axis] = grid.divided(axis) ? kReach : 0;
        // Where there is a neighbour, two cells of his.
        if (grid.coords[axis] > 0) {
            stresses.lo[axis] -= kReach;
            stresses.n[axis] += kReach;
        }
        if (grid.coords[axis] + 1 < grid.dims[axis]) stresses.n[axis] += kReach;
    }
    const Box inner = inside_of(block, sent), stress_inner = inside_of(block, read);
    block_ = whole_of(block);
    inside_ = whole_of(inner);
    shell_ = shell_of(block, inner);
    stress_block_ = whole_of(stresses);
    stress_inside_ = whole_of(stress_inner);
    stress_rest_ = shell_of(stresses, stress_inner);
    set_material();
    set_damping();
    std::vector<Whole> places;
    for (std::size_t r = 0; r < earth.receivers.size(); ++r) {
        Whole at = 0;
        if (!local_place(earth.receivers[r], 0, &at)) continue;
        mine_.push_back(r);
        places.push_back(at);
    }
    if (places.empty()) return;
    places_ = machine.allocate(places.size() * sizeof(Whole));
    machine.upload(places_, places.data(), places.size() * sizeof(Whole));
}

Simulation::~Simulation() {
    if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
    for (void* memory : {damping_[0], damping_[1], damping_[2], places_, traces_})
        if (memory != nullptr) machine_.release(memory);
}

void Simulation::set_material() {
    const double by_spacing = earth_.dt / earth_.spacing;
    const double value[kMaterials] = {by_spacing / earth_.rho, by_spacing * earth_.lambda(),
                                      by_spacing * earth_.mu()};
    for (int m = 0; m < kMaterials; ++m) {
        const std::vector<float> all(static_cast<std::size_t>(fields_.cells()),
                                     static_cast<float>(value[m]));
        machine_.upload(fields_.field(kVelocities + kStresses + m), all.data(), fields_.bytes());
    }
}

// Cerjan's sponge: a factor below 1 near each side, by the cell's place in the whole grid.
void Simulation::set_damping() {
    const double width = static_cast<double>(earth_.sponge);
    for (int axis = 0; axis < 3; ++axis) {
        std::vector<float> factors;
        for (Whole i = 0; i < fields_.padded(axis); ++i) {
            const Whole at = grid_.first(axis) + i - kHalo, last = grid_.global[axis] - 1;
            const double deep = static_cast<double>(std::min(at, last - at) + 1);
            const double a = std::sqrt(-std::log(earth_.sponge_strength)) / width;
            const double x = a * (width - deep + 1);
            factors.push_back(deep <= width ? static_cast<float>(std::exp(-x * x)) : 1.f);
        }
        damping_[axis] = machine_.allocate(factors.size() * sizeof(float));
        machine_.upload(damping_[axis], factors.data(), factors.size() * sizeof(float));
    }
}

// Whether the block, with so many cells beyond it, has that cell, and where.
bool Simulation::local_place(const Place& place, Whole beyond, Whole* at) const {
    Whole cell[3];
    for (int axis = 0; axis < 3; ++axis) {
        cell[axis] = place.cell[axis] - grid_.first(axis);
        if (cell[axis] < -beyond || cell[axis] >= grid_.local[axis] + beyond) return false;
    }
    *at = fields_.place(cell[0] + kHalo, cell[1] + kHalo, cell[2] + kHalo);
    return true;
}

std::vector<std::unique_ptr<Exchange>> Simulation::along_axes(const std::string& exchange,
                                                              const ExchangeSetting& setting,
                                                              const std::vector<int>& which) const {
    std::vector<std::unique_ptr<Exchange>> all;
    for (const Pattern& pattern : patterns_along_axes(grid_, fields_, which))
        all.push_back(make_exchange(exchange, setting, pattern));
    return all;
}

void Simulation::use(const std::string& exchange, std::size_t chunk_bytes) {
    if (needs_window(exchange) && window_ == MPI_WIN_NULL)
        MPI_Win_create(fields_.base(), static_cast<MPI_Aint>(fields_.all_bytes()), 1, MPI_INFO_NULL,
                       grid_.comm, &window_);
    const ExchangeSetting setting{grid_.comm, fields_, watch_, chunk_bytes, window_};
    exchanges_ = along_axes(exchange, setting, {0, 1, 2});
    settling_ = along_axes(exchange, setting, state_fields());
}

void Simulation::start(Whole steps) {
    go_on(0);
    recorded_ = steps;
    const std::vector<float> zeros(static_cast<std::size_t>(fields_.cells()), 0.f);
    for (const int field : state_fields())
        machine_.upload(fields_.field(field), zeros.data(), fields_.bytes());
    if (traces_ != nullptr) machine_.release(traces_);
    traces_ = nullptr;
    if (mine_.empty() || steps == 0) return;
    traces_ = machine_.allocate(mine_.size() * kVelocities * static_cast<std::size_t>(steps) *
                                sizeof(float));
}

void Simulation::settle() {
    for (const std::unique_ptr<Exchange>& exchange : settling_) {
        exchange->begin();
        exchange->end();
    }
    finish();
}

Work Simulation::work(const Region& region) const {
    Work work{};
    work.region = region;
    work.row = fields_.row();
    work.plane = fields_.plane();
    for (int c = 0; c < kVelocities; ++c)
        work.velocity[c] = fields_.as<float>(velocity_field(c));
    for (int t = 0; t < kStresses; ++t)
        work.stress[t] = fields_.as<float>(stress_field(t));
    for (int m = 0; m < kMaterials; ++m)
        work.material[m] = fields_.as<float>(kVelocities + kStresses + m);
    for (int axis = 0; axis < 3; ++axis)
        work.damping[axis] = static_cast<const float*>(damping_[axis]);
    return work;
}

void Simulation::launch(Stream stream, const Kernel& kernel, const Region& region) {
    const Work all = work(region);
    machine_.launch(stream, kernel, &all, all.items());
}

void Simulation::add_source() {
    SourceWork source{};
    if (!local_place(earth_.source, kReach, &source.at)) return;
    const double time = (static_cast<double>(steps_) + 0.5) * earth_.dt;
    const double rate =
        earth_.dt / (earth_.spacing * earth_.spacing * earth_.spacing) * earth_.moment_rate(time);
    for (int t = 0; t < kStresses; ++t)
        source.stress[t] = fields_.as<float>(stress_field(t));
    if (earth_.explosion)
        source.rate[kXX] = source.rate[kYY] = source.rate[kZZ] = rate;
    else
        source.rate[kXY] = rate;
    machine_.launch(Stream::edge, kSourceKernel, &source, source.items());
}

void Simulation::record() {
    if (traces_ == nullptr || steps_ - first_ >= recorded_) return;
    RecordWork work{};
    work.receivers = static_cast<Whole>(mine_.size());
    work.places = reinterpret_cast<Word>(places_);
    for (int c = 0; c < kVelocities; ++c)
        work.velocity[c] = fields_.as<float>(velocity_field(c));
    work.traces = static_cast<float*>(traces_);
    work.step = steps_ - first_;
    work.steps = recorded_;
    machine_.launch(Stream::edge, kRecordKernel, &work, work.items());
}

void Simulation::step() {
    if (overlap_) {
        machine_.join();
        launch(Stream::edge, kVelocityKernel, shell_);
        for (std::size_t e = 0; e < exchanges_.size(); ++e) {
            exchanges_[e]->begin();
            if (e == 0) launch(Stream::inside, kVelocityKernel, inside_);
            if (e + 1 == exchanges_.size()) launch(Stream::inside, kStressKernel, stress_inside_);
            exchanges_[e]->end();
        }
        if (exchanges_.empty()) {
            launch(Stream::inside, kVelocityKernel, inside_);
            launch(Stream::inside, kStressKernel, stress_inside_);
        }
        launch(Stream::edge, kStressKernel, stress_rest_);
        machine_.join();  // the source may lie inside
    } else {
        launch(Stream::edge, kVelocityKernel, block_);
        for (const std::unique_ptr<Exchange>& exchange : exchanges_) {
            exchange->begin();
            exchange->end();
        }
        launch(Stream::edge, kStressKernel, stress_block_);
    }
    add_source();
    record();
    ++steps_;
}

void Simulation::finish() {
    machine_.wait(Stream::edge);
    machine_.wait(Stream::inside);
    watch_.lap(Part::compute);
}

std::vector<int> Simulation::state_fields() const {
    std::vector<int> all;
    for (int field = 0; field < kVelocities + kStresses; ++field)
        all.push_back(field);
    return all;
}

Whole Simulation::bytes_per_step() const {
    Whole bytes = 0;
    for (const std::unique_ptr<Exchange>& exchange : exchanges_)
        bytes += exchange->bytes_sent();
    return bytes;
}

int Simulation::messages_per_step() const {
    int messages = 0;
    for (const std::unique_ptr<Exchange>& exchange : exchanges_)
        messages += exchange->messages_sent();
    return messages;
}

std::vector<float> Simulation::traces() const {
    const auto each = static_cast<std::size_t>(kVelocities * recorded_);
    std::vector<float> own(mine_.size() * each);
    if (traces_ != nullptr) machine_.download(own.data(), traces_, own.size() * sizeof(float));
    // Nobody else has them: the sum puts them together.
    std::vector<float> all(earth_.receivers.size() * each), sum(all.size());
    for (std::size_t r = 0; r < mine_.size(); ++r)
        std::copy_n(own.begin() + static_cast<std::ptrdiff_t>(r * each), each,
                    all.begin() + static_cast<std::ptrdiff_t>(mine_[r] * each));
    MPI_Reduce(all.data(), sum.data(), static_cast<int>(all.size()), MPI_FLOAT, MPI_SUM, 0,
               grid_.comm);
    return sum;
}

}  // namespace gantry::apps::awp
