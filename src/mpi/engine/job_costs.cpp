// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/job_costs.hpp"

#include "mpi/engine/engine.hpp"
#include "plan/coll_facts.hpp"

#include <unistd.h>

namespace gantry::mpi {

plan::CollFacts job_costs(const Parts& parts) {
    plan::CollFacts facts;
    if (!parts.config->machine.empty()) {
        // A description that does not load is the device's to complain about.
        Result<model::Machine> machine = model::load(parts.config->machine);
        if (machine.ok()) facts = plan::coll_facts_of(*machine);
    } else {
        for (const auto& transport : parts.transports) {
            const transport::PeerFacts way = transport->facts(parts.job->rank());
            if (way.self || way.shared_memory) continue;
            facts.between = plan::coll_way_of(way);
            facts.network_reaches_devices = way.device_memory;
        }
    }
    facts.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    return facts;
}

}  // namespace gantry::mpi
