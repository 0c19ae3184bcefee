// SPDX-License-Identifier: BSD-3-Clause
//
// Finding libpmix.so.2 at run time. A client works best with the very library of its launcher, so
// that is looked for first, in the memory maps of the processes that started us; then what the user
// or the launcher names; then the system's.
#pragma once

#include "base/status.hpp"
#include "job/pmix_abi.hpp"

#include <string>
#include <vector>

namespace gantry::job::pmix {

struct Library {
    Functions call;
    std::string path;  // what was loaded
};

// Where to look, in order. `named` is GANTRY_PMIX_LIBRARY; when it is set nothing else counts.
std::vector<std::string> candidates(const std::string& named);

// The first candidate that loads and has every function. Never unloaded: the library runs a thread.
Result<Library> load(const std::string& named);

}  // namespace gantry::job::pmix
