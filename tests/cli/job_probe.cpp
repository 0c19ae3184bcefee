// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that knows the job layer and nothing of MPI, for the tests of launchers: it joins the job
// and then does what its arguments say.
//
//   exchange BYTES       each rank puts that many bytes, reads everybody's, finalizes; prints
//                        "rank R of N on node M"
//   abort RANK CODE      that rank aborts, the others wait for ever
//   leave RANK CODE      that rank exits without finalize, the others wait for ever
//   desert RANK CODE     that rank exits, the others enter a fence
//   signal RANK NUMBER   that rank kills itself, the others wait for ever
//   avenge CODE          rank 1 kills itself; rank 0 sees that and aborts, as the library does
//   wait                 every rank waits for ever
//   after CODE           finalizes, then exits with that code
#include "base/clock.hpp"
#include "job/job.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace gantry;

[[noreturn]] void fail(const Status& status) {
    std::fprintf(stderr, "job_probe: %s\n", std::string(status.text()).c_str());
    _exit(99);
}

Status try_fence(job::Job& job, Executor& executor) {
    Task<Status> task = job.fence(executor);
    task.start();
    while (!task.done()) {
        job.progress();
        executor.run_ready();
        usleep(100);  // only spares the processor between two looks: 40 of these run at once
    }
    return task.take();
}

void fence(job::Job& job, Executor& executor) {
    if (Status failed = try_fence(job, executor)) fail(failed);
}

std::string value_of(int rank, std::size_t bytes) {
    std::string value(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i)
        value[i] = static_cast<char>(static_cast<std::size_t>(rank) * 31 + i);
    return value;
}

void exchange(job::Job& job, Executor& executor, std::size_t bytes) {
    if (Status failed = job.put("value", value_of(job.rank(), bytes))) fail(failed);
    fence(job, executor);
    for (int rank = 0; rank < job.size(); ++rank) {
        const Result<std::string> value = job.get(rank, "value");
        if (!value.ok()) fail(value.status());
        if (value.value() != value_of(rank, bytes))
            fail(failure(1, "rank {} has put something else", rank));
    }
    if (Status failed = job.finalize()) fail(failed);
    std::printf("rank %d of %d on node %d, local %d of %d, app %d, launcher %s\n", job.rank(),
                job.size(), job.nodes()[static_cast<std::size_t>(job.rank())], job.local_rank(),
                job.local_size(), job.app_number(), job.launcher());
}

// A process gives up its program early in its end, before anybody can wait for it.
void wait_until_dying(const std::string& process) {
    char target[8];
    while (readlink(("/proc/" + process + "/exe").c_str(), target, sizeof target) >= 0)
        usleep(
            100);  // between two looks; there is nothing to wait on for a process that is no child
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "exchange";
    const int first = argc > 2 ? std::atoi(argv[2]) : 0;
    const int second = argc > 3 ? std::atoi(argv[3]) : 0;
    const SteadyClock clock;
    Executor executor(clock);
    const Result<config::Config> config = config::from_environment();
    if (!config.ok()) fail(config.status());
    auto discovered = job::discover(config.value());
    if (!discovered.ok()) fail(discovered.status());
    job::Job& job = *discovered.value();
    if (what == "exchange") {
        exchange(job, executor, static_cast<std::size_t>(first));
        return 0;
    }
    if (Status failed = job.put("process", std::to_string(getpid()))) fail(failed);
    fence(job, executor);
    if (what == "avenge") {
        const std::string victim = job.get(1, "process").value();
        if (job.rank() == 1) raise(SIGKILL);
        wait_until_dying(victim);
        job.abort(first, "rank 1 died");
        _exit(first);
    }
    if (what == "after") {
        if (Status failed = job.finalize()) fail(failed);
        return first;
    }
    if (job.rank() == first && what == "abort") {
        job.abort(second, "as the arguments say");
        _exit(second);
    }
    if (job.rank() == first && (what == "leave" || what == "desert")) _exit(second);
    if (what == "desert") {
        const Status failed = try_fence(job, executor);
        discovered.value().reset();  // rank 0 of a rendezvous answers until the others know, too
        fail(failed.ok() ? failure(1, "rank {} left and the fence did not fail", first) : failed);
    }
    if (job.rank() == first && what == "signal") {
        signal(second, SIG_DFL);  // a sanitizer has handlers of its own
        raise(second);
    }
    std::puts("waiting");
    std::fflush(stdout);
    while (true)
        pause();
}
