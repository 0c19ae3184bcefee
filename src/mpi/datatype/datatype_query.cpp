// SPDX-License-Identifier: BSD-3-Clause
//
// What a datatype says about itself.
#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/text.hpp"

namespace gantry::mpi {

Status type_size(Datatype& datatype, MPI_Count* size) {
    // An optional Fortran type that this platform lacks exists and says so.
    *size = datatype.supported ? static_cast<MPI_Count>(datatype.size()) : MPI_UNDEFINED;
    return success();
}

Status type_get_extent(Datatype& datatype, MPI_Count* lb, MPI_Count* extent) {
    *lb = datatype.supported ? datatype.lower_bound : MPI_UNDEFINED;
    *extent = datatype.supported ? datatype.extent() : MPI_UNDEFINED;
    return success();
}

Status type_get_true_extent(Datatype& datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
    *true_lb = datatype.supported ? datatype.true_lower_bound : MPI_UNDEFINED;
    *true_extent = datatype.supported ? datatype.true_extent : MPI_UNDEFINED;
    return success();
}

Status type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) {
    const Datatype* object = find(datatype);
    copy_text(object != nullptr ? object->name : "MPI_DATATYPE_NULL", type_name,
              MPI_MAX_OBJECT_NAME, resultlen);
    return success();
}

}  // namespace gantry::mpi
