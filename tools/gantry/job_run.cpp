// SPDX-License-Identifier: BSD-3-Clause
#include "job_run.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace gantry::tool {

namespace fs = std::filesystem;

int run(std::string_view name, const std::vector<std::string>& command, Output output) {
    std::vector<char*> arguments;
    for (const std::string& word : command)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        if (output == Output::to_standard_error) dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(arguments[0], arguments.data());
        fmt::print(stderr, "gantry {}: running {}: {}\n", name, command[0], std::strerror(errno));
        _exit(kNotStarted);
    }
    if (child < 0) {
        fmt::print(stderr, "gantry {}: starting a process: {}\n", name, std::strerror(errno));
        return 126;
    }
    // Ctrl-C reaches the command too; what it recorded until then is still worth a table.
    std::signal(SIGINT, SIG_IGN);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    std::signal(SIGINT, SIG_DFL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<fs::path> files_in(const fs::path& folder, std::string_view extension) {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().extension() == extension) files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

std::string contents(const fs::path& file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

TemporaryFolder::TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "gantry-records-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
}

fs::path folder_for_records(std::string_view name, const std::string& asked,
                            const TemporaryFolder& temporary) {
    const fs::path folder = asked.empty() ? temporary.path() : fs::path(asked);
    std::error_code error;
    if (!folder.empty()) {
        fs::create_directories(folder, error);
        if (fs::is_directory(folder)) return fs::absolute(folder);
    }
    fmt::print(stderr, "gantry {}: making the folder {} for the records: {}\n", name,
               folder.string(), error.message());
    return {};
}

}  // namespace gantry::tool
