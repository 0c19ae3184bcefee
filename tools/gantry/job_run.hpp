// SPDX-License-Identifier: BSD-3-Clause
//
// What the commands share that run another command and read what its ranks have written: explain, trace.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::tool {

// A shell's code, and mpiexec's, for a program that cannot be started.
inline constexpr int kNotStarted = 127;

enum class Output { shown, to_standard_error };

// Runs it in the foreground; a shell's way of telling how it ended. `name`: of the command of `gantry`
// that asks.
int run(std::string_view name, const std::vector<std::string>& command, Output output);

// Files of a folder with that extension, sorted by name.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                            std::string_view extension);
std::string contents(const std::filesystem::path& file);

// Ours, and gone when the program ends.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

// The folder `asked`, or the temporary one where that is empty, made if it is missing; empty, with the
// reason on standard error: there can be none.
std::filesystem::path folder_for_records(std::string_view name, const std::string& asked,
                                         const TemporaryFolder& temporary);

}  // namespace gantry::tool
