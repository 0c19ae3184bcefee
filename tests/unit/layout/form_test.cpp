// SPDX-License-Identifier: BSD-3-Clause
//
// Forms (layout/form.hpp): what is regular is described in constant memory, whatever its counts, and
// what has no rule takes what its description takes.
#include "layout/layout.hpp"
#include "layout/rows.hpp"
#include "listed_blocks.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace gantry::layout {
namespace {

constexpr Bytes kMany = 3'000'000'000;

FormPtr run(Bytes bytes) {
    FormBuilder builder;
    builder.add_run(0, bytes);
    return builder.finish();
}

FormPtr shifted(std::ptrdiff_t offset, const FormPtr& form) {
    FormBuilder builder;
    builder.add(offset, form);
    return builder.finish();
}

// Parts of a form and of what is in it, each form once.
std::size_t parts_in(const FormPtr& form, std::set<const Form*>& seen) {
    if (form == nullptr || !seen.insert(form.get()).second) return 0;
    std::size_t parts = form->parts.size();
    for (const Part& part : form->parts)
        parts += parts_in(part.inner, seen);
    return parts;
}
std::size_t parts_in(const FormPtr& form) {
    std::set<const Form*> seen;
    return parts_in(form, seen);
}

TEST(Form, OfRunsWithoutGapsIsOneRun) {
    const FormPtr form = repeated(repeated(run(4), kMany, 4), 5, 4 * kMany);
    ASSERT_EQ(form->parts.size(), 1u);
    EXPECT_TRUE(form->one_run());
    EXPECT_EQ(form->size, 20 * kMany);
}

TEST(Form, OfAVectorIsOnePartWhateverItsCount) {
    for (const Bytes count : {Bytes{9}, Bytes{1000}, kMany}) {
        const FormPtr form = repeated(run(1), count, 2);
        EXPECT_EQ(parts_in(form), 1u);
        EXPECT_EQ(form->runs, count);
        EXPECT_EQ(form->span.high, static_cast<std::ptrdiff_t>(2 * count - 1));
    }
}

// A face across the rows of a cube: all its cells are equally far apart.
TEST(Form, OfTwoLevelsThatGoOnIsOneLevel) {
    const FormPtr column = repeated(run(8), 1000, 8000);
    const FormPtr face = repeated(column, 1000, 8'000'000);
    ASSERT_EQ(face->parts.size(), 1u);
    EXPECT_EQ(face->parts[0].count, 1'000'000u);
    EXPECT_EQ(face->parts[0].inner, nullptr);
}

TEST(Form, OfABoxHasAFormForEachDimension) {
    const FormPtr rows = repeated(run(7984), 998, 8000);
    const FormPtr box = shifted(8'008'008, repeated(rows, 998, 8'000'000));
    EXPECT_EQ(parts_in(box), 2u);
    EXPECT_EQ(box->runs, 998u * 998u);
    EXPECT_EQ(box->span.low, 8'008'008);
}

TEST(Form, OfManyStructuresDescribesOne) {
    FormBuilder members;
    members.add_run(4, 4);
    members.add_run(0, 2);
    const FormPtr all = repeated(members.finish(), kMany, 8);
    EXPECT_EQ(parts_in(all), 3u);
    EXPECT_EQ(all->size, 6 * kMany);
}

TEST(Form, OfRegularDistancesInAListIsOnePart) {
    FormBuilder builder;
    for (std::ptrdiff_t i = 0; i < 1000; ++i)
        builder.add_run(24 * i, 8);
    EXPECT_EQ(parts_in(builder.finish()), 1u);
}

TEST(Form, OfVectorsAtAnyPlaceTakesAPartForEach) {
    std::mt19937 dice(1);
    FormBuilder builder;
    std::ptrdiff_t at = 0;
    const FormPtr column = repeated(run(8), 100'000, 800);
    for (int i = 0; i < 100; ++i)
        builder.add(at += 8 * (1 + static_cast<std::ptrdiff_t>(dice() % 97)), column);
    EXPECT_LE(parts_in(builder.finish()), 101u);
}

// Runs that touch are one, also where rows were seen in them before.
TEST(Form, MergesRunsThatTouch) {
    FormBuilder builder;
    for (const std::ptrdiff_t at : {0, 2, 3, 5, 6, 8, 9})
        builder.add_run(at, 1);
    const Layout layout(builder.finish(), 10);
    EXPECT_EQ(blocks_of(layout), (std::vector<Block>{{0, 1}, {2, 2}, {5, 2}, {8, 2}}));
    EXPECT_EQ(layout.form->runs, 4u);
    EXPECT_EQ(layout.form->parts.size(), 2u);
}

TEST(Form, TakenOverWholeIsTheSame) {
    FormBuilder list;
    std::mt19937 dice(2);
    std::ptrdiff_t at = 0;
    for (int i = 0; i < 1000; ++i)
        list.add_run(at += 9 + static_cast<std::ptrdiff_t>(dice() % 13), 8);
    const FormPtr form = list.finish();
    EXPECT_EQ(shifted(0, form), form);
    EXPECT_EQ(parts_in(shifted(16, form)), form->parts.size() + 1);
}

TEST(Form, WithoutDataIsNone) {
    EXPECT_EQ(repeated(nullptr, kMany, 4), nullptr);
    EXPECT_EQ(repeated(run(8), 0, 4), nullptr);
    EXPECT_EQ(FormBuilder().finish(), nullptr);
    EXPECT_TRUE(Layout(nullptr, 8).contiguous());
}

// Going through the last bytes of what has a billion runs takes a few steps.
TEST(Form, IsEnteredAnywhere) {
    const FormPtr rows = repeated(run(8), 100'000, 24);
    FormBuilder two;
    two.add(0, rows);
    two.add(8, repeated(run(4), 50'000, 48));
    const Layout layout(repeated(two.finish(), 30'000, 10'000'000), 1);
    const Bytes bytes = layout.size;
    RowWalk walk(layout, bytes - 14, 14);
    Rows found;
    ASSERT_TRUE(walk.next(found));
    EXPECT_EQ(found.width, 2u);
    ASSERT_TRUE(walk.next(found));
    EXPECT_EQ(found, (Rows{29'999 * std::ptrdiff_t{10'000'000} + 8 + 48 * 49'997, 2, 4, 3, 48, 4}));
    EXPECT_FALSE(walk.next(found));
    std::byte packed[14] = {};
    std::vector<std::byte> memory(48 * 4);
    memory[memory.size() - 1] = std::byte{7};
    const std::ptrdiff_t last_run = found.offset + 2 * 48;
    pack(layout, memory.data() + memory.size() - 4 - last_run, bytes - 4, 4, packed);
    EXPECT_EQ(packed[3], std::byte{7});
}

}  // namespace
}  // namespace gantry::layout
