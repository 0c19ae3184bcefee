// SPDX-License-Identifier: BSD-3-Clause
//
// What others see of an engine, and may change, while it runs: counters and parameters (MPI_T).
#include "mpi/engine/engine.hpp"

#include "base/log.hpp"
#include "mpi/engine/process.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

// Those that are read anew at each use, or that set_parameter() tells of.
constexpr std::string_view kMayChange[] = {"log", "explain", "explain_file", "eager_budget",
                                           "claim_wait"};

}  // namespace

bool may_change(std::string_view parameter) {
    return std::ranges::count(kMayChange, parameter) > 0;
}

Status Engine::set_parameter(std::string_view name, std::string_view value) {
    if (!may_change(name))
        return failure(MPI_T_ERR_CVAR_SET_NOT_NOW,
                       "the parameter {} was read when MPI started; write it before MPI_Init",
                       name);
    GANTRY_TRY(config::set(*parts_.config, name, value));
    if (const auto level = log::level_named(config().log)) log::set_level(*level);
    explain_.turn(config().explain || !config().explain_file.empty());
    return success();
}

Counters Engine::counters() const {
    Counters counters;
    BothWays of_communicators = process().traffic_of_freed;
    process().comms.for_each([&](const Comm& comm) { of_communicators.add(comm.traffic); });
    if (messenger_ != nullptr) messenger_->write(of_communicators, counters);
    const device::DriverUse device = parts_.device->driver_use();
    counters.driver_calls = device.for_the_program();
    counters.device_copies = device.copies;
    counters.kernel_launches = device.launches;
    counters.mappings_opened = device.mappings_opened;
    counters.mappings_open = device.mappings_open;
    counters.mapped_bytes = device.mapped;
    counters.host_pool_bytes = config().host_pool;
    counters.device_pool_bytes = config().device_pool;
    return counters;
}

void Engine::begin_peaks_anew() {
    if (messenger_ != nullptr) messenger_->begin_peaks_anew();
}

}  // namespace gantry::mpi
