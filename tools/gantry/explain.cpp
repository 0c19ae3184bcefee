// SPDX-License-Identifier: BSD-3-Clause
//
// gantry explain COMMAND...: runs the command with GANTRY_EXPLAIN=1 and a folder into which every
// rank writes its record as JSON, then prints all of them as one table. Exit status: the command's.
#include "commands.hpp"

#include "answer.hpp"
#include "plan/path_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gantry::tool {
namespace {

namespace fs = std::filesystem;

// Runs it in the foreground; a shell's way of telling how it ended. Standard output is left to JSON.
int run(const std::vector<std::string>& command, Format format) {
    std::vector<char*> arguments;
    for (const std::string& word : command)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        if (format == Format::json) dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(arguments[0], arguments.data());
        fmt::print(stderr, "gantry explain: running {}: {}\n", command[0], std::strerror(errno));
        _exit(127);
    }
    if (child < 0) {
        fmt::print(stderr, "gantry explain: starting a process: {}\n", std::strerror(errno));
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

std::vector<fs::path> records(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

std::string contents(const fs::path& file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

// Ours, and gone when the program ends.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (fs::temp_directory_path() / "gantry-explain-XXXXXX").string();
        if (mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

void print(const std::vector<std::string>& texts, const std::vector<plan::Path>& paths,
           const std::string& notes, const ExplainOptions& options) {
    if (options.format == Format::json) {
        nlohmann::ordered_json all = nlohmann::ordered_json::array();
        for (const std::string& text : texts)
            all.push_back(nlohmann::ordered_json::parse(text, nullptr, false));
        answer("{}\n", all.dump(2));
        return;
    }
    answer("\npaths taken ({} ranks):\n{}{}", texts.size(),
           path_table(paths, options.all ? plan::Show::all : plan::Show::received), notes);
}

}  // namespace

int explain(const ExplainOptions& options) {
    TemporaryFolder temporary;
    const fs::path folder = options.folder.empty() ? temporary.path() : fs::path(options.folder);
    std::error_code error;
    if (folder.empty() || (fs::create_directories(folder, error), !fs::is_directory(folder))) {
        fmt::print(stderr, "gantry explain: making the folder {} for the records: {}\n",
                   folder.string(), error.message());
        return 126;
    }
    setenv("GANTRY_EXPLAIN", "on", 1);
    setenv("GANTRY_EXPLAIN_FILE", (fs::absolute(folder) / "%r-%p.json").c_str(), 1);
    const int status = run(options.command, options.format);

    std::vector<std::string> texts;
    std::vector<plan::Path> paths;
    std::vector<plan::CollPath> collectives;
    std::string notes;
    for (const fs::path& file : records(folder)) {
        std::string text = contents(file);
        Result<plan::Record> read = plan::record_from_json(text);
        if (!read.ok()) {
            fmt::print(stderr, "gantry explain: {}: {}\n", file.string(), read.status().text());
            continue;
        }
        texts.push_back(std::move(text));
        paths.insert(paths.end(), read->paths.begin(), read->paths.end());
        collectives.insert(collectives.end(), read->collectives.begin(), read->collectives.end());
        notes += notes_text(*read);
    }
    if (texts.empty())
        fmt::print(stderr,
                   "gantry explain: no rank recorded a message. Did the command run with Gantry's "
                   "libmpi_abi.so.1, and reach MPI_Finalize?\n");
    else
        print(texts, paths, coll_table(std::move(collectives)) + notes, options);
    return status;
}

}  // namespace gantry::tool
