// SPDX-License-Identifier: BSD-3-Clause
//
// The record of reads and writes of files as rows of plain text and numbers, beside those of messages
// (path_table.hpp) and of collectives (coll_table.hpp): one row for each file, operation, way and reason.
#pragma once

#include "base/units.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::plan {

struct IoPath {
    std::string file;       // its name, as it was opened
    std::string operation;  // "read", "write", of all ranks together "read_all", "write_all"
    int ranks = 1;          // that take part in one call
    std::string memory;     // "host" or "device"
    Bytes smallest = 0, largest = 0;
    std::uint64_t calls = 0;
    Bytes bytes = 0;
    std::string way;  // one word or two: "direct", "two phases"
    std::string how;  // of the largest
    std::string why;
};

// What one rank records: rows that differ in sizes alone are one.
class IoRecord {
  public:
    void add(const IoPath& path);
    const std::vector<IoPath>& paths() const { return paths_; }
    bool empty() const { return paths_.empty(); }

  private:
    std::vector<IoPath> paths_;
};

// Rows of several ranks that say the same are one. Empty without rows.
std::string io_table(const std::vector<IoPath>& paths);

nlohmann::ordered_json io_paths_to_json(const std::vector<IoPath>& paths);
std::vector<IoPath> io_paths_from(const nlohmann::ordered_json& document);

}  // namespace gantry::plan
