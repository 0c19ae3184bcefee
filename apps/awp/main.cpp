// SPDX-License-Identifier: BSD-3-Clause
//
// awp: waves of an earthquake's point source in an elastic medium, on the ranks of an MPI job.
#include "../../tools/command_line.hpp"
#include "../common/images.hpp"
#include "../common/mistake.hpp"
#include "../common/png.hpp"
#include "../common/simulated.hpp"
#include "seismogram.hpp"
#include "simulation.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>

namespace gantry::apps::awp {
namespace {

struct Options : CommonOptions {
    Earth earth;
    std::vector<Whole> source, receivers;
    std::string mechanism = "explosion", seismogram;
};

class Awp final : public Simulated<Simulation> {
  public:
    Awp(const Options& options, Machine& machine, const Grid& grid)
        : Simulated(options, machine, grid, options.earth), options_(options) {}

    std::string words() const override {
        return text("awp: %s of %g m, %g s a step, on %s, overlap %s", grid_.words().c_str(),
                    options_.earth.spacing, options_.earth.dt, machine_.name().c_str(),
                    options_.overlap ? "on" : "off");
    }
    void start() override {
        first_ = 0;
        simulation_.start(options_.steps);
        if (options_.restart.empty()) return;
        first_ = load_checkpoint(options_.restart);
        simulation_.go_on(first_);
        simulation_.settle();
    }
    std::string state() override {
        const std::vector<float> u = download<float>(simulation_.fields(), velocity_field(kU));
        double mine = 0, most = 0;
        for (const float value : u)
            mine = std::max(mine, std::abs(static_cast<double>(value)));
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, grid_.comm);
        return text("%.4g s, largest u %.3g m/s",
                    static_cast<double>(simulation_.steps()) * options_.earth.dt, most);
    }
    void finish() override;

  private:
    const char* program() const override { return "awp"; }
    std::uint64_t parameters() const override {
        const Earth& e = options_.earth;
        const double numbers[] = {e.vp,
                                  e.vs,
                                  e.rho,
                                  e.spacing,
                                  e.dt,
                                  e.moment,
                                  e.deviation,
                                  e.delay,
                                  e.explosion ? 1. : 0.,
                                  static_cast<double>(e.source.cell[0]),
                                  static_cast<double>(e.source.cell[1]),
                                  static_cast<double>(e.source.cell[2]),
                                  static_cast<double>(e.sponge),
                                  e.sponge_strength};
        return hash_of(numbers, sizeof numbers);
    }

    const Options& options_;
    Whole first_ = 0;
};

void Awp::finish() {
    const Earth& earth = options_.earth;
    const std::vector<float> traces = simulation_.traces();
    const auto each = static_cast<std::size_t>(kVelocities * options_.steps);
    for (std::size_t r = 0; r < earth.receivers.size() && grid_.rank == 0 && each > 0; ++r) {
        const Place& place = earth.receivers[r];
        const Seismogram seismogram =
            seismogram_of(earth, place, traces.data() + r * each, first_, options_.steps);
        say("receiver %lld %lld %lld: misfit to the exact seismogram %.3f %%, peak %.4f of the "
            "exact",
            place.cell[0], place.cell[1], place.cell[2], 100 * seismogram.misfit(),
            seismogram.peak_ratio());
        if (r == 0 && !options_.seismogram.empty()) {
            write_seismogram(options_.seismogram, seismogram);
            say("its seismogram is in %s", options_.seismogram.c_str());
        }
    }
    if (options_.picture.empty()) return;
    const Slice slice =
        slice_of(grid_, simulation_.fields(), velocity_field(kU), 2, earth.source.cell[2]);
    double most = 0;
    for (const double value : slice.values)
        most = std::max(most, std::abs(value));
    if (grid_.rank == 0)
        write_png(options_.picture, slice, -most, most,
                  std::max(1, 384 / std::max(slice.width, slice.height)));
    say("a slice of u through the source is in %s", options_.picture.c_str());
}

void add_options(CLI::App& command, Options& options) {
    options.cells = {80, 80, 80};
    options.steps = 140;
    options.decomposition = "2d";
    command.add_option("--cells", options.cells, "cells along x, y and z")
        ->expected(3)
        ->check(command_line::above_zero())
        ->capture_default_str();
    add_common_options(command, options);
    Earth& earth = options.earth;
    command.add_option("--spacing", earth.spacing, "edge of a cell, in metres")
        ->capture_default_str();
    command.add_option("--dt", earth.dt, "seconds a step (default: 0.9 of the largest stable one)");
    command.add_option("--vp", earth.vp, "speed of P waves, in m/s")->capture_default_str();
    command.add_option("--vs", earth.vs, "speed of S waves, in m/s")->capture_default_str();
    command.add_option("--rho", earth.rho, "density, in kg/m^3")->capture_default_str();
    command
        .add_option("--mechanism", options.mechanism, "explosion, or shear: a double couple Mxy")
        ->check(CLI::IsMember({"explosion", "shear"}))
        ->capture_default_str();
    command.add_option("--moment", earth.moment, "seismic moment of the source, in N m")
        ->capture_default_str();
    command
        .add_option("--deviation", earth.deviation,
                    "width (standard deviation) of the source's Gaussian pulse, in seconds")
        ->capture_default_str();
    command.add_option("--delay", earth.delay, "when that pulse has its peak, in seconds")
        ->capture_default_str();
    command.add_option("--source", options.source, "cell of the source (default: the middle)")
        ->expected(3);
    command
        .add_option(
            "--receiver", options.receivers,
            "cell of a receiver, once or more (default: 1.6 km from the source along all axes)")
        ->type_size(3)
        ->expected(-1);
    command.add_option("--seismogram", options.seismogram,
                       "file of the first receiver's, beside the exact one: .svg or .csv");
    command.add_option("--sponge", earth.sponge, "cells at each side that absorb; 0: none")
        ->capture_default_str();
}

void take_place(const std::vector<Whole>& numbers, std::size_t at, const char* option,
                const Options& options, Place* place) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
        place->cell[axis] = numbers[at + axis];
        if (place->cell[axis] < 0 || place->cell[axis] >= options.cells[axis])
            throw Mistake(std::string(option) + " " + std::to_string(place->cell[axis]) +
                          " is outside: --cells has " + std::to_string(options.cells[axis]) +
                          " along " + "xyz"[axis]);
    }
}

void complete_earth(Options& options) {
    Earth& earth = options.earth;
    earth.explosion = options.mechanism == "explosion";
    if (earth.vp <= 0 || earth.vs <= 0 || earth.rho <= 0 || earth.spacing <= 0)
        throw Mistake("--vp, --vs, --rho and --spacing must be above 0");
    if (earth.lambda() < 0) throw Mistake("--vs must be at most --vp / sqrt(2)");
    if (earth.dt == 0) earth.dt = 0.9 * earth.largest_dt();
    if (earth.dt < 0 || earth.dt > earth.largest_dt())
        throw Mistake(text("--dt %g is not stable: at most %g with this --spacing and --vp",
                           earth.dt, earth.largest_dt()));
    if (options.source.empty())
        for (const Whole cells : options.cells)
            options.source.push_back(cells / 2);
    take_place(options.source, 0, "--source", options, &earth.source);
    check_folder_of("--seismogram", options.seismogram);
    if (const std::string& file = options.seismogram;
        !file.empty() && !file.ends_with(".svg") && !file.ends_with(".csv"))
        throw Mistake("--seismogram " + file + ": say .svg for a picture or .csv for a table");
    if (options.receivers.empty()) {
        const Whole away = std::llround(1600 / earth.spacing / std::sqrt(3.));
        for (std::size_t axis = 0; axis < 3; ++axis)
            options.receivers.push_back(
                std::min(earth.source.cell[axis] + away, options.cells[axis] - 1));
    }
    for (std::size_t r = 0; r + 3 <= options.receivers.size(); r += 3)
        take_place(options.receivers, r, "--receiver", options, &earth.receivers.emplace_back());
}

int program(int argc, char** argv) {
    Options options;
    CLI::App command("Seismic waves by staggered finite differences, on GPUs or processors.",
                     "awp");
    add_options(command, options);
    try {
        command.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw Mistake(std::string(error.what()) + " (awp --help)");
        say("%s", command.help().c_str());
        return 0;
    }
    complete(options);
    complete_earth(options);
    const Whole cells[3] = {options.cells[0], options.cells[1], options.cells[2]};
    const Grid grid = make_grid(MPI_COMM_WORLD, cells, {options.decomposition, 2, 0}, false, kHalo);
    Machine machine(memory_named(options.memory), number_on_node(), {move_ptx(), awp_ptx()});
    Awp awp(options, machine, grid);
    return run(awp, options);
}

}  // namespace
}  // namespace gantry::apps::awp

int main(int argc, char** argv) {
    return gantry::apps::run_program(argc, argv, &gantry::apps::awp::program);
}
