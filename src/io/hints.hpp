// SPDX-License-Identifier: BSD-3-Clause
//
// Hints: what a program's info object says about a file, as far as it changes how bytes go. The keys
// are those of the standard (MPI 5.0 section 14.2.8) and those of ROMIO, which programs and their
// input files use; docs/user/files.md lists them.
#pragma once

#include "plan/io_plan.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::io {

struct Hints {
    plan::IoSwitch collective_read = plan::IoSwitch::automatic;
    plan::IoSwitch collective_write = plan::IoSwitch::automatic;
    plan::IoSwitch sieve_read = plan::IoSwitch::automatic;
    plan::IoSwitch direct_storage = plan::IoSwitch::automatic;
    bool io_uring = true;  // where the kernel lets us
    int aggregators = 0;
    Bytes window = 4 * kMiB;
    Bytes stripe = 0;

    // False: it is no hint of ours, or its value means nothing; then nothing changes.
    bool take(std::string_view key, std::string_view value);
    // All of ours as they stand, for MPI_File_get_info.
    std::vector<std::pair<std::string, std::string>> told() const;
};

}  // namespace gantry::io
