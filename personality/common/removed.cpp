// SPDX-License-Identifier: BSD-3-Clause
//
// Functions that MPI 3.0 removed and old programs call. Types MPI_LB and MPI_UB are not among what
// they take.
#include "common/arguments.hpp"
#include "common/export.hpp"
#include "common/standard.hpp"

namespace gantry::personality {
namespace {

int extent(theirs::Datatype type, MPI_Aint* lower, MPI_Aint* length) {
    return standard.Type_get_extent(to<MPI_Datatype>(type), lower, length);
}

}  // namespace

GANTRY_EXPORT(int, Address, (void* location, MPI_Aint* address)) {
    return error(standard.Get_address(location, address));
}
GANTRY_EXPORT(int, Type_extent, (theirs::Datatype type, MPI_Aint* length)) {
    MPI_Aint lower = 0;
    return error(extent(type, &lower, length));
}
GANTRY_EXPORT(int, Type_lb, (theirs::Datatype type, MPI_Aint* lower)) {
    MPI_Aint length = 0;
    return error(extent(type, lower, &length));
}
GANTRY_EXPORT(int, Type_ub, (theirs::Datatype type, MPI_Aint* upper)) {
    MPI_Aint lower = 0, length = 0;
    const int code = extent(type, &lower, &length);
    if (code == MPI_SUCCESS) *upper = lower + length;
    return error(code);
}
GANTRY_EXPORT(int, Type_hvector,
              (int count, int block, MPI_Aint stride, theirs::Datatype old,
               theirs::Datatype* made)) {
    MPI_Datatype made_ours = nullptr;
    const HandleOut<MPI_Datatype> made_(made, made_ours);
    return error(
        standard.Type_create_hvector(count, block, stride, to<MPI_Datatype>(old), made_.pointer()));
}
GANTRY_EXPORT(int, Type_hindexed,
              (int count, int blocks[], MPI_Aint displacements[], theirs::Datatype old,
               theirs::Datatype* made)) {
    MPI_Datatype made_ours = nullptr;
    const HandleOut<MPI_Datatype> made_(made, made_ours);
    return error(standard.Type_create_hindexed(count, blocks, displacements, to<MPI_Datatype>(old),
                                               made_.pointer()));
}
GANTRY_EXPORT(int, Type_struct,
              (int count, int blocks[], MPI_Aint displacements[], theirs::Datatype types[],
               theirs::Datatype* made)) {
    HandlesIn<MPI_Datatype> types_(types, count);
    if (!types_.ok()) return error(MPI_ERR_NO_MEM);
    MPI_Datatype made_ours = nullptr;
    const HandleOut<MPI_Datatype> made_(made, made_ours);
    return error(
        standard.Type_create_struct(count, blocks, displacements, types_.data(), made_.pointer()));
}
int create_errhandler(theirs::Comm_errhandler_function* function,
                      theirs::Errhandler* errhandler) __asm__("PMPI_Comm_create_errhandler");
GANTRY_EXPORT(int, Errhandler_create,
              (theirs::Comm_errhandler_function * function, theirs::Errhandler* errhandler)) {
    return create_errhandler(function, errhandler);
}
GANTRY_EXPORT(int, Errhandler_get, (theirs::Comm comm, theirs::Errhandler* errhandler)) {
    MPI_Errhandler errhandler_ours = nullptr;
    const HandleOut<MPI_Errhandler> errhandler_(errhandler, errhandler_ours);
    return error(standard.Comm_get_errhandler(to<MPI_Comm>(comm), errhandler_.pointer()));
}
GANTRY_EXPORT(int, Errhandler_set, (theirs::Comm comm, theirs::Errhandler errhandler)) {
    return error(standard.Comm_set_errhandler(to<MPI_Comm>(comm), to<MPI_Errhandler>(errhandler)));
}

}  // namespace gantry::personality
