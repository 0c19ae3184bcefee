// SPDX-License-Identifier: BSD-3-Clause
//
// The predefined datatypes against what the ABI says about them: which values exist, sizes in the
// handle, C's layout of pairs.
#include "listed_blocks.hpp"
#include "running.hpp"

#include <cstddef>
#include <set>
#include <string>

namespace gantry::mpi {
namespace {

std::uintptr_t value(MPI_Datatype handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
}

std::vector<Datatype*> all() {
    std::vector<Datatype*> types;
    for (Datatype* datatype : process().predefined_datatypes)
        if (datatype != nullptr) types.push_back(datatype);
    return types;
}

TEST(PredefinedDatatypes, ThereAreSeventyAndNull) {
    EXPECT_EQ(all().size(), 70u);
    EXPECT_EQ(find(MPI_DATATYPE_NULL), nullptr);
}

TEST(PredefinedDatatypes, AreFoundUnderTheirOwnConstant) {
    std::set<std::string> names;
    for (Datatype* datatype : all()) {
        EXPECT_EQ(find(datatype->handle), datatype);
        EXPECT_TRUE(datatype->committed);
        EXPECT_TRUE(names.insert(datatype->name).second) << datatype->name << " twice";
    }
}

// MPI 5.0 section 3.2.2 lists MPI_LONG_LONG and MPI_C_FLOAT_COMPLEX as the synonyms.
TEST(PredefinedDatatypes, WithASynonymAreNamedByTheFirstName) {
    EXPECT_EQ(find(MPI_LONG_LONG)->name, "MPI_LONG_LONG_INT");
    EXPECT_EQ(find(MPI_C_FLOAT_COMPLEX)->name, "MPI_C_COMPLEX");
}

TEST(PredefinedDatatypes, OfFixedSizeHaveTheSizeInTheirHandle) {
    int fixed = 0;
    for (Datatype* datatype : all()) {
        const std::uintptr_t kind = (value(datatype->handle) >> 6) & 3;
        if (kind != 1 && kind != 3) continue;
        ++fixed;
        if (!datatype->supported) continue;
        EXPECT_EQ(datatype->size(), Bytes{1} << ((value(datatype->handle) >> 3) & 7))
            << datatype->name;
    }
    EXPECT_EQ(fixed, 30);
}

TEST(PredefinedDatatypes, ThatArePairsLieAsCPutsThem) {
    struct LongInt {
        long value;
        int index;
    };
    struct ShortInt {
        short value;
        int index;
    };
    struct LongDoubleInt {
        long double value;
        int index;
    };
    const auto check = [](MPI_Datatype handle, std::size_t size, std::size_t extent,
                          std::ptrdiff_t index_at) {
        const Datatype& datatype = *find(handle);
        EXPECT_EQ(datatype.size(), size) << datatype.name;
        EXPECT_EQ(datatype.extent(), static_cast<std::ptrdiff_t>(extent)) << datatype.name;
        const layout::Block last = layout::blocks_of(datatype.layout).back();
        EXPECT_LE(last.offset, index_at) << datatype.name;
        EXPECT_EQ(last.offset + static_cast<std::ptrdiff_t>(last.bytes), index_at + 4)
            << datatype.name;
    };
    check(MPI_2INT, 8, 8, 4);
    check(MPI_FLOAT_INT, 8, 8, 4);
    check(MPI_DOUBLE_INT, 12, 16, 8);
    check(MPI_LONG_INT, 12, sizeof(LongInt), offsetof(LongInt, index));
    check(MPI_SHORT_INT, 6, sizeof(ShortInt), offsetof(ShortInt, index));
    check(MPI_LONG_DOUBLE_INT, 20, sizeof(LongDoubleInt), offsetof(LongDoubleInt, index));
}

TEST(PredefinedDatatypes, ThatThePlatformLacksHaveSizeUndefined) {
    MPI_Count size = 0;
    expect_ok(type_size(*find(MPI_COMPLEX4), &size));
    EXPECT_EQ(size, MPI_UNDEFINED);
    expect_ok(type_size(*find(MPI_REAL2), &size));
    EXPECT_EQ(size, 2);
    expect_ok(type_size(*find(MPI_REAL8), &size));
    EXPECT_EQ(size, 8);
}

}  // namespace
}  // namespace gantry::mpi
