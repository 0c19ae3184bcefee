// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting: poll the condition, drive the engine, and when nothing has happened for a while let
// other processes run.
#include "mpi/engine/pending.hpp"

#include "mpi/engine/boundary.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/program_calls.hpp"
#include "mpi/request/status.hpp"

namespace gantry::mpi {

Pending::Pending(Engine& engine, Task<Status> task)
    : kind_(Kind::task), engine_(&engine), task_(std::move(task)) {
    if (!task_.started()) task_.start();
}

bool Pending::poll() {
    switch (kind_) {
        case Kind::over: return true;
        case Kind::request:
            if (!request_->done) return false;
            write(user_status_, request_->outcome);
            status_ = request_->status;
            engine_->messenger().discard(request_);
            if (!status_.ok()) [[unlikely]]
                p2p::end_if_pending(status_);
            break;
        case Kind::task:
            if (!task_.done()) return false;
            status_ = task_.take();
            break;
        case Kind::polled:
            if (!polled_.function(polled_, status_)) return false;
            break;
    }
    kind_ = Kind::over;
    return true;
}

bool Pending::ended() {
    switch (kind_) {
        case Kind::over: return true;
        case Kind::request: return request_->done;
        case Kind::task: return task_.done();
        case Kind::polled: return polled_.look(polled_);
    }
    return true;
}

Status wait(Pending pending) {
    if (!pending.poll()) {
        Boundary* boundary = process().boundary_at_any_time;
        if (boundary != nullptr && boundary->visited_once()) {
            boundary->wait(pending);
        } else {
            Engine& engine = *pending.engine();
            while (!pending.poll()) {
                const bool something_happened = engine.progress_waiting() > 0;
                if (program_calls_due(engine.executor())) [[unlikely]]
                    make_program_calls(engine.executor());
                engine.rest_unless(something_happened);
            }
        }
    }
    // The program may now compute for long: nothing that it sent may wait here meanwhile.
    if (Engine* engine = pending.engine()) engine->flush();
    return pending.take();
}

void turn_in_passing(Engine& engine) {
    if (engine.is_crowded())
        turn(engine);
    else
        engine.progress();
}

void turn(Engine& engine) {
    Boundary* boundary = process().boundary_at_any_time;
    const bool something_happened = engine.progress() > 0;
    if (program_calls_due(engine.executor())) [[unlikely]]
        make_program_calls(engine.executor());
    engine.rest_unless(something_happened,
                       boundary != nullptr ? boundary->lock_to_give_up() : nullptr);
}

}  // namespace gantry::mpi
