// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Wait, Waitany, Waitall and Waitsome: conditions over arrays of requests, polled by mpi::wait
// (MPI 5.0 sections 3.7.3 and 3.7.5). Null and inactive requests count as complete with an empty
// status, or are passed over.
#include "mpi/bodies.hpp"
#include "mpi/request/completion.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"

namespace gantry::mpi {
namespace {

Polled condition(Polled::Function function, Polled::Look look) {
    Polled polled;
    polled.function = function;
    polled.look = look;
    polled.engine = process().engine.get();
    return polled;
}

bool poll_one(Polled& self, Status& status) {
    auto* handle = static_cast<MPI_Request*>(self.pointers[0]);
    auto* told = static_cast<MPI_Status*>(self.pointers[1]);
    Request* request = find(*handle);
    if (request == nullptr) [[unlikely]] {
        if (*handle == MPI_REQUEST_NULL)
            write_empty(told);
        else
            status = completed_by_another();
        return true;
    }
    if (!Requests::over(*request)) return false;
    status = self.engine->requests().retire(*handle, *request, told);
    return true;
}

bool look_at_one(Polled& self) {
    const Request* request = find(*static_cast<const MPI_Request*>(self.pointers[0]));
    return request == nullptr || Requests::over(*request);
}

bool poll_all(Polled& self, Status& status) {
    auto* handles = static_cast<MPI_Request*>(self.pointers[0]);
    auto* statuses = static_cast<MPI_Status*>(self.pointers[1]);
    const int count = self.numbers[0];
    int& first_open = self.numbers[1];
    int& retired = self.numbers[2];
    const bool over = all_over(handles, count, first_open);
    retire_front(*self.engine, handles, first_open, statuses, retired);
    if (!over) return false;
    // Where one was seen to be over, another thread may have ended it and started the next one.
    first_open = retired;
    if (!all_over(handles, count, first_open)) return false;
    status = retire_all(*self.engine, handles, count, statuses, retired);
    return true;
}

bool look_at_all(Polled& self) {
    return all_over(static_cast<const MPI_Request*>(self.pointers[0]), self.numbers[0],
                    self.numbers[1]);
}

// Of Waitany and of Waitsome.
bool look_at_some(Polled& self) {
    return some_over(static_cast<const MPI_Request*>(self.pointers[0]), self.numbers[0]);
}

bool poll_any(Polled& self, Status& status) {
    auto* handles = static_cast<MPI_Request*>(self.pointers[0]);
    auto* index = static_cast<int*>(self.pointers[2]);
    return retire_any(*self.engine, handles, self.numbers[0], index,
                      static_cast<MPI_Status*>(self.pointers[1]), status) != Any::none_yet;
}

bool poll_some(Polled& self, Status& status) {
    auto* handles = static_cast<MPI_Request*>(self.pointers[0]);
    return retire_some(*self.engine, handles, self.numbers[0], static_cast<int*>(self.pointers[2]),
                       static_cast<int*>(self.pointers[3]),
                       static_cast<MPI_Status*>(self.pointers[1]), status) != Any::none_yet;
}

}  // namespace

Pending wait(MPI_Request* request, MPI_Status* status) {
    if (*request == MPI_REQUEST_NULL) {
        write_empty(status);
        return success();
    }
    Polled polled = condition(poll_one, look_at_one);
    polled.pointers[0] = request;
    polled.pointers[1] = status;
    return Pending(polled);
}

Pending waitall(int count, MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
    Polled polled = condition(poll_all, look_at_all);
    polled.pointers[0] = array_of_requests;
    polled.pointers[1] = array_of_statuses;
    polled.numbers[0] = count;
    return Pending(polled);
}

Pending waitany(int count, MPI_Request* array_of_requests, int* index, MPI_Status* status) {
    Polled polled = condition(poll_any, look_at_some);
    polled.pointers[0] = array_of_requests;
    polled.pointers[1] = status;
    polled.pointers[2] = index;
    polled.numbers[0] = count;
    return Pending(polled);
}

Pending waitsome(int incount, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
                 MPI_Status* array_of_statuses) {
    Polled polled = condition(poll_some, look_at_some);
    polled.pointers[0] = array_of_requests;
    polled.pointers[1] = array_of_statuses;
    polled.pointers[2] = outcount;
    polled.pointers[3] = array_of_indices;
    polled.numbers[0] = incount;
    return Pending(polled);
}

}  // namespace gantry::mpi
