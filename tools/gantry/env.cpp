// SPDX-License-Identifier: BSD-3-Clause
//
// gantry env --as MPI: exports for shells, where a launcher other than mpiexec starts the program.
#include "answer.hpp"
#include "commands.hpp"

#include <filesystem>

namespace gantry::tool {

int env(const std::string& mpi) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    const fs::path folder = self.parent_path().parent_path() / GANTRY_LIBDIR / "gantry" / mpi;
    const char* name = mpi == "openmpi" ? "libmpi.so.40" : "libmpi.so.12";
    if (!fs::exists(folder / name)) {
        fmt::print(stderr, "gantry: this installation has no {} in {}\n", name, folder.string());
        return 1;
    }
    // Paths of shells are quoted, whatever is in them.
    std::string quoted;
    for (const char letter : folder.string())
        quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    answer("export LD_LIBRARY_PATH='{}'${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n", quoted);
    answer("export MPI4PY_LIBMPI='{}/{}'\n", quoted, name);
    return 0;
}

}  // namespace gantry::tool
