// SPDX-License-Identifier: BSD-3-Clause
//
// The fields of one rank and how they go on by a step. Only velocities travel, four planes of each: every
// rank computes the stresses of two cells beyond its block itself, which is all that its own velocities
// read. The planes of the later axis include the halos of the earlier, so corners need no messages.
//
//   velocity of the block -> planes across y -> planes across z (-> x) -> stress of the block and two
//   cells around it -> source -> record
#pragma once

#include "../common/exchange.hpp"
#include "../common/regions.hpp"
#include "earth.hpp"
#include "host_kernels.hpp"
#include "patterns.hpp"

#include <memory>

namespace gantry::apps::awp {

inline constexpr int kFields = kVelocities + kStresses + kMaterials;
constexpr int velocity_field(int component) {
    return component;
}
constexpr int stress_field(int tensor) {
    return kVelocities + tensor;
}

class Simulation {
  public:
    Simulation(Machine& machine, const Grid& grid, const Earth& earth, Allocation allocation,
               bool overlap, Stopwatch& watch);
    ~Simulation();
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;

    void use(const std::string& exchange, std::size_t chunk_bytes);
    // At rest; so many steps will be recorded.
    void start(Whole steps);
    // The state that is there is that after so many steps.
    void go_on(Whole steps) { steps_ = first_ = steps; }
    // After the velocities and stresses were written from outside.
    void settle();
    void step();
    void finish();

    Fields& fields() { return fields_; }
    std::size_t element() const { return fields_.element(); }
    Whole steps() const { return steps_; }
    std::vector<int> state_fields() const;
    Whole bytes_per_step() const;
    int messages_per_step() const;
    // [receiver][component][step since start], on rank 0.
    std::vector<float> traces() const;

  private:
    Work work(const Region& region) const;
    void set_material();
    void set_damping();
    void launch(Stream stream, const Kernel& kernel, const Region& region);
    void add_source();
    void record();
    bool local_place(const Place& place, Whole beyond, Whole* at) const;
    std::vector<std::unique_ptr<Exchange>> along_axes(const std::string& exchange,
                                                      const ExchangeSetting& setting,
                                                      const std::vector<int>& which) const;

    Machine& machine_;
    const Grid& grid_;
    Earth earth_;
    bool overlap_;
    Stopwatch& watch_;
    Fields fields_;
    MPI_Win window_ = MPI_WIN_NULL;
    Region block_, shell_, inside_;  // of velocities
    Region stress_block_, stress_rest_, stress_inside_;
    std::vector<std::unique_ptr<Exchange>> exchanges_, settling_;
    void* damping_[3] = {};
    std::vector<std::size_t> mine_;  // receivers in this block
    void *places_ = nullptr, *traces_ = nullptr;
    Whole steps_ = 0, first_ = 0, recorded_ = 0;
};

}  // namespace gantry::apps::awp
