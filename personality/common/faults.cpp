// SPDX-License-Identifier: BSD-3-Clause
//
// Going on without ranks that died (ULFM): what Open MPI 5 and MPICH call MPIX_Comm_x, of mpi-ext.h.
#include "common/extensions.hpp"
#include "common/standard.hpp"

namespace gantry::personality {

GANTRY_EXTENSION(int, Comm_revoke, (theirs::Comm comm)) {
    return error(standard.Comm_revoke(to<MPI_Comm>(comm)));
}
GANTRY_EXTENSION(int, Comm_is_revoked, (theirs::Comm comm, int* flag)) {
    return error(standard.Comm_is_revoked(to<MPI_Comm>(comm), flag));
}
GANTRY_EXTENSION(int, Comm_shrink, (theirs::Comm comm, theirs::Comm* newcomm)) {
    MPI_Comm made = nullptr;
    const HandleOut<MPI_Comm> newcomm_(newcomm, made);
    return error(standard.Comm_shrink(to<MPI_Comm>(comm), newcomm_.pointer()));
}
GANTRY_EXTENSION(int, Comm_agree, (theirs::Comm comm, int* flag)) {
    return error(standard.Comm_agree(to<MPI_Comm>(comm), flag));
}
GANTRY_EXTENSION(int, Comm_iagree, (theirs::Comm comm, int* flag, theirs::Request* request)) {
    MPI_Request started = nullptr;
    const HandleOut<MPI_Request> request_(request, started);
    return error(standard.Comm_iagree(to<MPI_Comm>(comm), flag, request_.pointer()));
}
GANTRY_EXTENSION(int, Comm_get_failed, (theirs::Comm comm, theirs::Group* failed)) {
    MPI_Group made = nullptr;
    const HandleOut<MPI_Group> failed_(failed, made);
    return error(standard.Comm_get_failed(to<MPI_Comm>(comm), failed_.pointer()));
}
GANTRY_EXTENSION(int, Comm_ack_failed, (theirs::Comm comm, int num_to_ack, int* num_acked)) {
    return error(standard.Comm_ack_failed(to<MPI_Comm>(comm), num_to_ack, num_acked));
}
GANTRY_EXTENSION(int, Comm_failure_ack, (theirs::Comm comm)) {
    return error(standard.Comm_failure_ack(to<MPI_Comm>(comm)));
}
GANTRY_EXTENSION(int, Comm_failure_get_acked, (theirs::Comm comm, theirs::Group* acked)) {
    MPI_Group made = nullptr;
    const HandleOut<MPI_Group> acked_(acked, made);
    return error(standard.Comm_failure_get_acked(to<MPI_Comm>(comm), acked_.pointer()));
}

}  // namespace gantry::personality
