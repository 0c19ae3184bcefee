// SPDX-License-Identifier: BSD-3-Clause
//
// The fields of one rank and how they go on by a step: three phases, each a kernel and an exchange.
//
//   phase     kernel    crosses to each face neighbour                          and edge neighbour
//   relax     collide   f*: my first plane of what moves away from him (1)      -
//   move      stream    f: what I pushed into my halo (1)                       -
//   settle    sum       phi: my first plane; g: what I pushed into my halo (6)  a line of phi, one of g
#pragma once

#include "../common/exchange.hpp"
#include "../common/regions.hpp"
#include "host_kernels.hpp"
#include "model.hpp"
#include "patterns.hpp"

#include <memory>

namespace gantry::apps::lbm {

template <class Real>
class Simulation {
  public:
    Simulation(Machine& machine, const Grid& grid, const Model& model, Allocation allocation,
               bool overlap, Stopwatch& watch);
    ~Simulation();

    void use(const std::string& exchange, std::size_t chunk_bytes);
    void start_with_drops();
    void step();
    void finish();  // waits for the device

    // After the fields of the current level were written from outside.
    void settle();
    Fields& fields() { return fields_; }
    std::size_t element() const { return fields_.element(); }
    Whole steps() const { return steps_; }
    void set_steps(Whole steps);
    // What the state consists of, in the same order whichever level is current.
    std::vector<int> state_fields() const;
    int level() const { return level_; }
    Whole bytes_per_step() const;
    int messages_per_step() const;

  private:
    void phase(const Kernel& kernel, Exchange& exchange);
    Work<Real> work(const Region& region) const;

    Machine& machine_;
    const Grid& grid_;
    Model model_;
    bool overlap_;
    Stopwatch& watch_;
    Fields fields_;
    MPI_Win window_ = MPI_WIN_NULL;
    Region whole_, shell_, inside_;
    // By the level that is current when the step begins.
    std::unique_ptr<Exchange> relax_[2], move_[2], settle_[2], phi_;
    int level_ = 0;
    Whole steps_ = 0;
};

}  // namespace gantry::apps::lbm
