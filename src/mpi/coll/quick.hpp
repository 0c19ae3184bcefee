// SPDX-License-Identifier: BSD-3-Clause
//
// Small blocking collectives over the mailbox of their communicator (coll/mailbox_call.hpp), straight from the
// entry point: no coroutine, no tag, nothing allocated while nobody is waited for. Nothing: the operation
// goes the usual way, by its body; all ranks get that answer alike, or this one's arguments will be refused
// there. Arguments as in mpi/bodies.hpp.
#pragma once

#include "base/status.hpp"

#include <mpi.h>

#include <optional>

namespace gantry::mpi {
struct Comm;
struct Datatype;
struct Op;
}  // namespace gantry::mpi

namespace gantry::mpi::quick {

using Ended = std::optional<Status>;

Ended barrier(Comm& comm);
Ended bcast(void* address, MPI_Count count, Datatype* datatype, int root, Comm& comm);
Ended reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype* datatype, Op* op,
             int root, Comm& comm);
Ended allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
                Comm& comm);
Ended reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                           Datatype& datatype, Op& op, Comm& comm);
Ended scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
           Comm& comm);
Ended exscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
             Comm& comm);
Ended reduce_scatter(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts,
                     Datatype& datatype, Op& op, Comm& comm);
Ended gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
             MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm);
Ended scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
              MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm);
Ended allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                MPI_Count recvcount, Datatype* recvtype, Comm& comm);
Ended allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                 const MPI_Count* recvcounts, const MPI_Aint* displs, Datatype* recvtype,
                 Comm& comm);
Ended alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
               MPI_Count recvcount, Datatype* recvtype, Comm& comm);

}  // namespace gantry::mpi::quick
