// SPDX-License-Identifier: BSD-3-Clause
//
// Versions, time, names, memory (MPI 5.0 chapter 9).
#include "mpi/bodies.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

#include <sys/utsname.h>
#include <time.h>

#include <cstdlib>

namespace gantry::mpi {

Status get_version(int* version, int* subversion) {
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return success();
}

Status get_library_version(char* version, int* resultlen) {
    // Programs read a vendor from how this begins, so it begins with our name.
    copy_text("Gantry 0.1.0, an MPI 5.0 library for GPUs (standard ABI 1.0)", version,
              MPI_MAX_LIBRARY_VERSION_STRING, resultlen);
    return success();
}

Status get_processor_name(char* name, int* resultlen) {
    utsname host{};
    if (uname(&host) != 0) return failure(MPI_ERR_OTHER, "uname: {}", strerror(errno));
    copy_text(host.nodename, name, MPI_MAX_PROCESSOR_NAME, resultlen);
    return success();
}

Status get_hw_resource_info(MPI_Info* hw_info) {
    *hw_info = make_info({});  // no resource types beyond those of MPI_Comm_split_type
    if (*hw_info == MPI_INFO_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for an info object");
    return success();
}

// Before MPI_Init there is no engine and so no injected clock; all engines of the product use this
// one.
double wtime() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wtick() {
    timespec resolution{};
    clock_getres(CLOCK_MONOTONIC, &resolution);
    return static_cast<double>(resolution.tv_sec) + 1e-9 * static_cast<double>(resolution.tv_nsec);
}

Status pcontrol(int) {
    return success();
}

Status alloc_mem(MPI_Aint size, Info* info, void* baseptr) {
    std::size_t alignment = 64;
    if (info != nullptr) {
        if (const std::string* wanted = value_of(info->pairs, "mpi_minimum_memory_alignment")) {
            const std::size_t asked = std::strtoull(wanted->c_str(), nullptr, 10);
            if (asked > 0 && (asked & (asked - 1)) == 0 && asked > alignment) alignment = asked;
        }
    }
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, static_cast<std::size_t>(size > 0 ? size : 1)) != 0)
        return failure(MPI_ERR_NO_MEM,
                       "MPI_Alloc_mem of {} bytes: the system has not that much memory", size);
    std::memcpy(baseptr, &memory, sizeof memory);
    return success();
}

Status free_mem(void* base) {
    std::free(base);
    return success();
}

Status get_address(const void* location, MPI_Aint* address) {
    *address = reinterpret_cast<MPI_Aint>(location);
    return success();
}

// Addresses wrap around like unsigned numbers, so that a displaced null address is well defined.
MPI_Aint aint_add(MPI_Aint base, MPI_Aint disp) {
    return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) +
                                 static_cast<std::uintptr_t>(disp));
}

MPI_Aint aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
    return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) -
                                 static_cast<std::uintptr_t>(addr2));
}

}  // namespace gantry::mpi
