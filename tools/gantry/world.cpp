// SPDX-License-Identifier: BSD-3-Clause
//
// gantry reproduce, gantry scale: gantry-world does the work. It holds the simulated world, which is part of
// the tests, so an installation has it only with them.
#include "commands.hpp"

#include "job_run.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace gantry::tool {

int world(const std::vector<std::string>& words) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const fs::path& folder : {here, here / "../libexec/gantry"}) {
        if (!fs::exists(folder / "gantry-world", ignored)) continue;
        std::vector<std::string> command{(folder / "gantry-world").string()};
        command.insert(command.end(), words.begin(), words.end());
        return run(words[0], command, Output::shown);
    }
    fmt::print(
        stderr,
        "gantry {}: gantry-world is not here. It comes with the tests: ./dev build, or ./dev "
        "install PREFIX --with-tests\n",
        words[0]);
    return 127;
}

}  // namespace gantry::tool
