// SPDX-License-Identifier: BSD-3-Clause
//
// Partitioned communication as the program calls it. Its requests are persistent: MPI_Start, the forms of Wait
// and Test and MPI_Request_free are those of all others.
#include "mpi/bodies.hpp"
#include "mpi/engine/pending.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/partitioned/receive.hpp"
#include "mpi/partitioned/send.hpp"
#include "mpi/request/status.hpp"

#include <limits>
#include <memory>
#include <new>

namespace gantry::mpi {
namespace {

Result<PartitionedBuffer> partitioned_buffer(const void* buf, int partitions, MPI_Count count,
                                             Datatype& datatype) {
    const PartitionedBuffer buffer{const_cast<void*>(buf), static_cast<std::uint32_t>(partitions),
                                   static_cast<std::uint64_t>(count), &datatype.layout};
    Bytes bytes = 0;
    if (__builtin_mul_overflow(buffer.count, buffer.element_bytes(), &bytes) ||
        __builtin_mul_overflow(bytes, Bytes{buffer.partitions}, &bytes) ||
        bytes > static_cast<Bytes>(std::numeric_limits<std::int64_t>::max()))
        return failure(MPI_ERR_COUNT, "{} partitions of {} elements of {} bytes are more than fit",
                       partitions, count, buffer.element_bytes());
    return buffer;
}

// What is under way on the communicator holds it.
PartitionedPlace place_of(Comm& comm) {
    return {.messenger = &comm.engine->messenger(),
            .greetings = comm.greetings.get(),
            .partitions = comm.partitions.get(),
            .tags = &comm.partitioned_tags,
            .held = &comm.engine->held_partitions(),
            .message_bytes = comm.engine->config().partition_message,
            .signatures = comm.engine->checks().on() ? &comm.engine->checks() : nullptr,
            .owner = std::shared_ptr<void>(retain(&comm),
                                           [](void* held) { release(static_cast<Comm*>(held)); })};
}

template <class Side>
Status make(const void* buf, int partitions, MPI_Count count, Datatype& datatype, int peer, int tag,
            Comm& comm, MPI_Request* request) {
    const Result<PartitionedBuffer> buffer = partitioned_buffer(buf, partitions, count, datatype);
    if (!buffer.ok()) return buffer.status();
    if (peer != MPI_PROC_NULL) GANTRY_TRY(comm.open_partitioned());
    std::shared_ptr<PartitionedSide> side(new (std::nothrow)
                                              Side(place_of(comm), buffer.value(), peer, tag));
    if (side == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a partitioned request");
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> made = requests.persistent(comm, [side, &requests] {
        if (side->has_peer()) return side->start();
        side->start_alone();
        const bool sends = side->role == PartitionedSide::Role::sends;
        return requests.completed(sends ? p2p::RequestKind::send : p2p::RequestKind::receive,
                                  proc_null_outcome());
    });
    if (!made.ok()) return std::move(made).status();
    // Last, so that nobody is greeted in vain.
    Status opened = side->open(side);
    if (!opened.ok()) {
        side->close();
        MPI_Request unseen = reinterpret_cast<MPI_Request>(*made);
        (void)requests.free(unseen, **made);
        return opened;
    }
    Requests::operation_of(**made)->partitioned = std::move(side);
    *request = reinterpret_cast<MPI_Request>(*made);
    requests.keep(*request, datatype);
    return success();
}

// The side of an active request, if it has that role.
Result<PartitionedSide*> side_of(const Request& request, PartitionedSide::Role role) {
    const Operation* operation = Requests::operation_of(request);
    const bool fits = operation != nullptr && operation->partitioned != nullptr &&
                      operation->partitioned->role == role;
    if (!fits)
        return failure(MPI_ERR_REQUEST, "the request was not made by MPI_P{}_init",
                       role == PartitionedSide::Role::sends ? "send" : "recv");
    return operation->partitioned.get();
}

Status check_partition(const PartitionedSide& side, int partition) {
    if (partition >= 0 && static_cast<std::uint32_t>(partition) < side.partitions())
        return success();
    return failure(MPI_ERR_ARG, "there is no partition {}: the request has {}", partition,
                   side.partitions());
}

Result<PartitionedSend*> active_send(const Request& request) {
    Result<PartitionedSide*> side = side_of(request, PartitionedSide::Role::sends);
    if (!side.ok()) return std::move(side).status();
    if (!Requests::active(request))
        return failure(MPI_ERR_REQUEST,
                       "the partitioned send is not started: MPI_Start comes before MPI_Pready");
    return static_cast<PartitionedSend*>(*side);
}

// One that may be marked ready now.
Status check_open(const PartitionedSend& send, int partition) {
    GANTRY_TRY(check_partition(send, partition));
    if (!send.is_ready(static_cast<std::uint32_t>(partition))) return success();
    return failure(MPI_ERR_ARG, "partition {} is ready already", partition);
}

}  // namespace

Status psend_init(const void* buf, int partitions, MPI_Count count, Datatype& datatype, int dest,
                  int tag, Comm& comm, Info*, MPI_Request* request) {
    return make<PartitionedSend>(buf, partitions, count, datatype, dest, tag, comm, request);
}

Status precv_init(void* buf, int partitions, MPI_Count count, Datatype& datatype, int source,
                  int tag, Comm& comm, Info*, MPI_Request* request) {
    return make<PartitionedReceive>(buf, partitions, count, datatype, source, tag, comm, request);
}

Status pready(int partition, Request& request) {
    return pready_range(partition, partition, request);
}

Status pready_range(int partition_low, int partition_high, Request& request) {
    Result<PartitionedSend*> send = active_send(request);
    if (!send.ok()) return std::move(send).status();
    if (partition_low > partition_high)
        return failure(MPI_ERR_ARG, "the range of partitions from {} to {} is empty", partition_low,
                       partition_high);
    GANTRY_TRY(check_partition(**send, partition_low));
    GANTRY_TRY(check_partition(**send, partition_high));
    for (int partition = partition_low; partition <= partition_high; ++partition)
        GANTRY_TRY(check_open(**send, partition));
    for (int partition = partition_low; partition <= partition_high; ++partition)
        (*send)->make_ready(static_cast<std::uint32_t>(partition));
    return success();
}

Status pready_list(int length, const int* array_of_partitions, Request& request) {
    Result<PartitionedSend*> send = active_send(request);
    if (!send.ok()) return std::move(send).status();
    for (int i = 0; i < length; ++i)
        GANTRY_TRY(check_open(**send, array_of_partitions[i]));
    for (int i = 0; i < length; ++i) {
        // Named twice.
        if ((*send)->is_ready(static_cast<std::uint32_t>(array_of_partitions[i])))
            return check_open(**send, array_of_partitions[i]);
        (*send)->make_ready(static_cast<std::uint32_t>(array_of_partitions[i]));
    }
    return success();
}

Status parrived(MPI_Request request, int partition, int* flag) {
    // As of one that is not started: nothing is outstanding.
    if (request == MPI_REQUEST_NULL) {
        *flag = 1;
        return success();
    }
    const Request& object = *find(request);
    Result<PartitionedSide*> side = side_of(object, PartitionedSide::Role::receives);
    if (!side.ok()) return std::move(side).status();
    GANTRY_TRY(check_partition(**side, partition));
    const auto* receive = static_cast<PartitionedReceive*>(*side);
    // Another thread may free the request while this one makes progress.
    const std::shared_ptr<PartitionedSide> held = Requests::operation_of(object)->partitioned;
    const auto number = static_cast<std::uint32_t>(partition);
    if (!receive->has_arrived(number)) turn(*process().engine);
    *flag = receive->has_arrived(number) ? 1 : 0;
    return success();
}

}  // namespace gantry::mpi
