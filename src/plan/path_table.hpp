// SPDX-License-Identifier: BSD-3-Clause
//
// The record of paths as rows of plain text and numbers: what Explain fills, what travels as JSON
// from the ranks to the program `gantry explain`, and what both print as a table. Rows that tell
// the same story (neighbouring sizes, other peers) are printed as one.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"
#include "plan/coll_table.hpp"
#include "plan/io_table.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::plan {

// One class of messages and the way it went.
struct Path {
    int rank = 0;  // who recorded it
    int peer = 0;
    bool received = false;
    std::string source, sink;  // memory kinds: "host", "pinned", "device", "managed", "unknown"
    Bytes smallest = 0, largest = 0;
    std::uint64_t messages = 0;
    Bytes bytes = 0;
    Bytes staged = 0;  // bytes that this rank copied into or out of staging slots
    std::string protocol;
    std::string executor;  // of its copies: "sender" or "receiver"
    std::string how;       // describe() of the largest message, without the reason
    Bytes chunk = 0;
    int depth = 1;
    Nanoseconds expected = 0;  // the model's time for the largest message
    Nanoseconds opening = 0;   // of it, its share of opening the memory
    std::string why;
    struct Loser {
        std::string protocol;
        Nanoseconds expected = 0;  // 0: not possible
        std::string why;
        bool operator==(const Loser&) const = default;
    };
    std::vector<Loser> losers;
};

// What one rank has recorded.
struct Record {
    int rank = 0;
    std::vector<Path> paths;
    std::vector<std::string> notes;  // a sentence each, of what no single path tells
    std::vector<CollPath> collectives = {};
    std::vector<IoPath> files = {};
};

enum class Show { received, all };

std::string path_table(std::vector<Path> paths, Show show);
// The notes of a rank, a line each; empty without any.
std::string notes_text(const Record& record);
std::string to_json(const Record& record);
Result<Record> record_from_json(std::string_view text);

}  // namespace gantry::plan
