// SPDX-License-Identifier: BSD-3-Clause
//
// The many lines of a PMI-1 spawn, as the server reads them: one block of "key=value" lines for each
// program, between "mcmd=spawn" and "endcmd". A value is the rest of its line, whatever it holds.
#pragma once

#include "job/job.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::job {

struct SpawnRequest {
    std::vector<SpawnedProgram> programs;
    std::vector<std::pair<std::string, std::string>> preput;  // for the store of the new job
};

class SpawnLines {
  public:
    // Whether the lines to come belong to a request.
    bool open() const { return open_; }
    void begin() { open_ = true; }
    // The whole request, with the last line of its last block.
    std::optional<SpawnRequest> take(std::string_view line);

  private:
    std::string value(const std::string& key) const;
    int number(const std::string& key) const;
    int count(const std::string& key) const;
    void end_of_block();

    bool open_ = false;
    std::map<std::string, std::string> lines_;  // of the block
    SpawnRequest request_;
};

}  // namespace gantry::job
