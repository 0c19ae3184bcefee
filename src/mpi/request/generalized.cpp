// SPDX-License-Identifier: BSD-3-Clause
//
// Generalized requests (MPI 5.0 section 13.2): the program's own operations behind MPI_Wait and
// MPI_Test. Its callbacks run when a request is completed by one of these, cancelled or freed, never
// inside progress().
#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

namespace gantry::mpi {

Status grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                      MPI_Grequest_cancel_function* cancel_fn, void* extra_state,
                      MPI_Request* request) {
    Result<p2p::Request*> made =
        process().engine->requests().generalized(query_fn, free_fn, cancel_fn, extra_state);
    if (!made.ok()) return std::move(made).status();
    *request = reinterpret_cast<MPI_Request>(*made);
    return success();
}

Status grequest_complete(Request& request) {
    const Operation* operation = Requests::operation_of(request);
    if (operation == nullptr || !operation->generalized)
        return failure(
            MPI_ERR_REQUEST,
            "MPI_Grequest_complete takes requests of MPI_Grequest_start; this one is not");
    if (request.done)
        return failure(MPI_ERR_REQUEST, "this generalized request is complete already");
    return process().engine->requests().complete(request);
}

}  // namespace gantry::mpi
