// SPDX-License-Identifier: BSD-3-Clause
#include "base/slab.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gantry {
namespace {

struct Object {
    explicit Object(int v) : value(v) {}
    int value;
};

// Not inlined, as handles of a program are not: GCC would see that some of these addresses lie on
// no slot, and warn of what find() does only with those that do.
[[gnu::noinline]] Object* found(const Slab<Object>& slab, const void* address) {
    return slab.find(address);
}

TEST(Slab, FindsOnlyLiveObjects) {
    Slab<Object> slab;
    Object* object = slab.create(7);
    EXPECT_EQ(slab.find(object), object);
    slab.destroy(object);
    EXPECT_EQ(slab.find(object), nullptr);
}

TEST(Slab, JudgesForeignAndGarbagePointersWithoutTouchingThem) {
    Slab<Object> slab;
    Object* object = slab.create(1);
    int foreign = 0;
    EXPECT_EQ(found(slab, &foreign), nullptr);
    EXPECT_EQ(found(slab, reinterpret_cast<void*>(0x10)), nullptr);
    EXPECT_EQ(found(slab, reinterpret_cast<char*>(object) + 1), nullptr);
    EXPECT_EQ(found(slab, nullptr), nullptr);
}

TEST(Slab, FindsTheLiveObjectAroundAnAddress) {
    Slab<Object> slab;
    Object *one = slab.create(1), *other = slab.create(2);
    for (std::size_t byte = 0; byte < sizeof(Object); ++byte) {
        EXPECT_EQ(slab.around(reinterpret_cast<char*>(one) + byte), one);
        EXPECT_EQ(slab.around(reinterpret_cast<char*>(other) + byte), other);
    }
    int foreign = 0;
    EXPECT_EQ(slab.around(&foreign), nullptr);
    EXPECT_EQ(slab.around(nullptr), nullptr);
    slab.destroy(one);
    EXPECT_EQ(slab.around(one), nullptr);
}

TEST(Slab, ReusesAFreedSlotLast) {
    Slab<Object> slab;
    Object* first = slab.create(0);
    slab.destroy(first);
    std::set<Object*> next;
    for (int i = 0; i < 63; ++i)
        next.insert(slab.create(i));
    EXPECT_EQ(next.count(first), 0u)
        << "a stale handle should stay recognisable for as long as possible";
    EXPECT_EQ(slab.create(99), first);
}

TEST(Slab, IndexNamesTheObjectUntilItIsFreed) {
    Slab<Object> slab;
    for (int i = 0; i < 200; ++i) {
        Object* object = slab.create(i);
        ASSERT_EQ(slab.at(slab.index(object)), object);
    }
    Object* object = slab.create(0);
    const std::uint32_t index = slab.index(object);
    slab.destroy(object);
    EXPECT_EQ(slab.at(index), nullptr);
    EXPECT_EQ(slab.at(1'000'000), nullptr);
}

}  // namespace
}  // namespace gantry
