// SPDX-License-Identifier: BSD-3-Clause
#include "tune.hpp"

#include "answer.hpp"
#include "base/config.hpp"
#include "commands.hpp"
#include "device/cuda/gpu_traits.hpp"
#include "model/tuned.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace gantry::tool {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kSteps = 18;
constexpr double kWorthSaying = 0.15;

// The description that everything starts from: what cannot be measured here (the network) stays.
model::Machine starting_point(Cuda& cuda, int gpu) {
    const auto call = [](auto function, auto... arguments) { return function(arguments...); };
    model::Traits traits = device::cuda::traits_of(cuda, call, gpu);
    device::cuda::read_memory_rate(cuda, call, gpu, traits);
    Result<model::Machine> known = model::built_in_for(traits.name);
    model::Machine machine = known.ok() ? *known : model::estimate(traits);
    if (traits.copy_engines > 0) machine.gpu.copy_engines = traits.copy_engines;
    return machine;
}

bool under_mps(Cuda& cuda, int gpu) {
    int mps = 0;
    cuda.cuDeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, gpu);
    return mps != 0;
}

void describe(Cuda& cuda, int gpu, bool mps, model::Machine& machine) {
    machine.gpu.name = cuda.name(gpu);
    machine.name = model::slug(machine.gpu.name);
    machine.gpus_per_node = cuda.devices();
    std::size_t memory = 0;
    if (cuda.cuDeviceTotalMem_v2(&memory, gpu) == CUDA_SUCCESS) machine.gpu.memory = memory;
    cuda.cuDeviceGetAttribute(&machine.gpu.compute_major,
                              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu);
    cuda.cuDeviceGetAttribute(&machine.gpu.compute_minor,
                              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu);
    int driver = 0;
    cuda.cuDriverGetVersion(&driver);
    machine.about = fmt::format(
        "Measured by gantry tune on {:%Y-%m-%d}, {} MPS: {} devices, CUDA driver {}.{}. The "
        "network and shared memory are those of the built-in description.",
        fmt::gmtime(std::time(nullptr)), mps ? "under" : "without", machine.gpus_per_node,
        driver / 1000, driver % 1000 / 10);
}

Json gpu_json(const model::Gpu& gpu) {
    model::Machine machine;
    machine.name = "any";
    machine.gpu = gpu;
    machine.gpu_under_mps = model::without_turns(gpu);
    return Json::parse(model::to_json(machine))["gpu"];
}

model::Gpu gpu_of(const Json& json) {
    Result<model::Machine> machine =
        model::from_json(Json{{"name", "any"}, {"gpu", json}}.dump(), "gantry tune");
    return machine.ok() ? machine->gpu : model::Gpu{};
}

// What tells `to` from `from` is carried over.
void carry_over(const Json& from, const Json& to, Json& onto) {
    for (const auto& [name, value] : to.items()) {
        if (!from.contains(name) || !onto.contains(name))
            onto[name] = value;
        else if (value.is_object())
            carry_over(from[name], value, onto[name]);
        else if (value != from[name])
            onto[name] = value;
    }
}

model::Gpu like(const model::Gpu& measured, const model::Gpu& from, const model::Gpu& to) {
    Json gpu = gpu_json(measured);
    carry_over(gpu_json(from), gpu_json(to), gpu);
    return gpu_of(gpu);
}

// What an earlier run left there for such GPUs.
std::optional<model::Machine> earlier(const fs::path& file, const std::string& gpu_name) {
    if (file.empty() || !fs::exists(file)) return std::nullopt;
    Result<model::Machine> machine = model::load(file.string());
    if (!machine.ok() || machine->gpu.name != gpu_name) return std::nullopt;
    return *machine;
}

// `machine.gpu` was measured, under MPS or without; the other of the two is an earlier run's. Was
// there none, it is this one with what tells the two apart in the description that all started
// from.
void complete(model::Machine& machine, bool mps, const model::Machine& before,
              const std::optional<model::Machine>& earlier) {
    const model::Gpu measured = machine.gpu;
    // One half alone, and without turns: an old one that was itself measured under MPS.
    const bool told_apart = earlier && earlier->gpu_under_mps != model::without_turns(earlier->gpu);
    const bool kept = told_apart || (mps && earlier && earlier->gpu.turn > 0);
    if (mps) {
        machine.gpu_under_mps = model::without_turns(measured);
        machine.gpu = kept ? earlier->gpu : like(measured, before.gpu_under_mps, before.gpu);
    } else {
        machine.gpu_under_mps =
            kept ? earlier->gpu_under_mps
                 : model::without_turns(like(measured, before.gpu, before.gpu_under_mps));
    }
    // An older file did not say.
    machine.gpu.copy_engines = machine.gpu_under_mps.copy_engines = measured.copy_engines;
    machine.about +=
        fmt::format(" What holds {} MPS {}.", mps ? "without" : "under",
                    kept ? "is an earlier run's" : "was not measured, but follows from it");
}

// Every number of the two descriptions, by its path.
void differences(const Json& before, const Json& after, const std::string& place,
                 std::vector<std::string>& rows) {
    if (after.is_object() && before.is_object()) {
        for (const auto& [name, value] : after.items())
            if (before.contains(name))
                differences(before[name], value, place.empty() ? name : place + "." + name, rows);
        return;
    }
    const auto last = [](const Json& json) {
        return json.is_array() && !json.empty() && json.back().is_array() ? json.back().back()
                                                                          : json;
    };
    const Json old_value = last(before), new_value = last(after);
    if (!old_value.is_number() || !new_value.is_number()) return;
    const double was = old_value.get<double>(), is = new_value.get<double>();
    if (std::abs(is - was) <= kWorthSaying * std::max(std::abs(was), std::abs(is))) return;
    rows.push_back(fmt::format("  {:<36} {:>14.4g} {:>14.4g}  {:.2f}", place, was, is,
                               was != 0 ? is / was : 0));
}

// Makes its folder. Said before a minute of measuring, not behind it.
void must_be_writable(const fs::path& file) {
    const fs::path folder = fs::absolute(file).parent_path();
    std::error_code error;
    fs::create_directories(folder, error);
    if (!error && access(folder.c_str(), W_OK) != 0) error.assign(errno, std::system_category());
    if (error)
        throw TuneFailure(fmt::format("{} cannot be written: {}; --output names another file",
                                      file.string(), error.message()));
}

bool write(const fs::path& file, const std::string& text) {
    std::ofstream out(file);
    out << text;
    return static_cast<bool>(out.flush());
}

}  // namespace

Progress::Progress(int steps) : steps_(steps), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::step(std::string_view what) {
    if (!terminal_) return;
    constexpr int kWidth = 24;
    const int full = kWidth * done_ / std::max(steps_, 1);
    ++done_;
    fmt::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {}", "", full, "", kWidth - std::min(full, kWidth),
               what);
}

int tune(const TuneOptions& options) try {
    const std::string library = config::environment("GANTRY_CUDA_LIBRARY").value_or(std::string{});
    Pair pair(library);
    Cuda cuda(library);
    const int devices = cuda.devices();
    if (options.gpu < 0 || options.gpu >= devices)
        throw TuneFailure(
            fmt::format("--gpu {}: this process sees {} devices", options.gpu, devices));
    const int other = devices > 1 ? (options.gpu + 1) % devices : -1;
    const model::Machine before = starting_point(cuda, options.gpu);
    const bool mps = under_mps(cuda, options.gpu);
    model::Machine machine = before;
    if (mps) machine.gpu = before.gpu_under_mps;
    describe(cuda, options.gpu, mps, machine);
    const fs::path file = options.output.empty() ? fs::path(model::tuned_file(machine.gpu.name))
                                                 : fs::path(options.output);
    if (file.empty())
        throw TuneFailure("neither XDG_CONFIG_HOME nor HOME is set: name a file with --output");
    must_be_writable(file);
    std::vector<CopyCurve> curves;
    bool windows = false;
    {
        Progress progress(kSteps);
        measure_gpu(cuda, options.gpu, other, machine, curves, progress);
        measure_host(machine, progress);
        windows = measure_windows(cuda, machine, progress);
        pair.measure(cuda, options.gpu, other, machine, progress);
    }
    if (!windows)
        machine.about += " There is no GDRCopy: windows are those of the built-in description.";
    const std::string picture_of_it = chart(machine, curves);
    std::vector<std::string> rows;
    Json described = Json::parse(model::to_json(before)),
         measured = Json::parse(model::to_json(machine));
    described["gpu"] = gpu_json(mps ? before.gpu_under_mps : before.gpu);
    for (Json* each : {&described, &measured})
        each->erase("gpu_under_mps");
    differences(described, measured, "", rows);
    answer("{}: {} figures differ by more than {:.0f} % from the description \"{}\"\n",
           machine.gpu.name, rows.size(), 100 * kWorthSaying, before.name);
    if (!rows.empty()) answer("  {:<36} {:>14} {:>14}  ratio\n", "", before.name, "measured");
    for (const std::string& row : rows)
        answer("{}\n", row);

    complete(machine, mps, before, earlier(file, machine.gpu.name));
    fs::path picture = file;
    picture.replace_extension(".svg");
    if (!write(file, model::to_json(machine)) || !write(picture, picture_of_it))
        throw TuneFailure(fmt::format("writing {} failed", file.string()));
    answer("written: {} ({}) and {}\n", file.string(),
           options.output.empty() ? "used from now on" : "use it with GANTRY_MACHINE",
           picture.string());
    return 0;
} catch (const TuneFailure& failure) {
    fmt::print(stderr, "gantry tune: {}\n", failure.what());
    return 1;
}

}  // namespace gantry::tool
