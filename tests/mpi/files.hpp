// SPDX-License-Identifier: BSD-3-Clause
//
// Files for tests: a name that all ranks of the case know, in a folder of its own that is gone at the
// end, and the bytes of a file as the system has them.
#pragma once

#include "test.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace mpi_tests {

class Folder {
  public:
    explicit Folder(const char* base = std::getenv("TMPDIR")) {
        char name[256] = {};
        if (rank() == 0) {
            std::snprintf(name, sizeof name, "%s/gantry-files-XXXXXX",
                          base != nullptr ? base : "/tmp");
            if (mkdtemp(name) == nullptr) fail(__FILE__, __LINE__, "no temporary folder");
        }
        OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
        name_ = name;
    }
    ~Folder() {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        std::error_code ignored;
        if (rank() == 0) std::filesystem::remove_all(name_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string operator/(const std::string& file) const { return name_ + "/" + file; }

  private:
    std::string name_;
};

inline std::vector<unsigned char> bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void make_file(const std::string& path, const std::vector<unsigned char>& bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

inline MPI_File open_file(const std::string& path, int mode, MPI_Comm comm = MPI_COMM_WORLD,
                          MPI_Info info = MPI_INFO_NULL) {
    MPI_File file = MPI_FILE_NULL;
    OK(MPI_File_open(comm, path.c_str(), mode, info, &file));
    return file;
}
inline constexpr int kNew = MPI_MODE_CREATE | MPI_MODE_RDWR;

inline int count_of(const MPI_Status& status, MPI_Datatype type) {
    int count = -1;
    OK(MPI_Get_count(&status, type, &count));
    return count;
}

}  // namespace mpi_tests
