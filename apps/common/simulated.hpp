// SPDX-License-Identifier: BSD-3-Clause
//
// What is alike in applications of one simulation (lbm/simulation.hpp, awp/simulation.hpp): its steps, what it
// sends, and its checkpoints.
#pragma once

#include "application.hpp"
#include "global_fields.hpp"

namespace gantry::apps {

template <class Simulation>
class Simulated : public Application {
  public:
    template <class Model>
    Simulated(const CommonOptions& options, Machine& machine, const Grid& grid, const Model& model)
        : machine_(machine),
          grid_(grid),
          simulation_(machine, grid, model,
                      options.allocation == "slab" ? Allocation::slab : Allocation::separate,
                      options.overlap, watch_),
          chunk_bytes_(options.chunk_bytes) {}

    const Grid& grid() const override { return grid_; }
    Stopwatch& watch() override { return watch_; }
    void use(const std::string& exchange) override { simulation_.use(exchange, chunk_bytes_); }
    Whole step_number() const override { return simulation_.steps(); }
    void step() override { simulation_.step(); }
    void finish_step() override { simulation_.finish(); }
    std::uint64_t checksum() override {
        return apps::checksum(grid_, simulation_.fields(), simulation_.state_fields());
    }
    Whole bytes_per_step() const override { return simulation_.bytes_per_step(); }
    int messages_per_step() const override { return simulation_.messages_per_step(); }
    void save_checkpoint(const std::string& path) override {
        Checkpoint now = header();
        now.step = simulation_.steps();
        save(path, now, grid_, simulation_.fields(), simulation_.state_fields());
        say("step %lld is in %s", simulation_.steps(), path.c_str());
    }

  protected:
    // What the program's checkpoints must not differ in.
    virtual std::uint64_t parameters() const = 0;
    virtual const char* program() const = 0;
    // The step of the state in that file, which becomes that of the fields.
    Whole load_checkpoint(const std::string& path) {
        return load(path, header(), grid_, simulation_.fields(), simulation_.state_fields()).step;
    }

    Machine& machine_;
    const Grid& grid_;
    Stopwatch watch_;
    Simulation simulation_;

  private:
    Checkpoint header() const {
        Checkpoint header = {{'G', 'A', 'N', 'T', 'R', 'Y', '0', '1'},
                             {},
                             {grid_.global[0], grid_.global[1], grid_.global[2]},
                             static_cast<std::int64_t>(simulation_.state_fields().size()),
                             static_cast<std::int64_t>(simulation_.element()),
                             0,
                             parameters()};
        for (std::size_t i = 0; program()[i] != '\0'; ++i)
            header.program[i] = program()[i];
        return header;
    }

    std::size_t chunk_bytes_;
};

}  // namespace gantry::apps
