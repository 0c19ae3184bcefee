// SPDX-License-Identifier: BSD-3-Clause
//
// Type signatures of datatypes: those of their basic items in order, whatever the types that hold
// them, and cheap for large counts. Random types are compared with plain lists of their items.
#include "mpi/check/signature.hpp"

#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace gantry::mpi {
namespace {

using Items = std::vector<MPI_Datatype>;

Signature of(MPI_Datatype type, Bytes count) {
    return signature_of(*find(type), count);
}

Signature of(const Items& items) {
    Signature all;
    for (MPI_Datatype item : items)
        all = joined(all, of(item, 1));
    return all;
}

Items first_of(const Items& items, std::size_t number) {
    return {items.begin(), items.begin() + static_cast<std::ptrdiff_t>(number)};
}

MPI_Datatype structure(MPI_Datatype first, MPI_Datatype second) {
    const std::array<MPI_Count, 2> lengths{1, 2}, places{0, 64};
    const std::array<MPI_Datatype, 2> types{first, second};
    MPI_Datatype made;
    EXPECT_TRUE(type_create_struct(2, lengths.data(), places.data(), types.data(), &made).ok());
    return made;
}

struct Made {
    MPI_Datatype type;
    Items items;
};

void append(Items& all, const Items& part, MPI_Count times) {
    for (MPI_Count i = 0; i < times; ++i)
        all.insert(all.end(), part.begin(), part.end());
}

Made made_at_random(std::mt19937& random, int depth) {
    const auto up_to = [&random](MPI_Count most) {
        return std::uniform_int_distribution<MPI_Count>(0, most)(random);
    };
    if (depth == 0) {
        const Made basic[] = {{MPI_INT, {MPI_INT}},
                              {MPI_DOUBLE, {MPI_DOUBLE}},
                              {MPI_CHAR, {MPI_CHAR}},
                              {MPI_SHORT_INT, {MPI_SHORT, MPI_INT}},
                              {MPI_2INT, {MPI_INT, MPI_INT}}};
        return basic[up_to(4)];
    }
    const Made part = made_at_random(random, depth - 1), other = made_at_random(random, depth - 1);
    Made made;
    const MPI_Count count = up_to(3), length = up_to(3);
    Status status;
    switch (up_to(5)) {
        case 0:
            status = type_contiguous(count, *find(part.type), &made.type);
            append(made.items, part.items, count);
            break;
        case 1:
            status = type_vector(count, length, up_to(5) - 2, *find(part.type), &made.type);
            append(made.items, part.items, count * length);
            break;
        case 2: {
            const std::array<MPI_Count, 3> lengths{count, length, 1}, places{50, -20, 9};
            status = type_indexed(3, lengths.data(), places.data(), *find(part.type), &made.type);
            append(made.items, part.items, count + length + 1);
            break;
        }
        case 3: {
            const std::array<MPI_Count, 3> lengths{count, length, 1}, places{64, 4096, 0};
            const std::array<MPI_Datatype, 3> types{part.type, other.type, part.type};
            status = type_create_struct(3, lengths.data(), places.data(), types.data(), &made.type);
            append(made.items, part.items, count);
            append(made.items, other.items, length);
            append(made.items, part.items, 1);
            break;
        }
        case 4:
            status = type_create_resized(*find(part.type), -8, 8192, &made.type);
            made.items = part.items;
            break;
        default:
            status = type_dup(*find(part.type), &made.type);
            made.items = part.items;
            break;
    }
    EXPECT_TRUE(status.ok()) << status.text();
    return made;
}

TEST(Signatures, AreOfItemsAndNotOfTypes) {
    MPI_Datatype row, rows;
    EXPECT_TRUE(type_contiguous(3, *find(MPI_INT), &row).ok());
    EXPECT_TRUE(type_vector(4, 2, 7, *find(row), &rows).ok());
    EXPECT_EQ(of(rows, 5), of(MPI_INT, 120));
    EXPECT_EQ(of(row, 1), of(MPI_INT32_T, 3));
    EXPECT_NE(of(row, 1), of(MPI_FLOAT, 3));
    EXPECT_NE(of(row, 1), of(MPI_INT, 4));
    EXPECT_EQ(of(MPI_INT, 0), of(MPI_DOUBLE, 0));
    EXPECT_EQ(of(MPI_DOUBLE_INT, 2), of({MPI_DOUBLE, MPI_INT, MPI_DOUBLE, MPI_INT}));
}

TEST(Signatures, KnowTheOrder) {
    EXPECT_NE(of(structure(MPI_INT, MPI_DOUBLE), 1), of(structure(MPI_DOUBLE, MPI_INT), 1));
    EXPECT_NE(of(structure(MPI_INT, MPI_DOUBLE), 2), of(structure(MPI_INT, MPI_DOUBLE), 1));
    const Signature twice = of(structure(MPI_INT, MPI_DOUBLE), 2);
    EXPECT_EQ(twice.items, 6u);
}

TEST(Signatures, OfRandomTypesAreThoseOfTheirItems) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    for (int i = 0; i < 300; ++i) {
        const Made made = made_at_random(random, i % 4);
        const MPI_Count count = i % 3;
        Items all;
        append(all, made.items, count);
        const Datatype& datatype = *find(made.type);
        EXPECT_EQ(signature_of(datatype, static_cast<Bytes>(count)), of(all)) << "seed " << seed;
        const std::size_t step = 1 + all.size() / 20;
        for (std::size_t items = 0; items <= all.size(); items += step)
            EXPECT_EQ(beginning_of(datatype, static_cast<Bytes>(count), items),
                      of(first_of(all, items)))
                << items << " of " << all.size() << " items, seed " << seed;
    }
}

TEST(Signatures, OfManyItemsAreWorkedOut) {
    EXPECT_EQ(of(MPI_INT, Bytes{1} << 40).items, Bytes{1} << 40);
    EXPECT_NE(of(MPI_INT, Bytes{1} << 40), of(MPI_INT, (Bytes{1} << 40) + 1));
    // A hundred million blocks of blocks, and where they end inside.
    constexpr MPI_Count kMany = 100'000'000;
    MPI_Datatype pairs, planes;
    EXPECT_TRUE(type_vector(kMany, 1, 2, *find(structure(MPI_INT, MPI_SHORT)), &pairs).ok());
    EXPECT_TRUE(type_vector(kMany, 1, 1, *find(pairs), &planes).ok());
    const Bytes items = Bytes{3} * kMany * kMany;
    EXPECT_EQ(of(planes, 1), of(structure(MPI_INT, MPI_SHORT), items / 3));
    EXPECT_EQ(joined(beginning_of(*find(planes), 1, items - 1), of(MPI_SHORT, 1)), of(planes, 1));
}

TEST(Signatures, OfWhatIsSentMayBeShorter) {
    const Datatype& pairs = *find(structure(MPI_INT, MPI_DOUBLE));
    EXPECT_TRUE(may_go_into(of({MPI_INT, MPI_DOUBLE}), pairs, 1));
    EXPECT_TRUE(may_go_into(of({MPI_INT, MPI_DOUBLE, MPI_DOUBLE, MPI_INT}), pairs, 2));
    EXPECT_TRUE(may_go_into(Signature{}, pairs, 0));
    EXPECT_FALSE(may_go_into(of({MPI_INT, MPI_DOUBLE, MPI_DOUBLE, MPI_INT}), pairs, 1));
    EXPECT_FALSE(may_go_into(of({MPI_INT, MPI_INT}), pairs, 1));
    EXPECT_FALSE(may_go_into(of({MPI_DOUBLE}), pairs, 1));
    // Whatever a hash cannot say is let through.
    EXPECT_TRUE(may_go_into(of(MPI_BYTE, 3), pairs, 1));
    EXPECT_TRUE(may_go_into(of(MPI_PACKED, 300), pairs, 1));
    EXPECT_TRUE(may_go_into(of({MPI_SHORT}), *find(MPI_BYTE), 2));
    EXPECT_TRUE(may_go_into(of({MPI_SHORT}), *find(structure(MPI_PACKED, MPI_INT)), 2));
}

TEST(Signatures, AreNamedInWords) {
    EXPECT_EQ(words(of(MPI_INT, 3)), "3 of MPI_INT");
    EXPECT_EQ(words(of(MPI_INT, 0)), "no data");
    EXPECT_EQ(words(of(MPI_BYTE, 8)), "8 of MPI_BYTE");
    EXPECT_EQ(words(of(structure(MPI_INT, MPI_DOUBLE), 1)), "1 of MPI_INT and 2 of MPI_DOUBLE");
    EXPECT_EQ(words(of(structure(MPI_INT, MPI_DOUBLE), 3)),
              "9 basic items that begin with 1 of MPI_INT and 2 of MPI_DOUBLE");
    MPI_Datatype precise;
    EXPECT_TRUE(type_create_f90_real(6, 30, &precise).ok());
    EXPECT_EQ(words(of(precise, 2)), "2 of a Fortran type");
    EXPECT_EQ(of(precise, 2), of(MPI_REAL, 2));
}

}  // namespace
}  // namespace gantry::mpi
