// SPDX-License-Identifier: BSD-3-Clause
//
// The Test forms: look, make progress once if that is needed, look again. Also MPI_Request_free,
// MPI_Cancel and MPI_Request_get_status. Other threads come in with the progress and may complete what
// was looked at, so it is looked up again.
#include "mpi/bodies.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/engine/pending.hpp"
#include "mpi/request/completion.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"

namespace gantry::mpi {
namespace {

Engine& engine() {
    return *process().engine;
}

// A look that found nothing is followed by one turn of progress and the last look.
template <class Look>
Any look_twice(const Look& look) {
    Any found = look();
    if (found == Any::none_yet) {
        turn(engine());
        found = look();
    }
    return found;
}

}  // namespace

Status test(MPI_Request* request, int* flag, MPI_Status* status) {
    *flag = 1;
    if (*request == MPI_REQUEST_NULL) {
        write_empty(status);
        return success();
    }
    Request* object = find(*request);
    if (!Requests::over(*object)) {
        turn(engine());
        if (*request == MPI_REQUEST_NULL) {
            write_empty(status);
            return success();
        }
        object = find(*request);
        if (object == nullptr) return completed_by_another();
    }
    if (Requests::over(*object)) return engine().requests().retire(*request, *object, status);
    *flag = 0;
    return success();
}

Status testall(int count, MPI_Request* array_of_requests, int* flag,
               MPI_Status* array_of_statuses) {
    int first_open = 0;
    if (!all_over(array_of_requests, count, first_open)) {
        turn(engine());
        if (!all_over(array_of_requests, count, first_open)) {
            *flag = 0;
            return success();
        }
    }
    *flag = 1;
    return retire_all(engine(), array_of_requests, count, array_of_statuses);
}

Status testany(int count, MPI_Request* array_of_requests, int* index, int* flag,
               MPI_Status* status) {
    Status ended;
    const Any found = look_twice(
        [&] { return retire_any(engine(), array_of_requests, count, index, status, ended); });
    *flag = found != Any::none_yet;
    return ended;
}

Status testsome(int incount, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
                MPI_Status* array_of_statuses) {
    Status ended;
    look_twice([&] {
        return retire_some(engine(), array_of_requests, incount, outcount, array_of_indices,
                           array_of_statuses, ended);
    });
    return ended;
}

Status request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
    *flag = 1;
    if (request == MPI_REQUEST_NULL) {
        write_empty(status);
        return success();
    }
    Request* object = find(request);
    if (!Requests::over(*object)) {
        turn(engine());
        object = find(request);
        if (object == nullptr) return completed_by_another();
    }
    *flag = Requests::over(*object);
    return *flag != 0 ? engine().requests().peek(*object, status) : success();
}

Status request_get_status_all(int count, const MPI_Request* array_of_requests, int* flag,
                              MPI_Status* array_of_statuses) {
    int first_open = 0;
    *flag = all_over(array_of_requests, count, first_open);
    if (*flag == 0) {
        turn(engine());
        *flag = all_over(array_of_requests, count, first_open);
    }
    return *flag != 0 ? peek_all(engine(), array_of_requests, count, array_of_statuses) : success();
}

Status request_get_status_any(int count, const MPI_Request* array_of_requests, int* index,
                              int* flag, MPI_Status* status) {
    Status ended;
    const Any found = look_twice(
        [&] { return peek_any(engine(), array_of_requests, count, index, status, ended); });
    *flag = found != Any::none_yet;
    return ended;
}

Status request_get_status_some(int incount, const MPI_Request* array_of_requests, int* outcount,
                               int* array_of_indices, MPI_Status* array_of_statuses) {
    Status ended;
    look_twice([&] {
        return peek_some(engine(), array_of_requests, incount, outcount, array_of_indices,
                         array_of_statuses, ended);
    });
    return ended;
}

Status request_free(MPI_Request* request) {
    return engine().requests().free(*request, *find(*request));
}

Status cancel(MPI_Request* request) {
    Request* object = find(*request);
    Operation* operation = Requests::operation_of(*object);
    if (operation != nullptr && operation->generalized) {
        const int code = [function = operation->cancel, extra_state = operation->extra_state,
                          done = object->done] {
            const LetOthersIn program;
            return function(extra_state, done ? 1 : 0);
        }();
        if (code != MPI_SUCCESS)
            return failure(code, "the cancel function of a generalized request returned {}", code);
        return success();
    }
    object = Requests::at_work(*object);
    if (object == nullptr && operation != nullptr && operation->persistent())
        return failure(MPI_ERR_REQUEST, "MPI_Cancel of a persistent request that is not started");
    if (object == nullptr) return success();  // it is over
    if (object->kind == p2p::RequestKind::collective)
        return failure(MPI_ERR_REQUEST, "a nonblocking collective operation cannot be cancelled");
    // Whether it was in time is told by MPI_Test_cancelled.
    engine().messenger().cancel(*object);
    return success();
}

}  // namespace gantry::mpi
