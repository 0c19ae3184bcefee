// SPDX-License-Identifier: BSD-3-Clause
#include "job/job.hpp"

#include "base/log.hpp"
#include "job/pmi.hpp"
#include "job/pmix.hpp"
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

Result<std::unique_ptr<Job>> discover(const config::Config& config) {
    Result<std::unique_ptr<Job>> pmix = discover_pmix(config.pmix_library);
    if (!pmix.ok()) return pmix;
    if (pmix.value() != nullptr) return pmix;
    Result<std::unique_ptr<Job>> pmi = discover_pmi();
    if (!pmi.ok()) return pmi;
    if (pmi.value() != nullptr) return pmi;
    return std::unique_ptr<Job>(std::make_unique<Singleton>());
}

}  // namespace gantry::job
