// SPDX-License-Identifier: BSD-3-Clause
//
// What the driver was asked for, in calls by their purpose, and what came of it.
#pragma once

#include "base/units.hpp"

#include <cstdint>

namespace gantry::device {

struct DriverUse {
    std::uint64_t probes = 0;    // is the driver initialised?
    std::uint64_t queries = 0;   // what is this pointer?
    std::uint64_t rechecks = 0;  // is exported memory still there? Every 10 ms, apart from messages
    std::uint64_t contexts = 0;  // push, pop, capture mode
    std::uint64_t copies = 0;
    std::uint64_t launches = 0;          // kernels
    std::uint64_t completions = 0;       // events recorded and looked at
    std::uint64_t synchronizations = 0;  // calls that wait for the GPU
    std::uint64_t setups = 0;            // streams, events, registrations, tables: once each
    std::uint64_t ipc = 0;
    std::uint64_t total() const {
        return probes + queries + rechecks + contexts + copies + launches + completions +
               synchronizations + setups + ipc;
    }
    // Without those made now and then, whatever the program does.
    std::uint64_t for_the_program() const { return total() - probes - rechecks; }

    // Peers' memory that was mapped here.
    std::uint64_t mappings_opened = 0, mappings_open = 0;
    Bytes mapped = 0;
};

}  // namespace gantry::device
