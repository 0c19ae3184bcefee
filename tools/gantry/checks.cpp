// SPDX-License-Identifier: BSD-3-Clause
#include "checks.hpp"

#include "base/process_memory.hpp"
#include "device/cuda/expected_gpu.hpp"
#include "device/cuda/gdr_library.hpp"
#include "plan/text.hpp"
#include "transport/ucx/home_rail.hpp"
#include "transport/ucx/rail.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace gantry::tool {
namespace {

// The minor version of UCX from which on a keepalive does no harm over cards.
constexpr unsigned kDropsConnectingMessages = 14;

constexpr const char* kSysfs = "/sys";

enum class Wire : std::uint8_t { tcp_only, cards };

Check processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    Check check{"processors", Verdict::good, fmt::format("{} usable by this process", usable), ""};
    if (usable == 1) {
        check.verdict = Verdict::note;
        check.remedy =
            "ranks of one machine will take turns; they yield at once, so this works but is slow";
    }
    return check;
}

Check shared_memory() {
    const int file = memfd_create("gantry-doctor", MFD_CLOEXEC);
    struct statvfs space {};
    const bool known = statvfs("/dev/shm", &space) == 0;
    const Bytes free =
        known ? static_cast<Bytes>(space.f_bavail) * static_cast<Bytes>(space.f_frsize) : 0;
    if (file >= 0) {
        close(file);
        return {"shared memory", Verdict::good,
                known ? fmt::format("memfd works; /dev/shm has {} free", plan::bytes_text(free))
                      : "memfd works",
                ""};
    }
    // Each rank reserves its rings and pools there: about 32 MiB with the defaults.
    constexpr Bytes kComfortable = 64 * kMiB;
    if (known && free >= kComfortable)
        return {"shared memory", Verdict::note,
                fmt::format("no memfd ({}); /dev/shm has {} free", std::strerror(errno),
                            plan::bytes_text(free)),
                ""};
    return {
        "shared memory", Verdict::bad,
        fmt::format("no memfd, and /dev/shm has {} free", plan::bytes_text(free)),
        "give the container more: docker run --shm-size=1g, or mount a larger tmpfs on /dev/shm"};
}

Check locked_memory() {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY) return {"locked memory", Verdict::good, "no limit", ""};
    std::error_code ignored;
    const bool verbs = !std::filesystem::is_empty("/sys/class/infiniband", ignored) && !ignored;
    return {"locked memory", verbs ? Verdict::bad : Verdict::note,
            fmt::format("limited to {}{}", plan::bytes_text(limit.rlim_cur),
                        verbs ? ", and this machine has InfiniBand" : ""),
            "matters for InfiniBand only: ulimit -l unlimited (in /etc/security/limits.conf: * - "
            "memlock unlimited; for slurmd: LimitMEMLOCK=infinity in its unit)"};
}

// A rank holds a few descriptors per peer of its machine, and one per connection.
Check open_files() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const std::string found = fmt::format("{} allowed, at most {}", limit.rlim_cur, limit.rlim_max);
    if (limit.rlim_cur >= 1024) return {"open files", Verdict::good, found, ""};
    return {"open files", limit.rlim_cur < 64 ? Verdict::bad : Verdict::note, found,
            "ulimit -n 4096 before jobs with many ranks on one machine"};
}

Check library() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    const std::filesystem::path self =
        length > 0 ? std::filesystem::path(std::string(path, static_cast<std::size_t>(length)))
                   : std::filesystem::path{};
    const std::filesystem::path ours = self.parent_path().parent_path() / "lib" / "libmpi_abi.so.1";
    if (std::filesystem::exists(ours)) return {"MPI library", Verdict::good, ours.string(), ""};
    return {"MPI library", Verdict::note, "libmpi_abi.so.1 is not in ../lib beside this program",
            "build or install the whole of Gantry"};
}

// Whether cards can register device memory, as far as that shows without a GPU at hand; MPI_Send
// finds out by trying.
Check gpudirect(const config::Config& config, const transport::ucx::Library& ucx, Wire wire) {
    if (config.gpudirect == "off")
        return {"GPUDirect", Verdict::note,
                "GANTRY_GPUDIRECT=off: device memory goes through pinned host memory",
                "unset it where cards reach device memory"};
    const bool asked = config.gpudirect == "on";
    const Verdict without = asked ? Verdict::bad : Verdict::note;
    if (wire == Wire::tcp_only)
        return {"GPUDirect", without,
                "UCX has TCP only, which registers no device memory: it goes through pinned host "
                "memory",
                asked ? "unset GANTRY_GPUDIRECT, or see that UCX finds an InfiniBand or RoCE card "
                        "(line network)"
                      : ""};
    std::error_code ignored;
    for (const char* module : {"nvidia_peermem", "nv_peer_mem"})
        if (std::filesystem::exists(std::string("/sys/module/") + module, ignored))
            return {"GPUDirect", Verdict::good,
                    fmt::format("the kernel module {} lets cards register device memory", module),
                    ""};
    const std::filesystem::path modules = std::filesystem::path(ucx.path()).parent_path() / "ucx";
    if (!std::filesystem::exists(modules / "libuct_cuda.so.0", ignored))
        return {"GPUDirect", without,
                fmt::format("no kernel module nvidia_peermem, and no CUDA module of UCX in {}",
                            modules.string()),
                "modprobe nvidia-peermem (it comes with NVIDIA's driver), or give GANTRY_UCX a UCX "
                "that has both verbs and CUDA modules"};
    if (!asked)
        return {"GPUDirect", Verdict::note,
                fmt::format("no kernel module nvidia_peermem; UCX has a CUDA module in {}",
                            modules.string()),
                "modprobe nvidia-peermem, or GANTRY_GPUDIRECT=on, which registers by dma-buf "
                "(Linux 5.12 and NVIDIA's open kernel modules)"};
    return {"GPUDirect", Verdict::good,
            fmt::format("GANTRY_GPUDIRECT=on: by dma-buf, with the CUDA module of UCX in {}",
                        modules.string()),
            ""};
}

// Whether the processor could read and write device memory itself.
Check gdrcopy() {
    Result<config::Config> config = config::from_environment();
    if (config.ok() && config->gdrcopy == "off")
        return {"GDRCopy", Verdict::note,
                "GANTRY_GDRCOPY=off: small device messages go by copy engine", ""};
    device::cuda::GdrLibrary library;
    if (library.ready())
        return {"GDRCopy", Verdict::good,
                "libgdrapi and its kernel module answer: small device messages may go by processor",
                ""};
    return {"GDRCopy", Verdict::note, library.refusal(),
            "only small device messages would gain: install gdrcopy and load its module gdrdrv"};
}

// "under one PCI switch with GPU 0000:18:00.0: rc_mlx5/mlx5_0:1".
std::string nearest_to(const transport::ucx::Standpoint& from,
                       const std::vector<transport::ucx::Rail>& rails) {
    const transport::ucx::Distances distances =
        transport::ucx::distances_to(rails, from.place, kSysfs);
    const transport::ucx::Distance least = *std::ranges::min_element(distances);
    std::string names;
    for (std::size_t rail = 0; rail < rails.size(); ++rail)
        if (distances[rail] == least)
            names += fmt::format("{} {}", names.empty() ? ":" : ",",
                                 fmt::join(rails[rail].devices(), " "));
    return transport::ucx::words(least, from.name) + names;
}

// The rails of a job, where each card is, and which are nearest to each GPU (to this process, without one).
Check rails_check(const std::vector<transport::ucx::Rail>& rails, const config::Config& config) {
    if (rails.size() < 2)
        return {"rails", Verdict::note,
                "one: large messages do not use several ports, and one that fails ends the job",
                "name the ports of this machine in GANTRY_RAILS, with commas between them"};
    std::string text;
    for (const transport::ucx::Rail& rail : rails) {
        const std::vector<std::string> devices = rail.devices();
        text += fmt::format("{}{}", text.empty() ? "" : "; ", fmt::join(devices, " "));
        const int node =
            devices.empty() ? -1 : transport::ucx::place_of_card(devices.front(), kSysfs).numa_node;
        if (node >= 0) text += fmt::format(" at NUMA node {}", node);
    }
    text += fmt::format("; policy {}", config.rail_policy);
    const std::vector<std::string> gpus = device::cuda::gpus_of_machine("/proc");
    for (const std::string& gpu : gpus)
        text += "; " + nearest_to(transport::ucx::standpoint_of({gpu, true}, kSysfs), rails);
    if (gpus.empty()) text += "; " + nearest_to(transport::ucx::standpoint_of({}, kSysfs), rails);
    return {"rails", Verdict::good, text, ""};
}

std::vector<Check> network() {
    const Result<config::Config> read = config::from_environment();
    const config::Config config = read.ok() ? read.value() : config::Config{};
    const transport::ucx::QuietStart quiet(config);
    const auto library = transport::ucx::Library::load(config);
    if (!library.ok())
        return {{"network", config.ucx.empty() ? Verdict::note : Verdict::bad,
                 std::string(library.status().text()),
                 "only jobs on several machines need it: apt-get install libucx0, or pip install "
                 "libucx-cu13; GANTRY_UCX names a library that lies elsewhere"}};
    const transport::ucx::Library& ucx = *library.value();
    const std::string found = fmt::format("UCX {} in {}", ucx.version().text(), ucx.path());
    const auto rails = transport::ucx::open_rails(ucx, config);
    if (!rails.ok())
        return {{"network", Verdict::bad, fmt::format("{}: {}", found, rails.status().text()),
                 "look at UCX_TLS, UCX_NET_DEVICES and GANTRY_RAILS; `ucx_info -d` lists what UCX "
                 "can use"}};
    std::string devices;
    bool tcp = true;
    for (const transport::ucx::Rail& rail : rails.value()) {
        tcp = tcp && rail.only_tcp();
        for (const std::string& device : rail.devices())
            devices += (devices.empty() ? "" : ", ") + device;
    }
    if (devices.empty())
        return {{"network", Verdict::note, found + " opens no device that leads to other machines",
                 "jobs on one machine need none; for more, look at UCX_TLS and UCX_NET_DEVICES"}};
    Check check{"network", Verdict::good, fmt::format("{}: {}", found, devices), ""};
    if (tcp && std::filesystem::exists("/sys/class/infiniband")) {
        check.verdict = Verdict::note;
        check.remedy =
            "only TCP, though the machine has InfiniBand: this UCX lacks its verbs module (the "
            "wheel has none); install the distribution's UCX, or unset UCX_TLS";
    }
    if (!tcp && config::environment("UCX_KEEPALIVE_INTERVAL") &&
        ucx.version().minor < kDropsConnectingMessages) {
        check.verdict = Verdict::note;
        check.remedy =
            "unset UCX_KEEPALIVE_INTERVAL: with it this UCX ends a process whose card cannot reach "
            "a "
            "peer (docs/design/rails.md)";
    }
    return {check, rails_check(rails.value(), config),
            gpudirect(config, ucx, tcp ? Wire::tcp_only : Wire::cards)};
}

// Whether a process may read the memory of one that did not start it, as ranks of a node do: a child looks
// into this one. The errno of a refusal; -1: no process could be started.
int why_not_read() {
    const Probe probe = own_probe();
    const pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        std::uint64_t seen = 0;
        iovec there{reinterpret_cast<void*>(probe.address), sizeof seen}, here{&seen, sizeof seen};
        const int why = access_process(ProcessAccess::read, probe.process, {&there, 1}, {&here, 1});
        _exit(why == 0 && seen != probe.number ? ESRCH : why);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return EPERM;
    return WEXITSTATUS(status);
}

// Reads of another process's memory (large host messages of a node, one-sided operations), and descriptors
// taken from it, need this.
Check tracing() {
    const int why = why_not_read();
    if (why == 0)
        return {"process access", Verdict::good,
                "processes of one user may read each other's memory", ""};
    std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
    int scope = 0;
    const bool yama = static_cast<bool>(file >> scope) && scope != 0;
    return {"process access", Verdict::note,
            fmt::format("a process may not read another one's memory ({}){}",
                        why < 0 ? "none could be started" : std::strerror(why),
                        yama ? fmt::format("; yama ptrace_scope is {}", scope) : ""),
            "everything works; large host messages of a node are then always copied twice, and "
            "one-sided operations on memory of the program's own go by messages"};
}

}  // namespace

std::vector<Check> machine_checks() {
    std::vector<Check> checks = {library(),    processors(), shared_memory(), locked_memory(),
                                 open_files(), tracing(),    gdrcopy()};
    for (Check& check : network())
        checks.push_back(std::move(check));
    return checks;
}

}  // namespace gantry::tool
