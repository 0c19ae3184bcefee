// SPDX-License-Identifier: BSD-3-Clause
//
// Judging handles: predefined constants, freed handles, garbage.
#include "running.hpp"

namespace gantry::mpi {
namespace {

template <class Handle>
Handle handle(std::uintptr_t value) {
    return reinterpret_cast<Handle>(value);
}

TEST(Handles, OfGarbageAreNoObjects) {
    int here = 0;
    for (std::uintptr_t value : {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{0x7f},
                                 std::uintptr_t{0x2ff}, std::uintptr_t{4095}, std::uintptr_t{4097},
                                 reinterpret_cast<std::uintptr_t>(&here), ~std::uintptr_t{0}}) {
        EXPECT_EQ(find(handle<MPI_Comm>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Datatype>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Op>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Group>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Info>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Errhandler>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Request>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Session>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Win>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_File>(value)), nullptr) << value;
        EXPECT_EQ(find(handle<MPI_Message>(value)), nullptr) << value;
    }
}

TEST(Handles, InsideAnObjectAreNoObjects) {
    MPI_Info info;
    expect_ok(info_create(&info));
    const auto value = reinterpret_cast<std::uintptr_t>(info);
    EXPECT_NE(find(info), nullptr);
    EXPECT_EQ(find(handle<MPI_Info>(value + 8)), nullptr);
    EXPECT_EQ(find(handle<MPI_Group>(value)), nullptr) << "an info object is no group";
    expect_ok(info_free(&info));
}

TEST(Handles, OfPredefinedObjectsAreTheirOnlyOnes) {
    Datatype* integer = find(MPI_INT);
    EXPECT_EQ(find(reinterpret_cast<MPI_Datatype>(integer)), nullptr)
        << "the address of MPI_INT's object is not a handle";
}

TEST(Handles, AsIntegersAreTheConstantOrALargeNumber) {
    EXPECT_EQ(type_toint(MPI_INT), 0x209);
    EXPECT_EQ(type_fromint(0x209), MPI_INT);
    EXPECT_EQ(op_toint(MPI_SUM), 0x21);
    EXPECT_EQ(comm_toint(MPI_COMM_WORLD), 0x101);
    MPI_Datatype derived;
    expect_ok(type_contiguous(3, *find(MPI_INT), &derived));
    const int integer = type_toint(derived);
    EXPECT_GE(integer, 4096);
    EXPECT_EQ(type_fromint(integer), derived);
    expect_ok(type_free(&derived));
    EXPECT_EQ(type_fromint(integer), MPI_DATATYPE_NULL);
}

}  // namespace
}  // namespace gantry::mpi
