// SPDX-License-Identifier: BSD-3-Clause
//
// Generalized requests (MPI 5.0 section 13.2): the free function runs once, in the last of the calls
// that end the request.
#include "test.hpp"

using namespace mpi_tests;

namespace {

int frees = 0;

MPI_Request started() {
    frees = 0;
    MPI_Request request;
    OK(MPI_Grequest_start(
        [](void*, MPI_Status* status) {
            MPI_Status_set_elements(status, MPI_BYTE, 0);
            return MPI_Status_set_cancelled(status, 0);
        },
        [](void*) {
            ++frees;
            return MPI_SUCCESS;
        },
        [](void*, int) { return MPI_SUCCESS; }, nullptr, &request));
    return request;
}

}  // namespace

MPI_CASE(generalized_request_freed_before_it_is_complete, 1) {
    MPI_Request request = started();
    const MPI_Request own = request;
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    CHECK_EQ(frees, 0);
    OK(MPI_Grequest_complete(own));
    CHECK_EQ(frees, 1);
    OK(MPI_Barrier(MPI_COMM_SELF));
    CHECK_EQ(frees, 1);
}

MPI_CASE(generalized_request_freed_when_it_is_complete, 1) {
    MPI_Request request = started();
    OK(MPI_Grequest_complete(request));
    CHECK_EQ(frees, 0);
    OK(MPI_Request_free(&request));
    CHECK_EQ(frees, 1);
}

MPI_CASE(generalized_request_waited_for, 1) {
    MPI_Request request = started();
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(frees, 1);
}
