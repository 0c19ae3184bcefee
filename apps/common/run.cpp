// SPDX-License-Identifier: BSD-3-Clause
#include "application.hpp"
#include "mistake.hpp"
#include "openacc.hpp"
#include "report.hpp"

#include <cstdarg>
#include <cstdio>

namespace gantry::apps {
namespace {

int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

std::string written(const char* format, va_list words) {
    va_list again;
    va_copy(again, words);
    std::string line(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, format, again)), ' ');
    va_end(again);
    std::vsnprintf(line.data(), line.size() + 1, format, words);
    return line;
}

void run_steps(Application& application, const CommonOptions& options,
               const std::string& exchange) {
    application.use(exchange);
    application.start();
    application.watch().clear();
    const Whole first = application.step_number();
    for (Whole n = 1; n <= options.steps; ++n) {
        application.watch().start();
        application.step();
        if (n == options.warm_up) {
            application.finish_step();
            application.watch().clear();
        }
        const bool reports = options.report > 0 && n % options.report == 0;
        const bool saves = options.checkpoint_every > 0 && n % options.checkpoint_every == 0;
        if (!reports && !saves && n < options.steps) {
            application.watch().lap(Part::compute);
            continue;
        }
        application.finish_step();
        if (reports)
            say("%s: step %lld of %lld: %s", exchange.c_str(), application.step_number(),
                first + options.steps, application.state().c_str());
        if (saves && n < options.steps) application.save_checkpoint(options.checkpoint);
    }
}

}  // namespace

std::string text(const char* format, ...) {
    va_list words;
    va_start(words, format);
    std::string line = written(format, words);
    va_end(words);
    return line;
}

void say(const char* format, ...) {
    if (world_rank() != 0) return;
    va_list words;
    va_start(words, format);
    std::printf("%s\n", written(format, words).c_str());
    va_end(words);
    std::fflush(stdout);
}

int run(Application& application, const CommonOptions& options) {
    say("%s", application.words().c_str());
    std::vector<Result> results;
    const Whole timed = options.steps - options.warm_up;
    for (const std::string& exchange : options.exchanges) {
        run_steps(application, options, exchange);
        results.push_back(result_of(application, exchange, timed));
        if (options.report > 0 || results.size() == 1) print_heading();
        print_row(results.back());
    }
    if (!options.checkpoint.empty()) application.save_checkpoint(options.checkpoint);
    application.finish();
    if (!options.json.empty()) write_json(options.json, application, timed, results);
    for (const Result& result : results)
        if (result.fields != results[0].fields) {
            say("fields differ: %s is not %s", result.exchange.c_str(),
                results[0].exchange.c_str());
            return 1;
        }
    if (results.size() > 1)
        say("fields are alike, bit for bit, in all %zu exchanges", results.size());
    return 0;
}

int run_program(int argc, char** argv, int (*program)(int argc, char** argv)) {
    MPI_Init(&argc, &argv);
    int status = 0;
    try {
        status = program(argc, argv);
    } catch (const Mistake& mistake) {
        if (world_rank() == 0) std::fprintf(stderr, "%s: %s\n", argv[0], mistake.what());
        status = 2;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: rank %d: %s\n", argv[0], world_rank(), failure.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    stop_openacc();
    driver().stop();
    MPI_Finalize();
    return status;
}

}  // namespace gantry::apps
