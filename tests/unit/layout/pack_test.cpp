// SPDX-License-Identifier: BSD-3-Clause
//
// Packing, rows and boxes against a plain model: random nests of what MPI's constructors make, whose
// type map is a list of bytes here.
#include "layout/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace gantry::layout {
namespace {

// A type as MPI defines it: the places of its data bytes, in order.
struct Model {
    std::vector<std::ptrdiff_t> places;
    FormPtr form;
    std::ptrdiff_t extent = 0;
};

class Dice {
  public:
    explicit Dice(unsigned seed) : engine_(seed) {}
    Bytes upto(Bytes most) { return std::uniform_int_distribution<Bytes>(0, most)(engine_); }
    std::ptrdiff_t between(std::ptrdiff_t low, std::ptrdiff_t high) {
        return std::uniform_int_distribution<std::ptrdiff_t>(low, high)(engine_);
    }

  private:
    std::mt19937 engine_;
};

void append(Model& all, const Model& one, std::ptrdiff_t offset) {
    for (const std::ptrdiff_t place : one.places)
        all.places.push_back(place + offset);
}

Model basic(Dice& dice) {
    constexpr Bytes kWidths[] = {1, 2, 3, 4, 7, 8, 12, 13, 16, 20, 40, 64, 70};
    const Bytes width = kWidths[dice.upto(12)];
    Model model;
    for (Bytes i = 0; i < width; ++i)
        model.places.push_back(static_cast<std::ptrdiff_t>(i));
    FormBuilder builder;
    builder.add_run(0, width);
    model.form = builder.finish();
    model.extent = static_cast<std::ptrdiff_t>(width);
    return model;
}

// Lower levels lie far apart, so that no byte is named twice.
Model nest(Dice& dice, const Model& inner) {
    const Bytes count = 1 + dice.upto(dice.upto(3) == 0 ? 19 : 4), length = 1 + dice.upto(2);
    std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(length) * inner.extent;
    if (dice.upto(2) > 0) stride += dice.between(0, 9);
    const bool down = dice.upto(5) == 0;
    Model model;
    const std::ptrdiff_t first = down ? static_cast<std::ptrdiff_t>(count - 1) * stride
                                 : dice.upto(2) == 0 ? 3
                                                     : 0;
    if (down) stride = -stride;
    for (Bytes i = 0; i < count; ++i)
        for (Bytes k = 0; k < length; ++k)
            append(model, inner,
                   first + static_cast<std::ptrdiff_t>(i) * stride +
                       static_cast<std::ptrdiff_t>(k) * inner.extent);
    FormBuilder builder;
    builder.add(first, repeated(inner.form, length, inner.extent), count, stride);
    model.form = builder.finish();
    model.extent = static_cast<std::ptrdiff_t>(count) * std::abs(stride) + first;
    if (dice.upto(2) == 0) model.extent += dice.between(0, 7);
    return model;
}

Model listed(Dice& dice, const Model& one, const Model& other) {
    const Bytes count = 1 + dice.upto(dice.upto(3) == 0 ? 30 : 5);
    const std::ptrdiff_t room = std::max(one.extent, other.extent) + dice.between(0, 5);
    std::vector<std::ptrdiff_t> places;
    for (Bytes i = 0; i < count; ++i)
        places.push_back(static_cast<std::ptrdiff_t>(i) * room);
    if (dice.upto(1) == 0) std::shuffle(places.begin(), places.end(), std::mt19937(count));
    Model model;
    FormBuilder builder;
    const Bytes mix = dice.upto(3);
    for (const std::ptrdiff_t place : places) {
        const Model& each = mix > 0 && dice.upto(mix) == 0 ? other : one;
        append(model, each, place);
        builder.add(place, each.form);
    }
    model.form = builder.finish();
    model.extent = static_cast<std::ptrdiff_t>(count) * room + dice.between(0, 3);
    return model;
}

Model any(Dice& dice, Bytes depth) {
    if (depth == 0) return basic(dice);
    const Model inner = any(dice, depth - 1);
    if (inner.places.size() > 3000) return inner;
    if (dice.upto(1) == 0) return nest(dice, inner);
    const Bytes less = dice.upto(depth - 1);
    return listed(dice, inner, any(dice, less));
}

struct Case {
    Layout layout;
    std::vector<std::ptrdiff_t> places;  // of all elements
    Span span;
    std::vector<std::byte> memory, packed;
    std::byte* address() { return memory.data() - span.low; }
};

Case make_case(unsigned seed) {
    Dice dice(seed);
    Model model = any(dice, 1 + dice.upto(3));
    if (dice.upto(3) == 0)
        for (std::ptrdiff_t& place : model.places)
            place -= 100;
    const Bytes elements = 1 + dice.upto(4);
    if (dice.upto(6) == 0) model.extent = -model.extent;
    Case made;
    // The model's places may have been moved; so is its form.
    FormBuilder builder;
    const std::ptrdiff_t by = model.places.front() - Layout(model.form, 0).first;
    builder.add(by, model.form);
    made.layout = Layout(builder.finish(), model.extent);
    Model all;
    for (Bytes i = 0; i < elements; ++i)
        append(all, model, static_cast<std::ptrdiff_t>(i) * model.extent);
    made.places = std::move(all.places);
    made.span = span_of(made.layout, elements);
    made.memory.resize(made.span.bytes());
    for (std::size_t i = 0; i < made.memory.size(); ++i)
        made.memory[i] = static_cast<std::byte>(i * 31 + seed + i / 256);
    for (const std::ptrdiff_t place : made.places)
        made.packed.push_back(made.memory[static_cast<std::size_t>(place - made.span.low)]);
    return made;
}

constexpr unsigned kSeeds = 1000;

TEST(Packing, NamesTheBytesOfTheTypeMapInItsOrder) {
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        Case test = make_case(seed);
        ASSERT_EQ(test.layout.size * (test.places.size() / test.layout.size), test.places.size());
        std::vector<std::byte> found(test.packed.size());
        pack(test.layout, test.address(), 0, found.size(), found.data());
        ASSERT_EQ(found, test.packed) << "seed " << seed;
    }
}

TEST(Packing, BeginsAndEndsAnywhere) {
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        Case test = make_case(seed);
        Dice dice(seed);
        for (int part = 0; part < 4; ++part) {
            const Bytes first = dice.upto(test.packed.size()),
                        bytes = dice.upto(test.packed.size() - first);
            std::vector<std::byte> found(bytes);
            pack(test.layout, test.address(), first, bytes, found.data());
            ASSERT_TRUE(std::equal(found.begin(), found.end(),
                                   test.packed.begin() + static_cast<std::ptrdiff_t>(first)))
                << "seed " << seed << ", " << bytes << " bytes from " << first;
        }
    }
}

TEST(Packing, BackwardsWritesNothingBetween) {
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        Case test = make_case(seed);
        std::vector<std::byte> expected(test.memory.size(), std::byte{0xAB});
        Dice dice(seed);
        const Bytes first = dice.upto(test.packed.size()),
                    bytes = dice.upto(test.packed.size() - first);
        for (Bytes i = first; i < first + bytes; ++i)
            expected[static_cast<std::size_t>(test.places[i] - test.span.low)] = test.packed[i];
        test.memory.assign(test.memory.size(), std::byte{0xAB});
        unpack(test.layout, test.address(), first, bytes, test.packed.data() + first);
        ASSERT_EQ(test.memory, expected) << "seed " << seed;
    }
}

// The packed bytes by rows; each byte once, and nothing that overlaps or goes down in one set.
std::vector<std::byte> by_rows(Case& test, Bytes first, Bytes bytes, Sets sets, unsigned seed) {
    std::vector<std::byte> found(bytes);
    std::vector<bool> seen(bytes);
    RowWalk walk(test.layout, first, bytes, sets);
    for (Rows rows; walk.next(rows);) {
        EXPECT_TRUE(rows.count == 1 || rows.pitch >= rows.width) << seed;
        EXPECT_TRUE(rows.planes == 1 || sets == Sets::boxes) << seed;
        for (Bytes plane = 0; plane < rows.planes; ++plane)
            for (Bytes row = 0; row < rows.count; ++row) {
                const Bytes to =
                    rows.packed + plane * rows.packed_plane_pitch + row * rows.packed_pitch;
                for (Bytes i = to; i < to + rows.width; ++i) {
                    EXPECT_FALSE(seen[i]) << seed;
                    seen[i] = true;
                }
                std::memcpy(
                    found.data() + to,
                    test.address() + rows.offset +
                        static_cast<std::ptrdiff_t>(plane * rows.plane_pitch + row * rows.pitch),
                    rows.width);
            }
    }
    EXPECT_EQ(std::ranges::count(seen, true), static_cast<std::ptrdiff_t>(bytes)) << seed;
    return found;
}

TEST(Packing, ByRowsAndByBoxesIsTheSame) {
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        Case test = make_case(seed);
        Dice dice(seed);
        const bool all = dice.upto(1) == 0;
        const Bytes first = all ? 0 : dice.upto(test.packed.size());
        const Bytes bytes = all ? test.packed.size() : dice.upto(test.packed.size() - first);
        const std::vector<std::byte> expected(
            test.packed.begin() + static_cast<std::ptrdiff_t>(first),
            test.packed.begin() + static_cast<std::ptrdiff_t>(first + bytes));
        for (const Sets sets : {Sets::rows, Sets::boxes})
            ASSERT_EQ(by_rows(test, first, bytes, sets, seed), expected) << "seed " << seed;
    }
}

TEST(Rows, ABoxIsOneSetForWhoTakesBoxes) {
    FormBuilder run;
    run.add_run(0, 24);
    const FormPtr rows = repeated(run.finish(), 30, 100);
    FormBuilder box;
    box.add(8, rows, 40, 10'000);
    const Layout layout(box.finish(), 1);
    RowWalk walk(layout, 0, layout.size, Sets::boxes);
    Rows found;
    ASSERT_TRUE(walk.next(found));
    EXPECT_EQ(found, (Rows{8, 0, 24, 30, 100, 24, 40, 10'000, 720}));
    EXPECT_EQ(found.end(), 8 + 39 * 10'000 + 29 * 100 + 24);
    EXPECT_FALSE(walk.next(found));
    // A copy engine takes planes one by one, whichever way there are fewer.
    Bytes sets = 0;
    for (RowWalk each(layout, 0, layout.size); each.next(found);)
        ++sets;
    EXPECT_EQ(sets, 30u);
}

}  // namespace
}  // namespace gantry::layout
