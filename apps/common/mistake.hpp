// SPDX-License-Identifier: BSD-3-Clause
//
// How an application gives up. A Mistake is seen by every rank alike (an option, a size): rank 0 says it
// and all ranks end in order. A Failure may be one rank's alone (a driver, a file): it ends the job.
#pragma once

#include <stdexcept>

namespace gantry::apps {

struct Mistake : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace gantry::apps
