// SPDX-License-Identifier: BSD-3-Clause
//
// What the ABI says about itself (MPI 5.0 chapter 20). Fortran facts are preset to those of the
// usual compilers (32-bit default kinds, .TRUE. is 1), so a program cannot set them again.
#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

#include <cstring>
#include <string>

namespace gantry::mpi {
namespace {

const char* truth(bool value) {
    return value ? "true" : "false";
}

Status give(InfoPairs pairs, MPI_Info* info) {
    *info = make_info(std::move(pairs));
    if (*info == MPI_INFO_NULL) return failure(MPI_ERR_NO_MEM, "out of memory for an info object");
    return success();
}

struct OptionalType {
    const char* key;
    MPI_Datatype handle;
};

Status already_set(const char* what) {
    return failure(MPI_ERR_ABI,
                   "the Fortran {} of this library are set already and can be set once only", what);
}

bool is_logical_size(int size) {
    return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

}  // namespace

Status abi_get_version(int* abi_major, int* abi_minor) {
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return success();
}

Status abi_get_info(MPI_Info* info) {
    return give({{"mpi_aint_size", std::to_string(sizeof(MPI_Aint))},
                 {"mpi_count_size", std::to_string(sizeof(MPI_Count))},
                 {"mpi_offset_size", std::to_string(sizeof(MPI_Offset))}},
                info);
}

Status abi_get_fortran_info(MPI_Info* info) {
    InfoPairs pairs{{"mpi_logical_size", "4"},
                    {"mpi_integer_size", "4"},
                    {"mpi_real_size", "4"},
                    {"mpi_double_precision_size", "8"}};
    const OptionalType types[] = {
        {"mpi_logical1_supported", MPI_LOGICAL1},
        {"mpi_logical2_supported", MPI_LOGICAL2},
        {"mpi_logical4_supported", MPI_LOGICAL4},
        {"mpi_logical8_supported", MPI_LOGICAL8},
        {"mpi_logical16_supported", MPI_LOGICAL16},
        {"mpi_integer1_supported", MPI_INTEGER1},
        {"mpi_integer2_supported", MPI_INTEGER2},
        {"mpi_integer4_supported", MPI_INTEGER4},
        {"mpi_integer8_supported", MPI_INTEGER8},
        {"mpi_integer16_supported", MPI_INTEGER16},
        {"mpi_real2_supported", MPI_REAL2},
        {"mpi_real4_supported", MPI_REAL4},
        {"mpi_real8_supported", MPI_REAL8},
        {"mpi_real16_supported", MPI_REAL16},
        {"mpi_complex4_supported", MPI_COMPLEX4},
        {"mpi_complex8_supported", MPI_COMPLEX8},
        {"mpi_complex16_supported", MPI_COMPLEX16},
        {"mpi_complex32_supported", MPI_COMPLEX32},
        {"mpi_double_complex_supported", MPI_DOUBLE_COMPLEX},
    };
    for (const OptionalType& type : types)
        pairs.emplace_back(type.key, truth(find(type.handle)->supported));
    return give(std::move(pairs), info);
}

Status abi_set_fortran_info(Info*) {
    return already_set("sizes");
}

Status abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false,
                                int* is_set) {
    if (!is_logical_size(logical_size))
        return failure(MPI_ERR_ARG, "there is no LOGICAL of {} bytes; sizes are 1, 2, 4, 8 and 16",
                       logical_size);
    // Little-endian: the low byte comes first.
    std::memset(logical_true, 0, static_cast<std::size_t>(logical_size));
    std::memset(logical_false, 0, static_cast<std::size_t>(logical_size));
    *static_cast<unsigned char*>(logical_true) = 1;
    *is_set = 1;
    return success();
}

Status abi_set_fortran_booleans(int logical_size, void*, void*) {
    if (!is_logical_size(logical_size))
        return failure(MPI_ERR_ARG, "there is no LOGICAL of {} bytes; sizes are 1, 2, 4, 8 and 16",
                       logical_size);
    return already_set("truth values");
}

// Device pointers may be passed whenever the CUDA device is there to recognise them.
bool gpu_support(int gpu_type) {
    const Process& p = process();
    return gpu_type == 0 && (p.engine == nullptr || p.engine->config().cuda);
}

}  // namespace gantry::mpi
