// SPDX-License-Identifier: BSD-3-Clause
//
// The commands of `gantry`. Each is one file; its return value is the program's exit status.
#pragma once

#include <string>
#include <vector>

namespace gantry::tool {

enum class Format { text, json, markdown };

int info(Format format, const std::string& check_file);

struct ExplainOptions {
    Format format = Format::text;
    bool all = false;    // the senders' rows too
    std::string folder;  // where ranks of other machines can write as well; empty: a temporary one
    std::vector<std::string> command;
};
int explain(const ExplainOptions& options);

struct TraceOptions {
    std::string output = "trace.json";
    std::string folder;                // as above
    std::vector<std::string> command;  // empty: what lies in the folder is put together
};
int trace(const TraceOptions& options);

// Starts gantry-world, which stands beside this program or in libexec/gantry, with these words.
int world(const std::vector<std::string>& words);

int doctor(Format format);

// Shell commands after which programs built for another MPI ("mpich", "openmpi") load Gantry's library.
int env(const std::string& mpi);

struct TuneOptions {
    int gpu = 0;
    std::string output;  // empty: where Gantry looks for it
};
int tune(const TuneOptions& options);

}  // namespace gantry::tool
