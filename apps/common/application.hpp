// SPDX-License-Identifier: BSD-3-Clause
//
// What both applications are to their user: options, a run with one exchange after another, progress, and
// a table of where the time went. With several exchanges the fields must come out alike, bit for bit.
#pragma once

#include "exchange.hpp"
#include "grid.hpp"
#include "stopwatch.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;  // its header is long
}

namespace gantry::apps {

struct CommonOptions {
    std::vector<Whole> cells;
    Whole steps = 0, warm_up = -1, report = -1, checkpoint_every = 0;
    std::string decomposition = "3d", memory = "auto", allocation = "slab", precision = "double";
    std::vector<std::string> exchanges = {"datatypes"};
    bool overlap = false;
    std::size_t chunk_bytes = 256 * 1024;
    std::string checkpoint, restart, picture, json;
};

void add_common_options(CLI::App& command, CommonOptions& options);
// A file that could not be written is a Mistake before the first step, not an end behind the last one.
void check_folder_of(const char* option, const std::string& file);
// What needs more than one option to be judged; "all" becomes the list of exchanges.
void complete(CommonOptions& options);

class Application {
  public:
    virtual ~Application() = default;
    virtual const Grid& grid() const = 0;
    virtual Stopwatch& watch() = 0;
    virtual std::string words() const = 0;  // one line: what runs where
    virtual void use(const std::string& exchange) = 0;
    virtual void start() = 0;  // fields as at the beginning, or as in the file of --restart
    virtual Whole step_number() const = 0;
    virtual void step() = 0;
    virtual void finish_step() = 0;   // waits for all that step() began
    virtual std::string state() = 0;  // for progress: a few numbers; a collective call
    virtual std::uint64_t checksum() = 0;
    virtual Whole bytes_per_step() const = 0;  // sent by this rank
    virtual int messages_per_step() const = 0;
    virtual void save_checkpoint(const std::string& path) = 0;
    virtual void finish() = 0;  // results and pictures, after the last exchange's run
};

// Exit status: 0, or 1 when exchanges differ.
int run(Application& application, const CommonOptions& options);

// MPI_Init, the program, MPI_Finalize; what is thrown is said in one line.
int run_program(int argc, char** argv, int (*program)(int argc, char** argv));

// A line of standard output, by rank 0 alone.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

// This process's number among those of its node.
int number_on_node();
// "auto" is the device where there is one.
Memory memory_named(const std::string& words);

}  // namespace gantry::apps
