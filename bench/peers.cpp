// SPDX-License-Identifier: BSD-3-Clause
//
// The peers of `--peers DIR`: DIR has impi/, ompi/ and ucx/ side by side, as a
// pack of their wheels lays them out (docs/user/benchmarks.md). Intel MPI has the MPI 5.0 ABI and
// runs this very program. Open MPI has its own: the program runs over `libmpi_abi.so.1` of
// ompi_abi.cpp, which hands each call on. UCX is measured by its own ucx_perftest, a loop without
// checks. With GANTRY_IPC=off all of them do without CUDA IPC, as we do: Intel MPI by its switch
// I_MPI_OFFLOAD_IPC, UCX, and Open MPI over it, by leaving cuda_ipc out of UCX's transports.
#include "side_by_side.hpp"

#include "child.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;
using Environment = std::vector<std::pair<std::string, std::string>>;

std::string two(const Options& options) {
    return std::to_string(2 * options.pairs);
}

// UCX's "cuda" is cuda_copy, cuda_ipc and gdr_copy.
std::string ucx_transports(bool devices) {
    if (!devices) return "sm,self";
    return without_ipc() ? "cuda_copy,sm,self" : "cuda,sm,self";
}

// They are the machine's, and measured in our own run.
Options without_floors(Options options) {
    options.floors = false;
    return options;
}

Contender intel(const std::string& at, const Options& options) {
    const bool devices = uses_devices(options);
    Environment environment = {{"I_MPI_ROOT", at},
                               {"LD_LIBRARY_PATH", at + "/lib:" + inherited("LD_LIBRARY_PATH")},
                               {"FI_PROVIDER_PATH", at + "/lib"},
                               {"I_MPI_FABRICS", "shm"},
                               {"I_MPI_HYDRA_BOOTSTRAP", "fork"},
                               {"I_MPI_OFFLOAD", devices ? "1" : "0"}};
    if (devices && without_ipc()) environment.emplace_back("I_MPI_OFFLOAD_IPC", "0");
    return {"impi",
            [=](int seconds) {
                Options seen = without_floors(options);
                // Its launcher gives each rank a GPU of its own, which is that rank's first.
                if (devices && options.gpus.size() == 2) {
                    if (options.gpus[0] == options.gpus[1]) {
                        Told told;
                        told.why_not = "its launcher gives each rank a GPU of its own";
                        return told;
                    }
                    seen.gpus = {0, 0};
                }
                return run_gantry_bench("impi", {at + "/bin/mpiexec.hydra", "-n", two(options)},
                                        environment, seen, seconds);
            },
            false};
}

Contender open_mpi(const std::string& folder, const std::string& adapter, const Options& options) {
    const std::string at = folder + "/ompi";
    Environment environment = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OPAL_PREFIX", at},
        {"PMIX_PREFIX", at},
        {"PRTE_PREFIX", at},
        {"UCX_MODULE_DIR", folder + "/ucx/lib/ucx"},
        {"UCX_TLS", ucx_transports(uses_devices(options))},
        {"UCX_WARN_UNUSED_ENV_VARS", "n"},
        {"LD_LIBRARY_PATH", adapter + ":" + at + "/lib:" + folder + "/ucx/lib:" + folder +
                                "/libucx_cu13.libs:" + inherited("LD_LIBRARY_PATH")}};
    const std::vector<std::string> launcher = {at + "/bin/mpiexec",
                                               "-n",
                                               two(options),
                                               "--oversubscribe",
                                               "--mca",
                                               "pml",
                                               "ucx",
                                               "--mca",
                                               "osc",
                                               "ucx",
                                               "--mca",
                                               "opal_common_ucx_tls",
                                               "any",
                                               "--mca",
                                               "opal_common_ucx_devices",
                                               "any"};
    return {"ompi",
            [=](int seconds) {
                return run_gantry_bench("ompi", launcher, environment, without_floors(options),
                                        seconds);
            },
            false};
}

// One line of ucx_perftest: iterations, median, average and overall us, average and overall MB/s
// (of 2^20 bytes), average and overall messages/s.
std::optional<std::vector<double>> final_line(const std::string& output) {
    const auto at = output.find("Final:");
    if (at == std::string::npos) return std::nullopt;
    std::istringstream words(output.substr(at + 6, output.find('\n', at) - at - 6));
    std::vector<double> numbers;
    for (double number = 0; words >> number;)
        numbers.push_back(number);
    if (numbers.size() < 8) return std::nullopt;
    return numbers;
}

// The test of ucx_perftest that does the same as nearly as any, and the number of its line.
struct UcxTest {
    const char* name;
    std::size_t column;  // 1: us, the median; 5: MB/s; 7: operations a second
    bool in_flight;      // several at once
};
std::optional<UcxTest> ucx_test(const Options& options) {
    constexpr std::size_t kTime = 1, kRate = 7, kBandwidth = 5;
    const Measure measured = options.measure;
    switch (options.benchmark) {
        case Benchmark::latency: return UcxTest{"tag_lat", kTime, true};
        case Benchmark::bw: return UcxTest{"tag_bw", kBandwidth, true};
        case Benchmark::mr: return UcxTest{"tag_bw", kRate, true};
        case Benchmark::put:
        case Benchmark::get: {
            const bool put = options.benchmark == Benchmark::put;
            if (measured == Measure::latency)
                return UcxTest{put ? "ucp_put_lat" : "ucp_get", kTime, false};
            if (measured == Measure::bibw) return std::nullopt;
            return UcxTest{put ? "ucp_put_bw" : "ucp_get",
                           measured == Measure::bw ? kBandwidth : kRate, true};
        }
        case Benchmark::fetch_op:
        case Benchmark::cas: {
            const char* test = options.benchmark == Benchmark::cas ? "ucp_cswap" : "ucp_fadd";
            if (measured == Measure::latency) return UcxTest{test, kTime, false};
            return UcxTest{test, kRate, true};
        }
        default: return std::nullopt;
    }
}

Told run_ucx(const std::string& folder, const Options& options, int seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    Told told;
    const Placement placement = options.placement[0];
    const bool comparable = options.placement[1] == placement && options.pairs == 1 &&
                            (placement == Placement::device || placement == Placement::host);
    const std::optional<UcxTest> test = ucx_test(options);
    if (!comparable || !test || options.busy) {
        told.why_not =
            "ucx_perftest has no such test (of one pair, D D or H H: latency, bw, mr, and put, "
            "get, "
            "fetch_op and cas but for bibw)";
        return told;
    }
    Environment environment = {
        {"UCX_MODULE_DIR", folder + "/ucx/lib/ucx"},
        {"UCX_TLS", ucx_transports(placement == Placement::device)},
        {"UCX_WARN_UNUSED_ENV_VARS", "n"},
        {"LD_LIBRARY_PATH",
         folder + "/ucx/lib:" + folder + "/libucx_cu13.libs:" + inherited("LD_LIBRARY_PATH")}};
    told.columns = {"ucx"};
    constexpr double kMegabyte = 1.048576;
    const bool in_megabytes = test->column == 5;
    int port = 13000 + static_cast<int>(getpid() % 20000);
    for (const Bytes bytes : options.sizes) {
        if (bytes == 0) continue;
        const int in_flight = !test->in_flight ? 1 : options.window > 0 ? options.window : 32;
        Command server{{folder + "/ucx/bin/ucx_perftest", "-t", test->name, "-m",
                        placement == Placement::device ? "cuda" : "host", "-s",
                        std::to_string(bytes), "-n", bytes > 100000 ? "200" : "5000", "-w", "50",
                        "-O", std::to_string(in_flight), "-p", std::to_string(++port)},
                       environment};
        Command client = server;
        client.words.push_back("127.0.0.1");
        if (options.gpus.size() == 2) {
            server.environment.emplace_back("CUDA_VISIBLE_DEVICES",
                                            std::to_string(options.gpus[0]));
            client.environment.emplace_back("CUDA_VISIBLE_DEVICES",
                                            std::to_string(options.gpus[1]));
        }
        const Background serving(server);
        // It does not say when it listens: the client is started until it is let in.
        std::optional<std::vector<double>> numbers;
        for (int attempt = 0; attempt < 40 && !numbers && Clock::now() < end; ++attempt) {
            numbers = final_line(run(client, std::min(30, seconds)).output);
            if (!numbers) usleep(100000);  // leaves the server a processor to start on
        }
        if (!numbers) {
            told.why_not = fmt::format("ucx_perftest of {} bytes gave no result", bytes);
            return told;
        }
        told.values["ucx"][bytes] = (*numbers)[test->column] * (in_megabytes ? kMegabyte : 1);
    }
    told.unit = test->column == 1 ? "us" : in_megabytes ? "MB/s" : "operations/s";
    return told;
}

// The folder of the adapter, in a prefix or in a build.
std::string adapter_folder() {
    for (const char* place : {"/../libexec/gantry/ompi-abi", "/../bench/ompi-abi"})
        if (fs::exists(program_folder() + place + "/libmpi_abi.so.1"))
            return fs::canonical(program_folder() + place).string();
    return {};
}

}  // namespace

std::string inherited(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr ? value : "";
}

bool without_ipc() {
    const std::string ipc = inherited("GANTRY_IPC");
    return ipc == "off" || ipc == "0" || ipc == "no" || ipc == "false";
}

bool uses_devices(const Options& options) {
    return options.placement[0] != Placement::host || options.placement[1] != Placement::host;
}

std::vector<Contender> peers_in(const std::string& given, const Options& options) {
    std::error_code none;
    const std::string folder = fs::weakly_canonical(given, none).string();
    std::vector<Contender> found;
    if (fs::exists(folder + "/impi/bin/mpiexec.hydra"))
        found.push_back(intel(folder + "/impi", options));
    if (fs::exists(folder + "/ompi/bin/mpiexec")) {
        const std::string adapter = adapter_folder();
        if (adapter.empty())
            found.push_back({"ompi",
                             [](int) {
                                 Told told;
                                 told.why_not =
                                     "libexec/gantry/ompi-abi is not installed beside "
                                     "this program";
                                 return told;
                             },
                             true});
        else
            found.push_back(open_mpi(folder, adapter, options));
    }
    if (fs::exists(folder + "/ucx/bin/ucx_perftest"))
        found.push_back(
            {"ucx", [folder, options](int seconds) { return run_ucx(folder, options, seconds); },
             true});
    if (found.empty()) {
        fmt::print(stderr,
                   "gantry-bench: --peers {}: there is no impi/bin/mpiexec.hydra, "
                   "ompi/bin/mpiexec or ucx/bin/ucx_perftest in it; name a folder with "
                   "installations of these under these names\n",
                   given);
        std::exit(1);
    }
    return found;
}

}  // namespace gantry::bench
