// SPDX-License-Identifier: BSD-3-Clause
//
// One thing that `gantry doctor` looked at: what was found, whether that is good, and what to do if
// not.
#pragma once

#include "base/config.hpp"

#include <string>
#include <vector>

namespace gantry::tool {

enum class Verdict { good, note, bad };

struct Check {
    std::string subject;  // "driver"
    Verdict verdict = Verdict::good;
    std::string found;
    std::string remedy;  // empty when nothing needs to be done
};

// Processors, shared memory, limits, network engine.
std::vector<Check> machine_checks();
// Who started this process, and what can start jobs on several hosts.
std::vector<Check> launcher_checks();
// The CUDA driver and its devices. This initialises the driver: only a tool may.
std::vector<Check> device_checks(const config::Config& config);

}  // namespace gantry::tool
