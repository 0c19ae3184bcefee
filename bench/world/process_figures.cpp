// SPDX-License-Identifier: BSD-3-Clause
//
// Figures by real processes: jobs of gantry-bench and of the applications, once on the simulated GPU and,
// where there is a real one, on that. Ranks of one machine: between them is shared memory or CUDA IPC, not
// the published network. What cannot be shown that way says why, in the column itself.
#include "process_jobs.hpp"

#include <fmt/format.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace gantry::reproduce {
namespace {

namespace fs = std::filesystem;

// Where figures are taken. Without IPC both ranks of a machine stage through the host as two nodes do.
struct Setting {
    Place nodes;       // machines of 2011, a GPU for each rank
    Place slow_nodes;  // the same, nearer to their own speed: for copies that take much longer
    Place one_node;    // GPUs of today that map each other's memory
    const char* cells = "48 48 48 --steps 12";
    Ours Figure::*column = &Figure::processes;
};

using Ratio = Ours (*)(const Setting&);

Ours beside_copy_and_send(const Setting& setting) {
    const Job job = run_bench(setting.nodes, "latency D D -m 4M -i 7 --baseline staged");
    return lower(job, kLibrary, job, "staged");
}
Ours beside_a_pipeline(const Setting& setting) {
    const Job job = run_bench(setting.nodes, "latency D D -m 4M -i 7 --baseline user-pipelined");
    return lower(job, kLibrary, job, "user-pipelined");
}
Ours put(const Setting& setting) {
    const Job job = run_bench(setting.nodes, "put D D -m 4M -i 7 --sync fence --baseline staged");
    return lower(job, kLibrary, job, "staged");
}
Ours vector_beside_strided_copy(const Setting& setting) {
    const Job job =
        run_bench(setting.slow_nodes, "latency D D -m 1M -i 5 --layout 4:8 --baseline staged");
    return lower(job, kLibrary, job, "staged");
}
Ours vector_beside_a_pipeline(const Setting& setting) {
    const Job job = run_bench(setting.slow_nodes,
                              "latency D D -m 1M -i 5 --layout 4:8 --baseline user-pipelined");
    return lower(job, kLibrary, job, "user-pipelined");
}
Ours alltoall_beside(const Setting& setting, const char* baseline) {
    const Job job = run_bench(setting.nodes.of_ranks(8),
                              fmt::format("alltoall D -m 256K -i 7 --baseline {}", baseline));
    return lower(job, kLibrary, job, baseline);
}
Ours alltoall_beside_staging(const Setting& setting) {
    return alltoall_beside(setting, "staged");
}
Ours alltoall_beside_messages(const Setting& setting) {
    return alltoall_beside(setting, "messages");
}
// Datatypes beside the faster of both versions that stage by hand.
Ours steps(const Setting& setting, const std::string& words) {
    return median_of(3, [&] {
        const Job job = run_application(setting.nodes, words);
        const std::optional<Time> copies = job.time("copies"), staged = job.time("staged");
        if (!copies || !staged) return failed(job.failure);
        return lower(job, "datatypes", job, copies->value < staged->value ? "copies" : "staged");
    });
}
Ours lbm_in_slabs(const Setting& setting) {
    return steps(setting, fmt::format("lbm --cells {} --decomposition 1d", setting.cells));
}
Ours lbm_in_blocks(const Setting& setting) {
    return steps(setting, fmt::format("lbm --cells {} --decomposition 2x1x1", setting.cells));
}
Ours awp(const Setting& setting) {
    return steps(setting, fmt::format("awp --cells {} --decomposition 2d", setting.cells));
}
constexpr const char* kInOneNode = "latency D D -m 256K";
Ours ipc_beside_shared_memory(const Setting& setting) {
    const Job with = run_bench(setting.one_node, kInOneNode);
    const Job without = run_bench(setting.one_node.with("GANTRY_IPC=off"), kInOneNode);
    return lower(with, kLibrary, without, kLibrary);
}
Ours put_beside_message(const Setting& setting) {
    const Job message = run_bench(setting.one_node, kInOneNode);
    const Job put = run_bench(setting.one_node, "put D D -m 256K");
    return lower(put, kLibrary, message, kLibrary);
}
// Two jobs in turn: they cannot be measured side by side.
Ours openacc_beside_cuda(const Setting& setting) {
    return median_of(3, [&] {
        const Job openacc = run_bench(setting.one_node, "latency A A -m 1M");
        const Job cuda = run_bench(setting.one_node, "latency D D -m 1M");
        Ours times = lower(openacc, kLibrary, cuda, kLibrary);
        if (times.value) times.value = 1 - *times.value;
        return times;
    });
}

// The rows that jobs show, by their claim where a row has several.
struct Shown {
    int row;
    std::string_view claim;  // begins so
    Ratio ratio;
    const char* setting;
};
constexpr Shown kShown[] = {
    {1, "", &beside_copy_and_send, ""},
    {3, "", &beside_a_pipeline, ""},
    {5, "", &put, ""},
    {6, "", &vector_beside_strided_copy, "1 MiB"},
    {7, "", &vector_beside_a_pipeline, "1 MiB"},
    {8, "", &alltoall_beside_staging, "8 ranks"},
    {9, "", &alltoall_beside_messages, "8 ranks"},
    {10, "LBM, a step, 4 nodes", &lbm_in_slabs, "2 ranks, in slabs"},
    {10, "AWP-ODC, a step, 8 nodes, one GPU", &awp, "2 ranks"},
    {11, "", &lbm_in_blocks, "2 ranks, in blocks"},
    {13, "", &ipc_beside_shared_memory, "two H200s"},
    {14, "", &put_beside_message, "256 KiB"},
    {18, "", &openacc_beside_cuda, ""},
};

// And why jobs do not show the others.
struct NotShown {
    int row;
    const char *reason, *story;
};
constexpr NotShown kNotShown[] = {
    {2, "no adapter's buffer",
     "the second copy is from the driver's buffer to the adapter's, and shared memory has one "
     "buffer"},
    {4, "no adapter's buffer",
     "the second copy is from the driver's buffer to the adapter's, and shared memory has one "
     "buffer"},
    {10, "its nodes' network",
     "this many nodes share two processors here; the first of the row and row 11 show the "
     "exchange"},
    {12, "no adapter", "GPUDirect RDMA needs an adapter that reads device memory"},
    {15, "no two ports",
     "needs an adapter with two ports; bench/rails_bandwidth takes any that there are"},
    {16, "no two adapters", "needs two adapters; bench/rails_bandwidth takes any that there are"},
    {17, "no other library",
     "gantry-bench --peers compares with the libraries of a folder, where there are some"},
};

void fill(Evidence& evidence, const Setting& setting) {
    for (Figure& figure : evidence.figures) {
        Ours& ours = figure.*setting.column;
        for (const Shown& shown : kShown)
            if (shown.row == figure.row && figure.claim.starts_with(shown.claim)) {
                fmt::print(stderr, "gantry reproduce: row {} by processes ...\n", figure.row);
                ours = shown.ratio(setting);
                if (ours.value) ours.story = shown.setting;
            }
        for (const NotShown& not_shown : kNotShown)
            if (not_shown.row == figure.row && !ours.value && ours.reason.empty()) {
                ours.reason = not_shown.reason;
                ours.story = not_shown.story;
            }
    }
}

bool real_gpu() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    const auto count = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
    const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(library, "cuDeviceGetName"));
    int devices = 0;
    char words[128] = {};
    return init != nullptr && count != nullptr && name != nullptr && init(0) == 0 &&
           count(&devices) == 0 && devices > 0 && name(words, sizeof words, 0) == 0 &&
           !std::string_view(words).starts_with("Simulated");
}

fs::path simulator_beside(const fs::path& programs) {
    for (const char* each : {"../simgpu", "../libexec/gantry/simgpu", "../gantry/simgpu"})
        if (fs::exists(programs / each / "libcuda.so.1")) return fs::canonical(programs / each);
    return {};
}

void say(Evidence& evidence, Ours Figure::*column, const char* reason, const std::string& story) {
    for (Figure& figure : evidence.figures) {
        (figure.*column).reason = reason;
        (figure.*column).story = story;
    }
}

}  // namespace

void add_process_figures(Evidence& evidence, const std::string& folder, int scale) {
    const fs::path programs(folder);
    if (!fs::exists(programs / "gantry-bench") || !fs::exists(programs / "mpiexec")) {
        say(evidence, &Figure::processes, "not installed", "there is no gantry-bench in " + folder);
        say(evidence, &Figure::gpu, "not installed", "");
        return;
    }
    const fs::path simulator = simulator_beside(programs);
    if (simulator.empty()) {
        say(evidence, &Figure::processes, "not installed",
            "there is no simulated GPU beside " + folder);
    } else {
        const auto simulated = [&](const char* machine, int devices, int slower) {
            return Place{
                programs,
                fmt::format(
                    "LD_LIBRARY_PATH='{}' SIMGPU=machine={},dev={},scale={},run=reproduce-{} "
                    "GANTRY_MACHINE={}",
                    simulator.string(), machine, devices, slower, machine, machine)};
        };
        fill(evidence, {simulated("c2050-qdr", 8, scale).with("GANTRY_IPC=off"),
                        simulated("c2050-qdr", 8, std::max(1, scale / 4)).with("GANTRY_IPC=off"),
                        simulated("h200", 2, scale)});
    }
    if (!real_gpu()) {
        say(evidence, &Figure::gpu, "no GPU", "");
        return;
    }
    const Place real{programs, ""};
    fill(evidence, {real, real, real, "256 256 256 --steps 60", &Figure::gpu});
}

}  // namespace gantry::reproduce
