// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack and MPI_Unpack (MPI 5.0 section 5.2). Packed data is the data bytes in type map order.
// Host memory is packed on the spot; where a device may be involved it is a copy that knows every kind of
// memory.
#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/engine.hpp"
#include "transfer/local_move.hpp"

namespace gantry::mpi {
namespace {

Task<Status> copy_and_move_on(Executor& executor, transfer::Context& context, p2p::Buffer source,
                              p2p::Buffer sink, MPI_Count* position) {
    Status copied = co_await transfer::copy_local(executor, context, source, sink);
    GANTRY_CO_TRY(copied);
    *position += static_cast<MPI_Count>(source.bytes());
    co_return success();
}

}  // namespace

Status check_packed(MPI_Count room, MPI_Count position, Bytes bytes) {
    if (position >= 0 && position <= room && static_cast<Bytes>(room - position) >= bytes)
        return success();
    return failure(MPI_ERR_TRUNCATE,
                   "{} bytes at position {} do not fit the packed buffer of {} bytes", bytes,
                   position, room);
}

Pending pack(const void* inbuf, MPI_Count incount, Datatype& datatype, void* outbuf,
             MPI_Count outsize, MPI_Count* position, Comm& comm) {
    const p2p::Buffer source = buffer(inbuf, incount, datatype);
    GANTRY_TRY(check_packed(outsize, *position, source.bytes()));
    std::byte* packed = static_cast<std::byte*>(outbuf) + *position;
    Engine& engine = *comm.engine;
    if (!engine.device().active()) {
        layout::pack(datatype.layout, inbuf, 0, source.bytes(), packed);
        *position += static_cast<MPI_Count>(source.bytes());
        return success();
    }
    const p2p::Buffer sink = transfer::bytes_buffer(packed, source.bytes());
    return Pending(engine,
                   copy_and_move_on(engine.executor(), engine.transfer(), source, sink, position));
}

Pending unpack(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
               MPI_Count outcount, Datatype& datatype, Comm& comm) {
    const p2p::Buffer sink = buffer(outbuf, outcount, datatype);
    GANTRY_TRY(check_packed(insize, *position, sink.bytes()));
    const std::byte* packed = static_cast<const std::byte*>(inbuf) + *position;
    Engine& engine = *comm.engine;
    if (!engine.device().active()) {
        layout::unpack(datatype.layout, outbuf, 0, sink.bytes(), packed);
        *position += static_cast<MPI_Count>(sink.bytes());
        return success();
    }
    const p2p::Buffer source = transfer::bytes_buffer(packed, sink.bytes());
    return Pending(engine,
                   copy_and_move_on(engine.executor(), engine.transfer(), source, sink, position));
}

Status pack_size(MPI_Count incount, Datatype& datatype, Comm&, MPI_Count* size) {
    *size = static_cast<MPI_Count>(static_cast<Bytes>(incount) * datatype.size());
    return success();
}

}  // namespace gantry::mpi
