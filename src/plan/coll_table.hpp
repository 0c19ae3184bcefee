// SPDX-License-Identifier: BSD-3-Clause
//
// The record of collectives as rows of plain text and numbers, beside that of messages
// (path_table.hpp): one row for each operation, algorithm and number of ranks.
#pragma once

#include "base/units.hpp"
#include "plan/coll_plan.hpp"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace gantry::plan {

struct CollPath {
    std::string operation;
    int ranks = 0;
    Bytes smallest = 0, largest = 0;
    std::uint64_t calls = 0;
    std::string how;           // describe() of the largest, without the reason
    Nanoseconds expected = 0;  // of the largest
    std::string why;
    struct Loser {
        std::string algorithm;
        Nanoseconds expected = 0;  // 0: not possible
        std::string why;
        bool operator==(const Loser&) const = default;
    };
    std::vector<Loser> losers;
    bool operator==(const CollPath&) const = default;
};

// What one rank records.
class CollRecord {
  public:
    void add(const CollQuestion& question, const CollChoice& choice);
    std::vector<CollPath> paths() const;
    bool empty() const { return entries_.empty(); }

  private:
    struct Key {
        Collective operation;
        int ranks;
        Algorithm algorithm;
        auto operator<=>(const Key&) const = default;
    };
    struct Entry {
        CollChoice choice;
        Bytes smallest = 0, largest = 0;
        std::uint64_t calls = 0;
    };
    std::map<Key, Entry> entries_;
};

// All ranks of a communicator take the same way, so rows of several ranks that say the same are one.
// Empty without rows.
std::string coll_table(std::vector<CollPath> paths);

}  // namespace gantry::plan
