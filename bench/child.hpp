// SPDX-License-Identifier: BSD-3-Clause
//
// Running a program to its end, with what it printed.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gantry::bench {

struct Command {
    std::vector<std::string> words;
    std::vector<std::pair<std::string, std::string>> environment;  // added to ours
};
struct Ended {
    int status = 0;      // exit code, or 128 + signal
    std::string output;  // standard output and standard error together
};

// Ends it (SIGTERM, then SIGKILL) after so many seconds; the output then says so.
Ended run(const Command& command, int seconds);

// One that runs meanwhile, its output dropped; ended with the object.
class Background {
  public:
    explicit Background(const Command& command);
    ~Background();
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

  private:
    int pid_;
};

}  // namespace gantry::bench
