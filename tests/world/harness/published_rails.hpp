// SPDX-License-Identifier: BSD-3-Clause
//
// The published figures of several rails, measured again in the world at QDR rates: host messages
// between two nodes.
//
//   two ports    of one adapter, behind a bus that carries 2620 / 1910 of one port both ways
//   two adapters nothing is shared
#pragma once

#include "base/units.hpp"

namespace gantry::world {

struct PublishedRails {
    // One rail's time for the same, by two rails' time.
    double two_ports_both_ways = 0;
    double two_adapters_bandwidth = 0;
    // Two rails' time for one message of 4 MiB, by one rail's.
    double two_adapters_latency = 0;
};

inline constexpr double kPublishedPorts = 2620.0 / 1910.0;

PublishedRails measure_rails();

}  // namespace gantry::world
