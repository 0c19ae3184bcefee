// SPDX-License-Identifier: BSD-3-Clause
//
// Loads the standard's library, which lies two folders above the personality (PREFIX/lib and
// PREFIX/lib/gantry/NAME), with names that nobody else sees.
#include "common/fatal.hpp"
#include "common/standard.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>

namespace gantry::personality {

Standard standard;

namespace {

constexpr const char* kLibrary = "libmpi_abi.so.1";

std::string folder_above(std::string path, int levels) {
    for (int i = 0; i < levels; ++i) {
        const std::size_t slash = path.rfind('/');
        if (slash == std::string::npos) return ".";
        path.resize(slash);
    }
    return path;
}

std::string own_path() {
    Dl_info info{};
    return dladdr(reinterpret_cast<void*>(&own_path), &info) != 0 && info.dli_fname != nullptr
               ? info.dli_fname
               : "";
}

template <class Function>
void find(void* library, const char* symbol, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, symbol));
    if (function == nullptr)
        fatal("%s in %s has no %s: the library and the personality are of different versions",
              kLibrary, folder_above(own_path(), 3).c_str(), symbol);
}

// Before constructors of the program, which may call MPI.
[[gnu::constructor(101)]] void load() {
    const std::string beside = folder_above(own_path(), 3) + "/" + kLibrary;
    void* library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        fatal("%s stands for another MPI library and needs Gantry's beside it: %s",
              own_path().c_str(), dlerror());
#define X(name) find(library, "PMPI_" #name, standard.name);
#include "standard_functions.def"
#undef X
    find(library, "MPIX_Query_cuda_support", standard.Query_cuda_support);
    find(library, "MPIX_GPU_query_support", standard.GPU_query_support);
    find(library, "MPIX_Op_create_x", standard.Op_create_x);
    find(library, "MPIX_Comm_create_errhandler_x", standard.Comm_create_errhandler_x);
    find(library, "MPIX_Win_create_errhandler_x", standard.Win_create_errhandler_x);
    find(library, "MPIX_File_create_errhandler_x", standard.File_create_errhandler_x);
    find(library, "MPIX_Session_create_errhandler_x", standard.Session_create_errhandler_x);
    find(library, "MPIX_Comm_revoke", standard.Comm_revoke);
    find(library, "MPIX_Comm_is_revoked", standard.Comm_is_revoked);
    find(library, "MPIX_Comm_shrink", standard.Comm_shrink);
    find(library, "MPIX_Comm_ishrink", standard.Comm_ishrink);
    find(library, "MPIX_Comm_agree", standard.Comm_agree);
    find(library, "MPIX_Comm_iagree", standard.Comm_iagree);
    find(library, "MPIX_Comm_get_failed", standard.Comm_get_failed);
    find(library, "MPIX_Comm_ack_failed", standard.Comm_ack_failed);
    find(library, "MPIX_Comm_failure_ack", standard.Comm_failure_ack);
    find(library, "MPIX_Comm_failure_get_acked", standard.Comm_failure_get_acked);
}

bool is_mpi_library(const char* file) {
    for (const char* name : {"libmpi.so", "libmpich.so", "libmpi_abi.so"})
        if (std::strncmp(file, name, std::strlen(name)) == 0) return true;
    return false;
}

struct Search {
    std::string own, standard, other;
};

int look_at(dl_phdr_info* object, std::size_t, void* search) {
    auto& seen = *static_cast<Search*>(search);
    const std::string path = object->dlpi_name;
    const std::size_t slash = path.rfind('/');
    if (!is_mpi_library(path.c_str() + (slash == std::string::npos ? 0 : slash + 1))) return 0;
    // Other names of ours lie beside us; a wheel, which has no links, holds libraries that ask for us.
    if (folder_above(path, 1) == folder_above(seen.own, 1) || path == seen.standard) return 0;
    seen.other = path;
    return 1;
}

}  // namespace

void refuse_second_library() {
    Dl_info info{};
    Search search{own_path(), "", ""};
    if (dladdr(reinterpret_cast<void*>(standard.Init), &info) != 0)
        search.standard = info.dli_fname;
    if (dl_iterate_phdr(&look_at, &search) != 0)
        fatal(
            "this process holds two MPI libraries, %s and %s: a part of the program was built for "
            "another MPI. Build all parts for one, or start it without Gantry's personality",
            search.own.c_str(), search.other.c_str());
}

}  // namespace gantry::personality
