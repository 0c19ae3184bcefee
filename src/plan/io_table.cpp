// SPDX-License-Identifier: BSD-3-Clause
#include "plan/io_table.hpp"

#include "plan/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace gantry::plan {
namespace {

bool same_story(const IoPath& a, const IoPath& b) {
    return a.file == b.file && a.operation == b.operation && a.ranks == b.ranks &&
           a.memory == b.memory && a.way == b.way && a.why == b.why;
}

}  // namespace

// Linear search: a program has a few files and a few ways for each.
void IoRecord::add(const IoPath& path) {
    const auto same =
        std::ranges::find_if(paths_, [&path](const IoPath& row) { return same_story(row, path); });
    if (same == paths_.end()) {
        paths_.push_back(path);
        return;
    }
    if (path.largest > same->largest) same->how = path.how;
    same->smallest = std::min(same->smallest, path.smallest);
    same->largest = std::max(same->largest, path.largest);
    same->calls += path.calls;
    same->bytes += path.bytes;
}

std::string io_table(const std::vector<IoPath>& paths) {
    IoRecord rows;
    for (const IoPath& path : paths)
        rows.add(path);
    if (rows.empty()) return {};
    std::string text = "files (calls of all ranks):\n";
    for (const IoPath& row : rows.paths()) {
        std::string size = bytes_text(row.largest);
        if (row.smallest != row.largest) size = bytes_text(row.smallest) + " to " + size;
        text += fmt::format("  {:<9}  {}  {} memory  {}  {} calls  {}\n", row.operation, row.file,
                            row.memory, size, row.calls, row.way);
        text += fmt::format("      how           {}\n      why           {}\n", row.how, row.why);
    }
    return text;
}

nlohmann::ordered_json io_paths_to_json(const std::vector<IoPath>& paths) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const IoPath& path : paths)
        rows.push_back({{"file", path.file},
                        {"operation", path.operation},
                        {"ranks", path.ranks},
                        {"memory", path.memory},
                        {"smallest", path.smallest},
                        {"largest", path.largest},
                        {"calls", path.calls},
                        {"bytes", path.bytes},
                        {"way", path.way},
                        {"how", path.how},
                        {"why", path.why}});
    return rows;
}

std::vector<IoPath> io_paths_from(const nlohmann::ordered_json& document) {
    std::vector<IoPath> paths;
    if (!document.contains("files") || !document["files"].is_array()) return paths;
    for (const auto& row : document["files"]) {
        if (!row.is_object()) continue;
        paths.push_back({.file = row.value("file", ""),
                         .operation = row.value("operation", ""),
                         .ranks = row.value("ranks", 1),
                         .memory = row.value("memory", ""),
                         .smallest = row.value("smallest", Bytes{0}),
                         .largest = row.value("largest", Bytes{0}),
                         .calls = row.value("calls", std::uint64_t{0}),
                         .bytes = row.value("bytes", Bytes{0}),
                         .way = row.value("way", ""),
                         .how = row.value("how", ""),
                         .why = row.value("why", "")});
    }
    return paths;
}

}  // namespace gantry::plan
