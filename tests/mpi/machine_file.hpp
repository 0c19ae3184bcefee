// SPDX-License-Identifier: BSD-3-Clause
//
// A machine description of a case's own (GANTRY_MACHINE): GPUs that reach each other, with what
// matters to the case.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace mpi_tests {

// Written before MPI starts, and gone at the end of its scope: the library reads the file when it
// meets the first GPU.
class MachineFile {
  public:
    // `peer_get`: how one GPU reads another's memory; `calls`: what driver calls take. Both are
    // fields of the description in JSON.
    MachineFile(const std::string& peer_get, const std::string& calls)
        : name_(std::string(P_tmpdir) + "/gantry-machine-" + std::to_string(getppid()) + "-" +
                std::to_string(getpid()) + ".json") {
        std::ofstream(name_) << R"({"name": "of a test", "peer_access": true, "ipc": true, "gpu": {
            "name": "GPU", "d2h": {"latency_ns": 7000, "gap_ns": 3500, "bytes_per_second": 5e10},
            "h2d": {"latency_ns": 7000, "gap_ns": 3500, "bytes_per_second": 5e10},
            "d2d": {"latency_ns": 8000, "gap_ns": 3500, "bytes_per_second": 2e12},
            "peer": {"latency_ns": 7000, "gap_ns": 1800, "bytes_per_second": 3e11},
            "peer_get": {)" << peer_get
                             << R"(},
            "pageable_d2h": {"latency_ns": 9000, "gap_ns": 5000, "bytes_per_second": 1e10},
            "pageable_h2d": {"latency_ns": 9000, "gap_ns": 5000, "bytes_per_second": 1e10},
            "calls": {)" << calls
                             << "}}}";
        setenv("GANTRY_MACHINE", name_.c_str(), 1);
    }
    ~MachineFile() { unlink(name_.c_str()); }
    MachineFile(const MachineFile&) = delete;
    MachineFile& operator=(const MachineFile&) = delete;

  private:
    std::string name_;
};

}  // namespace mpi_tests
