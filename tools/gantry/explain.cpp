// SPDX-License-Identifier: BSD-3-Clause
//
// gantry explain COMMAND...: runs the command with GANTRY_EXPLAIN=1 and a folder into which every
// rank writes its record as JSON, then prints all of them as one table. Exit status: the command's.
#include "commands.hpp"

#include "answer.hpp"
#include "job_run.hpp"
#include "plan/path_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

namespace gantry::tool {

namespace fs = std::filesystem;

namespace {

void print(const std::vector<std::string>& texts, const std::vector<plan::Path>& paths,
           const std::string& notes, const ExplainOptions& options) {
    if (options.format == Format::json) {
        nlohmann::ordered_json all = nlohmann::ordered_json::array();
        for (const std::string& text : texts)
            all.push_back(nlohmann::ordered_json::parse(text, nullptr, false));
        answer("{}\n", all.dump(2));
        return;
    }
    answer("\npaths taken ({} rank{}):\n{}{}", texts.size(), texts.size() == 1 ? "" : "s",
           path_table(paths, options.all ? plan::Show::all : plan::Show::received), notes);
}

}  // namespace

int explain(const ExplainOptions& options) {
    const TemporaryFolder temporary;
    const fs::path folder = folder_for_records("explain", options.folder, temporary);
    if (folder.empty()) return 126;
    setenv("GANTRY_EXPLAIN", "on", 1);
    setenv("GANTRY_EXPLAIN_FILE", (folder / "%r-%p.json").c_str(), 1);
    const int status =
        run("explain", options.command,
            options.format == Format::json ? Output::to_standard_error : Output::shown);

    std::vector<std::string> texts;
    std::vector<plan::Path> paths;
    std::vector<plan::CollPath> collectives;
    std::vector<plan::IoPath> files;
    std::string notes;
    for (const fs::path& file : files_in(folder, ".json")) {
        std::string text = contents(file);
        Result<plan::Record> read = plan::record_from_json(text);
        if (!read.ok()) {
            fmt::print(stderr, "gantry explain: {}: {}\n", file.string(), read.status().text());
            continue;
        }
        texts.push_back(std::move(text));
        paths.insert(paths.end(), read->paths.begin(), read->paths.end());
        collectives.insert(collectives.end(), read->collectives.begin(), read->collectives.end());
        files.insert(files.end(), read->files.begin(), read->files.end());
        notes += notes_text(*read);
    }
    if (texts.empty() && status == kNotStarted) return status;  // who could not start it said why
    if (texts.empty())
        fmt::print(stderr,
                   "gantry explain: no rank recorded a message. Did the command run with Gantry's "
                   "libmpi_abi.so.1, and reach MPI_Finalize?\n");
    else
        print(texts, paths, coll_table(std::move(collectives)) + io_table(files) + notes, options);
    return status;
}

}  // namespace gantry::tool
