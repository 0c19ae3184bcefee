// SPDX-License-Identifier: BSD-3-Clause
//
// mpiexec starts the ranks of a job on this machine and serves PMI-1 to them. On clusters the
// launcher of the cluster (srun, Hydra, prterun) does this; a Gantry program runs under each of
// them, and any PMI-1 program runs under this one.
#include "binding.hpp"
#include "handover.hpp"
#include "launcher.hpp"
#include "options.hpp"
#include "personality.hpp"
#include "this_machine.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argument_count, char** argument_values) {
    using namespace gantry::mpiexec;
    // Standard streams must be open, else the first descriptors we open would take their numbers.
    while (true) {
        const int descriptor = open("/dev/null", O_RDWR);
        if (descriptor > STDERR_FILENO || descriptor < 0) {
            if (descriptor >= 0) close(descriptor);
            break;
        }
    }
    const std::vector<std::string> arguments(argument_values + 1, argument_values + argument_count);
    CommandLine line = parse(arguments);
    switch (line.wish) {
        case Wish::show_help: std::fputs(help_text(), stdout); return 0;
        case Wish::show_version: std::puts("mpiexec (Gantry) " GANTRY_VERSION); return 0;
        case Wish::explain_mistake:
            std::fprintf(stderr, "mpiexec: %s. See mpiexec --help\n", line.mistake.c_str());
            return 2;
        case Wish::run: break;
    }
    if (line.options.serve >= 0) return Launcher(std::move(line.options), {}, {}).run();
    take_this_machine(line.options);
    const Switched switched = use_personalities(line.options);
    if (!switched.mistake.empty()) {
        std::fprintf(stderr, "mpiexec: %s\n", switched.mistake.c_str());
        return 2;
    }
    for (std::size_t at = 0; at < switched.notes.size() && !line.options.quiet;) {
        const std::size_t end = switched.notes.find('\n', at);
        std::fprintf(stderr, "mpiexec: %s\n", switched.notes.substr(at, end - at).c_str());
        at = end + 1;
    }
    if (line.options.wants_another_launcher()) return hand_over(line.options);
    if (line.options.input_rank >= line.options.total_ranks()) {
        std::fprintf(stderr, "mpiexec: --stdin %d: the ranks are 0 to %d\n",
                     line.options.input_rank, line.options.total_ranks() - 1);
        return 2;
    }
    if (const std::string ignored = what_is_ignored(line.options); !ignored.empty())
        std::fprintf(stderr, "mpiexec: %s\n", ignored.c_str());
    Binding binding = binding_for(line.options);
    if (!binding.mistake.empty()) {
        std::fprintf(stderr, "mpiexec: %s\n", binding.mistake.c_str());
        return 2;
    }
    GpuBinding gpus = gpus_for(line.options, binding);
    if (!gpus.mistake.empty()) {
        std::fprintf(stderr, "mpiexec: %s\n", gpus.mistake.c_str());
        return 2;
    }
    if (line.options.report_bindings) std::fputs((report(binding) + report(gpus)).c_str(), stderr);
    return Launcher(std::move(line.options), std::move(binding), std::move(gpus)).run();
}
