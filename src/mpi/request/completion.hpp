// SPDX-License-Identifier: BSD-3-Clause
//
// Completing arrays of requests: what Wait and Test forms have in common. Each function looks once
// and never waits.
#pragma once

#include "base/status.hpp"
#include "mpi/request/requests.hpp"

namespace gantry::mpi {

// Two threads may not complete one request at once (MPI 5.0 section 11.6.2). Of those that share the
// handle all but one find it null; a copy of it is refused.
[[gnu::cold]] Status completed_by_another();

enum class Any { none_yet, completed, no_active };

// Whether each is complete, null or inactive. `first_open` remembers where the last look ended, so
// that waiting for n requests takes O(n).
bool all_over(const MPI_Request* handles, int count, int& first_open);
// Of the first `over`, which are, retires those in front of the first failure, `retired` so far. Who
// waits for a window does so while the rest of it is under way: giving back costs 30 ns each.
void retire_front(Engine& engine, MPI_Request* handles, int over, MPI_Status* statuses,
                  int& retired);
// All are over: retires each, but for the first `retired`. MPI_ERR_IN_STATUS when one failed; then
// every status has its MPI_ERROR.
Status retire_all(Engine& engine, MPI_Request* handles, int count, MPI_Status* statuses,
                  int retired = 0);
// Whether one is over, or none is active.
bool some_over(const MPI_Request* handles, int count);
// Retires the first that is over. With no active request the index is MPI_UNDEFINED and the status
// empty.
Any retire_any(Engine& engine, MPI_Request* handles, int count, int* index, MPI_Status* status,
               Status& ended);
// Retires every one that is over.
Any retire_some(Engine& engine, MPI_Request* handles, int count, int* outcount, int* indices,
                MPI_Status* statuses, Status& ended);

// The same without giving requests back.
Status peek_all(Engine& engine, const MPI_Request* handles, int count, MPI_Status* statuses);
Any peek_any(Engine& engine, const MPI_Request* handles, int count, int* index, MPI_Status* status,
             Status& ended);
Any peek_some(Engine& engine, const MPI_Request* handles, int count, int* outcount, int* indices,
              MPI_Status* statuses, Status& ended);

}  // namespace gantry::mpi
