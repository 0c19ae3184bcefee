// SPDX-License-Identifier: BSD-3-Clause
#include "job/job.hpp"

#include "base/log.hpp"
#include "job/pmi.hpp"
#include "job/pmix.hpp"
#include "job/rendezvous.hpp"
#include "job/singleton.hpp"

namespace gantry::job {

int Job::local_rank() const {
    const std::vector<int>& node = nodes();
    const auto self = static_cast<std::size_t>(rank());
    int before = 0;
    for (std::size_t other = 0; other < self; ++other)
        before += node[other] == node[self];
    return before;
}

int Job::local_size() const {
    const std::vector<int>& node = nodes();
    const auto self = static_cast<std::size_t>(rank());
    int together = 0;
    for (int other : node)
        together += other == node[self];
    return together;
}

bool Job::watch_deaths(std::uint64_t) {
    return false;
}

Task<Status> Job::spawn(Executor&, SpawnOrder) {
    co_return failure(MPI_ERR_SPAWN,
                      "the launcher of this job ({}) starts no further processes for it. Gantry's "
                      "mpiexec and launchers with PMI-1 do",
                      launcher());
}

namespace {

Status no_names(const char* launcher) {
    return failure(MPI_ERR_SERVICE,
                   "the launcher of this job ({}) keeps no names. Start it by Gantry's mpiexec, or "
                   "hand the port to the other program in another way",
                   launcher);
}

}  // namespace

Task<Status> Job::publish_name(Executor&, std::string, std::string) {
    co_return no_names(launcher());
}

Task<Status> Job::unpublish_name(Executor&, std::string) {
    co_return no_names(launcher());
}

Task<Status> Job::lookup_name(Executor&, std::string, std::string*) {
    co_return no_names(launcher());
}

namespace {

// Two launchers in one environment: one was started by a rank of the other, and only the inner one
// is right. Which that is cannot be seen, so it is said when it matters.
void warn_of_contradictions() {
    const auto pmix = config::environment("PMIX_RANK");
    const auto pmi = config::environment("PMI_RANK");
    const auto own = config::environment("GANTRY_RANK");
    if (pmix && pmi && *pmix != *pmi)
        log::warn(
            "job: PMIX_RANK is {} and PMI_RANK is {}: one launcher runs inside another. PMIx "
            "is taken; GANTRY_LAUNCHER=pmi chooses the other one",
            *pmix, *pmi);
    const auto& launched = pmix ? pmix : pmi;
    if (own && launched && *own != *launched)
        log::warn(
            "job: GANTRY_RANK is {}, but a launcher says that this is rank {}. The launcher "
            "is believed; GANTRY_LAUNCHER=rendezvous chooses GANTRY_RENDEZVOUS",
            *own, *launched);
}

using Found = Result<std::unique_ptr<Job>>;

Found at_meeting(const Result<std::optional<Meeting>>& meeting) {
    GANTRY_TRY(meeting.status());
    if (!meeting.value()) return std::unique_ptr<Job>();
    return meet(*meeting.value());
}

Found find(std::string_view launcher, const config::Config& config) {
    if (launcher == "pmix") return discover_pmix(config.pmix_library);
    if (launcher == "pmi") return discover_pmi();
    if (launcher == "rendezvous") return at_meeting(explicit_meeting(config));
    if (launcher == "slurm") return at_meeting(slurm_meeting(config));
    return std::unique_ptr<Job>(std::make_unique<Singleton>());
}

// What the user typed (rendezvous) comes before what Slurm leaves in every environment.
constexpr std::string_view kOrder[] = {"pmix", "pmi", "rendezvous", "slurm", "none"};

}  // namespace

Result<std::unique_ptr<Job>> discover(const config::Config& config) {
    if (config.launcher != "auto") {
        Found found = find(config.launcher, config);
        if (found.ok() && found.value() == nullptr)
            return failure(MPI_ERR_OTHER,
                           "GANTRY_LAUNCHER is {}, but the environment shows no such launcher. "
                           "Start the program by it, or unset the variable",
                           config.launcher);
        return found;
    }
    warn_of_contradictions();
    for (const std::string_view launcher : kOrder) {
        Found found = find(launcher, config);
        // A PMIx job whose library is not here may have PMI-1, too.
        if (!found.ok() && launcher == "pmix" && config::environment("PMI_FD")) {
            log::info("job: {}; PMI-1 is there and is taken", found.status().text());
            continue;
        }
        if (!found.ok() || found.value() != nullptr) return found;
    }
    return failure(MPI_ERR_INTERN, "no launcher was tried");
}

}  // namespace gantry::job
