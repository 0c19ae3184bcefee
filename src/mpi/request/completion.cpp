// SPDX-License-Identifier: BSD-3-Clause
//
// Looking at arrays of requests. Errors of several requests are MPI_ERR_IN_STATUS, and only then is
// MPI_ERROR of the statuses written.
#include "mpi/request/completion.hpp"

#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"

#include <type_traits>
#include <vector>

namespace gantry::mpi {
namespace {

// Null when nothing is to be waited for at this place.
Request* active_at(const MPI_Request& handle) {
    if (handle == MPI_REQUEST_NULL) return nullptr;
    Request* request = find(handle);
    return request != nullptr && Requests::active(*request) ? request : nullptr;
}

MPI_Status* at(MPI_Status* statuses, int index) {
    return statuses != MPI_STATUSES_IGNORE ? statuses + index : nullptr;
}

// Tells and gives back, or only tells.
Status told(Engine& engine, MPI_Request& handle, Request& request, MPI_Status* status) {
    return engine.requests().retire(handle, request, status);
}
Status told(Engine& engine, const MPI_Request&, Request& request, MPI_Status* status) {
    return engine.requests().peek(request, status);
}

Status in_status(int failures, int of, const Status& first) {
    return failure(MPI_ERR_IN_STATUS, "{} of {} operations failed; the first says: {}", failures,
                   of, first.text());
}

template <class Handle>
Status tell_all(Engine& engine, Handle* handles, int first_to_tell, int count,
                MPI_Status* statuses) {
    int failures = 0;
    Status first;
    std::vector<int> codes;
    for (int i = first_to_tell; i < count; ++i) {
        MPI_Status* status = at(statuses, i);
        Request* request = active_at(handles[i]);
        Status ended;
        if (request != nullptr)
            ended = told(engine, handles[i], *request, status);
        else
            write_empty(status);
        if (!ended.ok()) {
            if (failures++ == 0) {
                first = ended;
                codes.assign(static_cast<std::size_t>(count), MPI_SUCCESS);
            }
            codes[static_cast<std::size_t>(i)] = ended.error_class();
        }
    }
    if (failures == 0) return success();
    for (int i = 0; i < count && statuses != MPI_STATUSES_IGNORE; ++i)
        statuses[i].MPI_ERROR = codes[static_cast<std::size_t>(i)];
    return in_status(failures, count, first);
}

template <class Handle>
Any tell_any(Engine& engine, Handle* handles, int count, int* index, MPI_Status* status,
             Status& ended) {
    bool any_active = false;
    for (int i = 0; i < count; ++i) {
        Request* request = active_at(handles[i]);
        if (request == nullptr) continue;
        any_active = true;
        if (!Requests::over(*request)) continue;
        *index = i;
        ended = told(engine, handles[i], *request, status);
        return Any::completed;
    }
    *index = MPI_UNDEFINED;
    if (any_active) return Any::none_yet;
    write_empty(status);
    return Any::no_active;
}

template <class Handle>
Any tell_some(Engine& engine, Handle* handles, int count, int* outcount, int* indices,
              MPI_Status* statuses, Status& ended) {
    bool any_active = false;
    int done = 0, failures = 0;
    Status first;
    std::vector<int> codes;
    for (int i = 0; i < count; ++i) {
        Request* request = active_at(handles[i]);
        if (request == nullptr) continue;
        any_active = true;
        if (!Requests::over(*request)) continue;
        Status one = told(engine, handles[i], *request, at(statuses, done));
        indices[done++] = i;
        if (!one.ok()) {
            if (failures++ == 0) first = one;
            codes.resize(static_cast<std::size_t>(done - 1), MPI_SUCCESS);
            codes.push_back(one.error_class());
        }
    }
    *outcount = any_active ? done : MPI_UNDEFINED;
    if (failures > 0) {
        codes.resize(static_cast<std::size_t>(done), MPI_SUCCESS);
        for (int i = 0; i < done && statuses != MPI_STATUSES_IGNORE; ++i)
            statuses[i].MPI_ERROR = codes[static_cast<std::size_t>(i)];
        ended = in_status(failures, done, first);
    }
    if (!any_active) return Any::no_active;
    return done > 0 ? Any::completed : Any::none_yet;
}

}  // namespace

Status completed_by_another() {
    return failure(MPI_ERR_REQUEST,
                   "another thread has completed this request meanwhile; one thread at a time may "
                   "wait for a request");
}

// What is not there any more, because another thread has completed it, is over.
bool all_over(const MPI_Request* handles, int count, int& first_open) {
    for (; first_open < count; ++first_open) {
        const Request* request = active_at(handles[first_open]);
        if (request != nullptr && !Requests::over(*request)) return false;
    }
    return true;
}

bool some_over(const MPI_Request* handles, int count) {
    bool any_active = false;
    for (int i = 0; i < count; ++i) {
        const Request* request = active_at(handles[i]);
        if (request == nullptr) continue;
        if (Requests::over(*request)) return true;
        any_active = true;
    }
    return !any_active;
}

void retire_front(Engine& engine, MPI_Request* handles, int over, MPI_Status* statuses,
                  int& retired) {
    for (; retired < over; ++retired) {
        MPI_Request& handle = handles[retired];
        Request* request = active_at(handle);
        if (request == nullptr) {
            write_empty(at(statuses, retired));
            continue;
        }
        if (Requests::operation_of(*request) != nullptr || !request->status.ok()) return;
        if (!request->done) return;  // another thread has put a new one there
        (void)told(engine, handle, *request, at(statuses, retired));
    }
}

Status retire_all(Engine& engine, MPI_Request* handles, int count, MPI_Status* statuses,
                  int retired) {
    return tell_all(engine, handles, retired, count, statuses);
}
Any retire_any(Engine& engine, MPI_Request* handles, int count, int* index, MPI_Status* status,
               Status& ended) {
    return tell_any(engine, handles, count, index, status, ended);
}
Any retire_some(Engine& engine, MPI_Request* handles, int count, int* outcount, int* indices,
                MPI_Status* statuses, Status& ended) {
    return tell_some(engine, handles, count, outcount, indices, statuses, ended);
}

Status peek_all(Engine& engine, const MPI_Request* handles, int count, MPI_Status* statuses) {
    return tell_all(engine, handles, 0, count, statuses);
}
Any peek_any(Engine& engine, const MPI_Request* handles, int count, int* index, MPI_Status* status,
             Status& ended) {
    return tell_any(engine, handles, count, index, status, ended);
}
Any peek_some(Engine& engine, const MPI_Request* handles, int count, int* outcount, int* indices,
              MPI_Status* statuses, Status& ended) {
    return tell_some(engine, handles, count, outcount, indices, statuses, ended);
}

}  // namespace gantry::mpi
