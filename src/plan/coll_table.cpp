// SPDX-License-Identifier: BSD-3-Clause
#include "plan/coll_table.hpp"

#include "plan/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::plan {
namespace {

// Apart from how often, and for which sizes beside the largest.
bool same_story(const CollPath& a, const CollPath& b) {
    return a.operation == b.operation && a.ranks == b.ranks && a.how == b.how && a.why == b.why &&
           a.losers == b.losers;
}

std::string losers_text(const CollPath& path) {
    std::string beaten, not_possible;
    for (const CollPath::Loser& loser : path.losers) {
        std::string& list = loser.expected == 0 ? not_possible : beaten;
        if (!list.empty()) list += "; ";
        if (loser.expected == 0)
            list += fmt::format("{}: {}", loser.algorithm, loser.why);
        else
            list += fmt::format("{} {}", loser.algorithm, time_text(loser.expected));
    }
    std::string text;
    if (!beaten.empty()) text += "      others        " + beaten + "\n";
    if (!not_possible.empty()) text += "      not possible  " + not_possible + "\n";
    return text;
}

}  // namespace

void CollRecord::add(const CollQuestion& question, const CollChoice& choice) {
    Entry& entry = entries_[{question.operation, question.shape.ranks, choice.plan.algorithm}];
    if (entry.calls == 0 || question.bytes > entry.largest) {
        entry.choice = choice;
        entry.largest = question.bytes;
    }
    if (entry.calls == 0 || question.bytes < entry.smallest) entry.smallest = question.bytes;
    ++entry.calls;
}

std::vector<CollPath> CollRecord::paths() const {
    std::vector<CollPath> rows;
    for (const auto& [key, entry] : entries_) {
        CollPlan how = entry.choice.plan;
        how.why = "";
        CollPath row{.operation = std::string(name(key.operation)),
                     .ranks = key.ranks,
                     .smallest = entry.smallest,
                     .largest = entry.largest,
                     .calls = entry.calls,
                     .how = describe(how),
                     .expected = entry.choice.plan.expected,
                     .why = entry.choice.plan.why,
                     .losers = {}};
        for (int i = 0; i < entry.choice.rejected_count; ++i) {
            const CollRejected& lost = entry.choice.rejected[static_cast<std::size_t>(i)];
            row.losers.push_back({std::string(name(lost.algorithm)), lost.expected, lost.why});
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string coll_table(std::vector<CollPath> paths) {
    std::vector<CollPath> rows;
    for (CollPath& path : paths) {
        const auto same =
            std::ranges::find_if(rows, [&](const CollPath& row) { return same_story(row, path); });
        if (same == rows.end()) {
            rows.push_back(std::move(path));
            continue;
        }
        same->calls += path.calls;
        same->smallest = std::min(same->smallest, path.smallest);
        same->largest = std::max(same->largest, path.largest);
    }
    if (rows.empty()) return {};
    std::string text = "collectives (calls of all ranks):\n";
    for (const CollPath& row : rows) {
        std::string size = bytes_text(row.largest);
        if (row.smallest != row.largest) size = bytes_text(row.smallest) + " to " + size;
        text += fmt::format("  {:<14}  {} ranks  {}  {} calls  {}\n", row.operation, row.ranks,
                            size, row.calls, row.how);
        text +=
            fmt::format("      why           {}; expected {}\n", row.why, time_text(row.expected));
        text += losers_text(row);
    }
    return text;
}

}  // namespace gantry::plan
