// SPDX-License-Identifier: BSD-3-Clause
//
// The published rails: claims 15 and 16 of the table (`gantry reproduce` prints it).
#include "world/harness/published_rails.hpp"

#include <gtest/gtest.h>

namespace gantry::world {
namespace {

TEST(PublishedRails, TwoPortsGiveWhatTheirBusCarriesAndTwoAdaptersTwiceAsMuch) {
    const PublishedRails rails = measure_rails();
    EXPECT_NEAR(rails.two_ports_both_ways, kPublishedPorts, 0.03 * kPublishedPorts);
    EXPECT_GE(rails.two_adapters_bandwidth, 1.95);
    EXPECT_LE(rails.two_adapters_latency, 0.55);
}

}  // namespace
}  // namespace gantry::world
