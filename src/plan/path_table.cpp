// SPDX-License-Identifier: BSD-3-Clause
#include "plan/path_table.hpp"

#include "plan/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <tuple>

namespace gantry::plan {
namespace {

// Rows of one story and the pairs of ranks that it happened to.
struct Story {
    Path path;
    std::vector<std::pair<int, int>> pairs;  // (from, to)
};

std::pair<int, int> direction(const Path& path) {
    return path.received ? std::pair(path.peer, path.rank) : std::pair(path.rank, path.peer);
}

// Losers are compared by what was said of them: their times grow with the size.
bool same_verdict(const Path& a, const Path& b) {
    return std::ranges::equal(a.losers, b.losers, [](const auto& one, const auto& other) {
        return one.protocol == other.protocol && one.why == other.why;
    });
}
bool same_way(const Path& a, const Path& b) {
    return a.received == b.received && a.source == b.source && a.sink == b.sink &&
           a.protocol == b.protocol && a.executor == b.executor && a.chunk == b.chunk &&
           a.depth == b.depth && a.why == b.why;
}

void absorb(Path& into, const Path& other) {
    if (other.largest > into.largest) {
        into.how = other.how;
        into.expected = other.expected;
        into.opening = other.opening;
        into.losers = other.losers;
    }
    into.smallest = std::min(into.smallest, other.smallest);
    into.largest = std::max(into.largest, other.largest);
    into.messages += other.messages;
    into.bytes += other.bytes;
    into.staged += other.staged;
}

std::vector<Story> stories(std::vector<Path> paths) {
    std::ranges::stable_sort(paths, {}, [](const Path& path) {
        return std::tuple(direction(path), path.received, path.source, path.sink, path.smallest);
    });
    // Neighbouring sizes of one pair that went the same way.
    std::vector<Path> merged;
    for (const Path& path : paths) {
        if (!merged.empty() && direction(merged.back()) == direction(path) &&
            same_way(merged.back(), path) && same_verdict(merged.back(), path))
            absorb(merged.back(), path);
        else
            merged.push_back(path);
    }
    // Other pairs with the same row.
    std::vector<Story> result;
    for (const Path& path : merged) {
        auto same = std::ranges::find_if(result, [&](const Story& story) {
            return same_way(story.path, path) && same_verdict(story.path, path) &&
                   story.path.smallest == path.smallest && story.path.largest == path.largest;
        });
        if (same == result.end()) {
            result.push_back({path, {direction(path)}});
        } else {
            absorb(same->path, path);
            same->pairs.push_back(direction(path));
        }
    }
    return result;
}

std::string pairs_text(const std::vector<std::pair<int, int>>& pairs) {
    constexpr std::size_t kShown = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(pairs.size(), kShown); ++i)
        text += fmt::format("{}{}->{}", i == 0 ? "" : " ", pairs[i].first, pairs[i].second);
    if (pairs.size() > kShown) text += fmt::format(" +{} pairs", pairs.size() - kShown);
    return text;
}

std::string size_text(const Path& path) {
    if (path.smallest == path.largest) return bytes_text(path.largest);
    return bytes_text(path.smallest) + " - " + bytes_text(path.largest);
}

// A mapping that must be opened first is paid for by the messages of its memory together.
std::string expected_text(const Path& path) {
    std::string text =
        fmt::format("{} expected for {}", time_text(path.expected), bytes_text(path.largest));
    if (path.opening > 0)
        text += fmt::format(" ({} to copy, {} as a share of opening the memory)",
                            time_text(path.expected - path.opening), time_text(path.opening));
    return text;
}

// The losers in three lines: slower ones, cheaper ones that a settled answer did not ask (a limit
// of the user's), and what was not possible at all.
std::string losers_text(const Path& path) {
    std::string beaten, passed_over, not_possible;
    auto join = [](std::string& list, const std::string& entry) {
        list += (list.empty() ? "" : "; ") + entry;
    };
    for (const Path::Loser& loser : path.losers) {
        if (loser.protocol == "self") continue;  // never a surprise between two ranks
        const std::string because = loser.why == "slower" ? "" : ", " + loser.why;
        if (loser.expected == 0)
            join(not_possible, fmt::format("{}: {}", loser.protocol, loser.why));
        else if (loser.expected < path.expected)
            join(passed_over, fmt::format("{} {}", loser.protocol, time_text(loser.expected)));
        else
            join(beaten,
                 fmt::format("{} {} ({:.2g}x){}", loser.protocol, time_text(loser.expected),
                             static_cast<double>(loser.expected) /
                                 static_cast<double>(std::max<Nanoseconds>(path.expected, 1)),
                             because));
    }
    std::string text;
    if (!beaten.empty()) text += "      beat          " + beaten + "\n";
    if (!passed_over.empty()) text += "      passed over   " + passed_over + "\n";
    if (!not_possible.empty()) text += "      not possible  " + not_possible + "\n";
    return text;
}

using Columns = std::array<std::string, 7>;
constexpr Columns kHeadings = {"ranks", "memory",        "size",  "messages",
                               "path",  "chunk x depth", "staged"};

Columns columns(const Story& story) {
    const Path& path = story.path;
    const bool pieces = path.protocol == "pipeline";
    return {pairs_text(story.pairs),
            path.source + " -> " + path.sink,
            size_text(path),
            fmt::format("{}", path.messages),
            path.protocol,
            pieces ? fmt::format("{} x {}", bytes_text(path.chunk), path.depth) : "-",
            path.staged == 0 ? "-" : bytes_text(path.staged)};
}

std::string line(const Columns& cells, const std::array<std::size_t, 7>& widths) {
    std::string text = " ";
    for (std::size_t i = 0; i < cells.size(); ++i)
        text += fmt::format(" {:<{}} ", cells[i], widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
}

}  // namespace

std::string path_table(std::vector<Path> paths, Show show) {
    // The receiver sees both ends, so its rows say everything once.
    if (show == Show::received)
        std::erase_if(paths, [](const Path& path) { return !path.received; });
    if (paths.empty()) return "  none: no message was sent\n";
    const std::vector<Story> rows = stories(std::move(paths));
    std::array<std::size_t, 7> widths{};
    for (std::size_t i = 0; i < widths.size(); ++i) {
        widths[i] = kHeadings[i].size();
        for (const Story& story : rows)
            widths[i] = std::max(widths[i], columns(story)[i].size());
    }
    std::string text = line(kHeadings, widths);
    for (const Story& story : rows) {
        text += line(columns(story), widths);
        text +=
            fmt::format("      how           {}; {}\n", story.path.how, expected_text(story.path));
        text += fmt::format("      why           {}\n", story.path.why);
        text += losers_text(story.path);
    }
    return text;
}

std::string notes_text(const Record& record) {
    std::string text;
    for (const std::string& note : record.notes)
        text += fmt::format("  rank {}: {}\n", record.rank, note);
    return text;
}

std::string to_json(const Record& record) {
    nlohmann::ordered_json document = {
        {"rank", record.rank}, {"paths", nlohmann::ordered_json::array()}, {"notes", record.notes}};
    for (const Path& path : record.paths) {
        nlohmann::ordered_json losers = nlohmann::ordered_json::array();
        for (const Path::Loser& loser : path.losers)
            losers.push_back({{"protocol", loser.protocol},
                              {"expected_ns", loser.expected},
                              {"why", loser.why}});
        document["paths"].push_back({{"peer", path.peer},
                                     {"received", path.received},
                                     {"source", path.source},
                                     {"sink", path.sink},
                                     {"smallest", path.smallest},
                                     {"largest", path.largest},
                                     {"messages", path.messages},
                                     {"bytes", path.bytes},
                                     {"staged", path.staged},
                                     {"protocol", path.protocol},
                                     {"executor", path.executor},
                                     {"how", path.how},
                                     {"chunk", path.chunk},
                                     {"depth", path.depth},
                                     {"expected_ns", path.expected},
                                     {"opening_ns", path.opening},
                                     {"why", path.why},
                                     {"rejected", losers}});
    }
    for (const CollPath& path : record.collectives) {
        nlohmann::ordered_json losers = nlohmann::ordered_json::array();
        for (const CollPath::Loser& loser : path.losers)
            losers.push_back({{"algorithm", loser.algorithm},
                              {"expected_ns", loser.expected},
                              {"why", loser.why}});
        document["collectives"].push_back({{"operation", path.operation},
                                           {"ranks", path.ranks},
                                           {"smallest", path.smallest},
                                           {"largest", path.largest},
                                           {"calls", path.calls},
                                           {"how", path.how},
                                           {"expected_ns", path.expected},
                                           {"why", path.why},
                                           {"rejected", losers}});
    }
    if (!record.files.empty()) document["files"] = io_paths_to_json(record.files);
    return document.dump(2) + "\n";
}

namespace {

std::vector<CollPath> collectives_from(const nlohmann::ordered_json& document) {
    std::vector<CollPath> paths;
    if (!document.contains("collectives") || !document["collectives"].is_array()) return paths;
    for (const auto& row : document["collectives"]) {
        if (!row.is_object()) continue;
        CollPath path;
        path.operation = row.value("operation", "");
        path.ranks = row.value("ranks", 0);
        path.smallest = row.value("smallest", Bytes{0});
        path.largest = row.value("largest", Bytes{0});
        path.calls = row.value("calls", std::uint64_t{0});
        path.how = row.value("how", "");
        path.expected = row.value("expected_ns", Nanoseconds{0});
        path.why = row.value("why", "");
        if (row.contains("rejected"))
            for (const auto& loser : row["rejected"])
                path.losers.push_back({loser.value("algorithm", ""),
                                       loser.value("expected_ns", Nanoseconds{0}),
                                       loser.value("why", "")});
        paths.push_back(std::move(path));
    }
    return paths;
}

}  // namespace

Result<Record> record_from_json(std::string_view text) {
    const auto document = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!document.is_object() || !document.contains("paths") || !document["paths"].is_array())
        return failure(MPI_ERR_OTHER, "a record of paths is not the JSON that Gantry writes");
    Record record;
    record.rank = document.value("rank", 0);
    record.collectives = collectives_from(document);
    record.files = io_paths_from(document);
    if (document.contains("notes") && document["notes"].is_array())
        for (const auto& note : document["notes"])
            if (note.is_string()) record.notes.push_back(note.get<std::string>());
    for (const auto& row : document["paths"]) {
        if (!row.is_object())
            return failure(MPI_ERR_OTHER, "a record of paths has a row that is not an object");
        Path path;
        path.rank = record.rank;
        path.peer = row.value("peer", 0);
        path.received = row.value("received", false);
        path.source = row.value("source", "");
        path.sink = row.value("sink", "");
        path.smallest = row.value("smallest", Bytes{0});
        path.largest = row.value("largest", Bytes{0});
        path.messages = row.value("messages", std::uint64_t{0});
        path.bytes = row.value("bytes", Bytes{0});
        path.staged = row.value("staged", Bytes{0});
        path.protocol = row.value("protocol", "");
        path.executor = row.value("executor", "");
        path.how = row.value("how", "");
        path.chunk = row.value("chunk", Bytes{0});
        path.depth = row.value("depth", 1);
        path.expected = row.value("expected_ns", Nanoseconds{0});
        path.opening = row.value("opening_ns", Nanoseconds{0});
        path.why = row.value("why", "");
        if (row.contains("rejected"))
            for (const auto& loser : row["rejected"])
                path.losers.push_back({loser.value("protocol", ""),
                                       loser.value("expected_ns", Nanoseconds{0}),
                                       loser.value("why", "")});
        record.paths.push_back(std::move(path));
    }
    return record;
}

}  // namespace gantry::plan
