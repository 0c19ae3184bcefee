// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic/ask_job.hpp"

#include "mpi/engine/engine.hpp"

namespace gantry::mpi {
namespace {

struct Asked {
    job::Job* job;
    const Task<Status>* question;
    static bool look(void* self) {
        const Asked& asked = *static_cast<Asked*>(self);
        asked.job->progress();
        return asked.question->done();
    }
};

}  // namespace

Task<Status> ask_job(Executor& executor, Engine& engine, Task<Status> question) {
    question.start();
    Asked asked{&engine.job(), &question};
    Status over = co_await engine.transfer().node_segment.until(executor, Asked::look, &asked);
    GANTRY_CO_TRY(over);
    co_return question.take();
}

}  // namespace gantry::mpi
