// SPDX-License-Identifier: BSD-3-Clause
//
// lbm: drops of one fluid in another, by the lattice Boltzmann method, on the ranks of an MPI job.
#include "../../tools/command_line.hpp"
#include "../common/images.hpp"
#include "../common/mistake.hpp"
#include "../common/png.hpp"
#include "../common/simulated.hpp"
#include "diagnostics.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>

namespace gantry::apps::lbm {
namespace {

struct Options : CommonOptions {
    Model model;
    std::vector<double> drop;
    double seconds = 0;
};

template <class Real>
class Lbm final : public Simulated<Simulation<Real>> {
    using Base = Simulated<Simulation<Real>>;
    using Base::grid_, Base::simulation_;

  public:
    Lbm(const Options& options, Machine& machine, const Grid& grid)
        : Base(options, machine, grid, options.model), options_(options) {}

    std::string words() const override {
        return text("lbm: %s, %s precision, on %s, overlap %s", grid_.words().c_str(),
                    options_.precision.c_str(), this->machine_.name().c_str(),
                    options_.overlap ? "on" : "off");
    }
    void start() override {
        if (options_.restart.empty()) {
            simulation_.start_with_drops();
        } else {
            simulation_.set_steps(0);
            simulation_.set_steps(this->load_checkpoint(options_.restart));
            simulation_.settle();
        }
        first_ = diagnose(grid_, options_.model, simulation_);
    }
    std::string state() override {
        const Diagnosis now = diagnose(grid_, options_.model, simulation_);
        return text("pressure jump %.7g, most speed %.3g, mass %+.2g", now.pressure_jump,
                    now.most_speed, now.phi_sum / first_.phi_sum - 1);
    }
    void finish() override;

  private:
    const char* program() const override { return "lbm"; }
    std::uint64_t parameters() const override {
        const Model& m = options_.model;
        const double numbers[] = {m.rho_low, m.rho_high, m.tau_n,    m.tau_phi,
                                  m.width,   m.sigma,    m.mobility, m.lift()};
        return hash_of(numbers, sizeof numbers);
    }

    const Options& options_;
    Diagnosis first_;
};

template <class Real>
void Lbm<Real>::finish() {
    const Model& model = options_.model;
    const Diagnosis now = diagnose(grid_, model, simulation_);
    const double radius = model.drops[0].radius;
    say("pressure jump  %.9e  (Laplace: 2 sigma/R = %.9e, off by %.2f %%)", now.pressure_jump,
        2 * model.sigma / radius, 100 * (1 - now.pressure_jump * radius / (2 * model.sigma)));
    say("most speed     %.3e", now.most_speed);
    say("order          %+.3e of its sum since the start", now.phi_sum / first_.phi_sum - 1);
    say("mass           %+.3e of its sum since the start", now.n_sum / first_.n_sum - 1);
    say("drop's volume  %.4f of that at the start", now.volume / std::max(first_.volume, 1.));
    if (options_.picture.empty()) return;
    const Slice slice = slice_of(grid_, simulation_.fields(), kPhi, 1, grid_.global[1] / 2);
    if (grid_.rank == 0)
        write_png(options_.picture, slice, -model.phi_star(), model.phi_star(),
                  std::max(1, 384 / std::max(slice.width, slice.height)));
    say("a slice of the order parameter is in %s", options_.picture.c_str());
}

void add_options(CLI::App& command, Options& options) {
    options.cells = {48, 48, 48};
    options.steps = 1000;
    command.add_option("--cells", options.cells, "cells along x, y and z")
        ->expected(3)
        ->check(command_line::above_zero())
        ->capture_default_str();
    add_common_options(command, options);
    command.add_option("--precision", options.precision, "double or float")
        ->check(CLI::IsMember({"double", "float"}))
        ->capture_default_str();
    command
        .add_option("--drop", options.drop,
                    "centre and radius of a drop in cells, x y z R, once or more (default: one in "
                    "the middle, "
                    "a quarter of the shortest axis)")
        ->type_size(4)
        ->expected(-1);
    Model& model = options.model;
    command
        .add_option("--rho-low", model.rho_low, "density of the lighter fluid, in lattice units")
        ->capture_default_str();
    command
        .add_option("--rho-high", model.rho_high, "density of the heavier fluid, in lattice units")
        ->capture_default_str();
    command.add_option("--tau-n", model.tau_n, "relaxation time of momentum, in steps")
        ->capture_default_str();
    command
        .add_option("--tau-phi", model.tau_phi, "relaxation time of the order parameter, in steps")
        ->capture_default_str();
    command.add_option("--width", model.width, "width of the interface, in cells")
        ->capture_default_str();
    command.add_option("--sigma", model.sigma, "surface tension, in lattice units")
        ->capture_default_str();
    command
        .add_option("--mobility", model.mobility,
                    "how fast the order parameter spreads, in lattice units")
        ->capture_default_str();
    command.add_option("--eotvos", model.eotvos, "gravity, as the drop's Eotvos number (0: none)")
        ->capture_default_str();
}

void complete_model(Options& options) {
    Model& model = options.model;
    for (std::size_t d = 0; d + 4 <= options.drop.size(); d += 4)
        model.drops.push_back(
            {{options.drop[d], options.drop[d + 1], options.drop[d + 2]}, options.drop[d + 3]});
    if (model.drops.empty()) {
        const Whole least = *std::min_element(options.cells.begin(), options.cells.end());
        Drop drop{{}, static_cast<double>(least) / 4};
        for (std::size_t axis = 0; axis < 3; ++axis)
            drop.at[axis] = static_cast<double>(options.cells[axis]) / 2;
        model.drops.push_back(drop);
    }
    if (model.tau_n <= 0.5 || model.tau_phi <= 0)
        throw Mistake("--tau-n must be above 0.5 and --tau-phi above 0: less is unstable");
    if (model.rho_high <= model.rho_low || model.rho_low <= 0)
        throw Mistake("--rho-high must be above --rho-low, and both above 0");
    if (model.width <= 0) throw Mistake("--width must be above 0");
}

int program(int argc, char** argv) {
    Options options;
    CLI::App command("Multiphase flow by the lattice Boltzmann method, on GPUs or processors.",
                     "lbm");
    add_options(command, options);
    try {
        command.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw Mistake(std::string(error.what()) + " (lbm --help)");
        say("%s", command.help().c_str());
        return 0;
    }
    complete(options);
    complete_model(options);
    const Whole cells[3] = {options.cells[0], options.cells[1], options.cells[2]};
    const Grid grid = make_grid(MPI_COMM_WORLD, cells, {options.decomposition, 2, -1}, true, 2);
    Machine machine(memory_named(options.memory), number_on_node(), {move_ptx(), lbm_ptx()});
    if (options.precision == "float")
        return [&] {
            Lbm<float> lbm(options, machine, grid);
            return run(lbm, options);
        }();
    Lbm<double> lbm(options, machine, grid);
    return run(lbm, options);
}

}  // namespace
}  // namespace gantry::apps::lbm

int main(int argc, char** argv) {
    return gantry::apps::run_program(argc, argv, &gantry::apps::lbm::program);
}
