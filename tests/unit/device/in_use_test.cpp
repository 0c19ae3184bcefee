// SPDX-License-Identifier: BSD-3-Clause
#include "device/in_use.hpp"

#include <gtest/gtest.h>

namespace gantry::device {
namespace {

constexpr std::uintptr_t kBase = 0x7000'0000;
constexpr Bytes kSize = 4096;

const void* at(std::uintptr_t address) {
    return reinterpret_cast<const void*>(address);
}

device::Location allocation(std::uint64_t id, std::uintptr_t base = kBase) {
    device::Location location;
    location.kind = device::MemoryKind::device;
    location.gpu = 0;
    location.base = base;
    location.size = kSize;
    location.buffer_id = id;
    return location;
}

TEST(InUse, AnAllocationIsKnownWhileAnOperationUsesIt) {
    InUse in_use;
    EXPECT_EQ(in_use.find(at(kBase), 1, 0), nullptr);
    const InUse::Hold first = in_use.hold(allocation(7), 0);
    const InUse::Hold second = in_use.hold(allocation(7), 0);
    ASSERT_NE(first, 0);
    EXPECT_EQ(in_use.find(at(kBase + 100), 8, 0)->buffer_id, 7u);
    in_use.release(first);
    ASSERT_NE(in_use.find(at(kBase + 100), 8, 0), nullptr);
    EXPECT_FALSE(in_use.empty());
    in_use.release(second);
    EXPECT_TRUE(in_use.empty());
    EXPECT_EQ(in_use.find(at(kBase + 100), 8, 0), nullptr);
}

TEST(InUse, WhatIsNotWhollyInsideIsAskedAbout) {
    InUse in_use;
    in_use.hold(allocation(7), 0);
    EXPECT_NE(in_use.find(at(kBase + kSize - 8), 8, 0), nullptr);
    EXPECT_EQ(in_use.find(at(kBase + kSize - 8), 9, 0), nullptr);
    EXPECT_EQ(in_use.find(at(kBase - 1), 8, 0), nullptr);
    EXPECT_EQ(in_use.find(at(kBase + kSize), 1, 0), nullptr);
}

TEST(InUse, AfterALossTheDeviceIsAskedAgain) {
    InUse in_use;
    const InUse::Hold before = in_use.hold(allocation(7), 0);
    EXPECT_EQ(in_use.find(at(kBase), 8, 1), nullptr);
    in_use.hold(allocation(7), 1);  // the device has just said so
    EXPECT_NE(in_use.find(at(kBase), 8, 1), nullptr);
    in_use.release(before);
    EXPECT_NE(in_use.find(at(kBase), 8, 1), nullptr);
}

TEST(InUse, HoldsAFewAllocationsAndNeverHostMemory) {
    InUse in_use;
    EXPECT_EQ(in_use.hold(device::Location{}, 0), 0);
    EXPECT_EQ(in_use.hold(allocation(0), 0), 0);  // a driver that names no buffers
    InUse::Hold held = 0;
    std::uint64_t id = 1;
    for (; (held = in_use.hold(allocation(id, kBase + id * kSize), 0)) != 0; ++id)
        EXPECT_EQ(in_use.find(at(kBase + id * kSize), 8, 0)->buffer_id, id);
    EXPECT_GE(id, 3u);
    EXPECT_EQ(in_use.find(at(kBase + id * kSize), 8, 0), nullptr);
    in_use.release(1);
    EXPECT_NE(in_use.hold(allocation(id, kBase + id * kSize), 0), 0);
}

}  // namespace
}  // namespace gantry::device
