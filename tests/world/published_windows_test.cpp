// SPDX-License-Identifier: BSD-3-Clause
//
// What the published table says of one-sided communication.
#include "world/harness/published_windows.hpp"

#include "world/harness/published.hpp"

#include <gtest/gtest.h>

namespace gantry::world {
namespace {

// 4 MiB from device to device between nodes at C2050/QDR rates.
TEST(PublishedWindows, PutAndGetAreAtLeast45PercentBelowCopyAndPut) {
    const PublishedWindows times = measure_windows();
    EXPECT_GE(PublishedTable::gain(times.put, times.copy_and_put), 0.45)
        << times.put << " ns and " << times.copy_and_put;
    EXPECT_GE(PublishedTable::gain(times.get, times.copy_and_get), 0.45)
        << times.get << " ns and " << times.copy_and_get;
}

TEST(PublishedWindows, OneSidedThroughMappingsIsFasterThanMessagesAtEverySize) {
    for (const OneSided& each : measure_one_sided()) {
        EXPECT_LT(each.put, each.message) << each.bytes << " bytes";
        EXPECT_LT(each.get, each.message) << each.bytes << " bytes";
    }
}

}  // namespace
}  // namespace gantry::world
