// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/io/access.hpp"

#include "io/agree.hpp"
#include "io/file.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/faults/faults.hpp"
#include "mpi/io/conversion.hpp"
#include "mpi/request/status.hpp"

#include <limits>

namespace gantry::mpi {
namespace {

using io::Direction;

bool is_collective(const Where& where) {
    return where.together == Together::yes || where.pointer == Pointer::ordered;
}

// One call, with everything that a nonblocking one needs when the program has gone on.
struct Order {
    File* fh = nullptr;
    Where where;
    io::Access access;  // its `first` is known for given and individual pointers
    const Datarep* datarep = nullptr;
    const Datatype* datatype = nullptr;
    Bytes element_bytes = 0;  // of datatype, in the file
    std::int64_t etypes = 0;
    coll::Team team;  // of collective ones
};

Status check_direction(const io::File& file, const Where& where) {
    if (where.direction == Direction::read && (file.mode & MPI_MODE_WRONLY) != 0)
        return failure(MPI_ERR_ACCESS, "\"{}\" is open with MPI_MODE_WRONLY: it is not read",
                       file.path);
    if (where.direction == Direction::write && (file.mode & MPI_MODE_RDONLY) != 0)
        return failure(MPI_ERR_READ_ONLY, "\"{}\" is open with MPI_MODE_RDONLY: it is not written",
                       file.path);
    const bool shared = where.pointer == Pointer::shared || where.pointer == Pointer::ordered;
    if (!shared && (file.mode & MPI_MODE_SEQUENTIAL) != 0)
        return failure(
            MPI_ERR_UNSUPPORTED_OPERATION,
            "\"{}\" is open with MPI_MODE_SEQUENTIAL: only calls with the shared pointer "
            "(MPI_File_read_shared and its kin) serve it",
            file.path);
    return success();
}

// Whether so many elements reach further than any memory does.
bool is_endless(const Memory& memory) {
    constexpr std::ptrdiff_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
    std::ptrdiff_t bytes = 0, reach = 0;
    const auto size = static_cast<std::ptrdiff_t>(memory.datatype.size());
    return __builtin_mul_overflow(memory.count, size, &bytes) ||
           __builtin_mul_overflow(memory.count, memory.datatype.extent(), &reach) ||
           bytes > kMost || reach > kMost || reach < -kMost;
}

Result<Order> accepted_order(File& fh, const Where& where, const Memory& memory) {
    io::File& file = *fh.file;
    GANTRY_TRY(check_direction(file, where));
    if (is_endless(memory))
        return failure(MPI_ERR_COUNT, "a buffer of {} elements of {} bytes is larger than memory",
                       memory.count, memory.datatype.size());
    Order order;
    order.fh = &fh;
    order.where = where;
    order.datarep = fh.datarep;
    order.datatype = &memory.datatype;
    order.access.direction = where.direction;
    order.access.view = file.view;
    order.access.buffer = buffer(memory.address, memory.count, memory.datatype);
    Result<Bytes> element = fh.datarep->size_of(memory.datatype);
    GANTRY_TRY(element.status());
    order.element_bytes = *element;
    const Bytes bytes = static_cast<Bytes>(memory.count) * *element;
    const Bytes etype = file.view->etype_bytes;
    if (bytes % etype != 0)
        return failure(MPI_ERR_IO,
                       "{} elements of datatype have {} bytes in the file, which is no multiple of "
                       "the {} bytes of the view's etype",
                       memory.count, bytes, etype);
    order.etypes = static_cast<std::int64_t>(bytes / etype);
    std::int64_t offset = where.offset;
    if (where.pointer == Pointer::given && offset < 0)
        return failure(MPI_ERR_ARG, "argument offset is {} and must not be negative", offset);
    if (where.pointer == Pointer::individual) offset = file.position;
    Bytes first = 0, end = 0;
    if (__builtin_mul_overflow(static_cast<Bytes>(offset), etype, &first) ||
        __builtin_add_overflow(first, bytes, &end) ||
        end > static_cast<Bytes>(std::numeric_limits<std::int64_t>::max()))
        return failure(MPI_ERR_ARG, "{} bytes at offset {} end behind every file", bytes, offset);
    order.access.first = first;
    if (is_collective(where)) order.team = file.team();
    // The pointer moves by what is asked for, also where a read meets the end of the file.
    if (where.pointer == Pointer::individual) file.position = offset + order.etypes;
    return order;
}

// A collective call that is refused because of this rank's arguments fails on all ranks: `access.refused`.
Result<Order> order_of(File& fh, const Where& where, const Memory& memory) {
    GANTRY_TRY(unless_revoked(fh));
    // As if it had not been made: the others' will end with the next one.
    if (is_collective(where)) GANTRY_TRY(check_no_split(fh));
    Result<Order> order = accepted_order(fh, where, memory);
    if (order.ok() || !is_collective(where)) return order;
    Order refused;
    refused.fh = &fh;
    refused.where = where;
    refused.datarep = fh.datarep;
    refused.access.direction = where.direction;
    refused.access.view = fh.file->view;
    refused.access.buffer = transfer::bytes_buffer(nullptr, 0);
    refused.access.refused = std::move(order).status();
    refused.team = fh.file->team();
    return refused;
}

// `moved`: bytes of the program's memory.
Task<Status> move_steps(Executor& executor, Order order, Bytes* moved) {
    io::File& file = *order.fh->file;
    const bool together = is_collective(order.where);
    if (order.where.pointer == Pointer::shared || order.where.pointer == Pointer::ordered) {
        std::int64_t etype = 0;
        Status taken;
        if (order.where.pointer == Pointer::shared)
            taken = co_await file.shared.add(executor, order.etypes, &etype);
        else
            taken = co_await file.take_turns(executor, order.team, order.access.refused,
                                             order.etypes, &etype);
        GANTRY_CO_TRY(taken);
        order.access.first = static_cast<Bytes>(etype) * order.access.view->etype_bytes;
    }
    Status ended;
    if (order.datarep->converts()) {
        ended = order.access.refused;
        if (ended.ok())
            ended = co_await transfer_converted(executor, order.fh, order.access, order.datarep,
                                                order.datatype, order.element_bytes, moved);
        if (together) ended = co_await io::agree(executor, order.team, ended);
    } else if (together) {
        ended = co_await file.transfer_all(executor, order.team, order.access, moved);
    } else {
        ended = co_await file.transfer(executor, order.access, moved);
    }
    co_return ended;
}

Task<Status> move(Executor& executor, Order order, Bytes* moved) {
    io::File& file = *order.fh->file;
    const bool together = is_collective(order.where);
    Task<Status> steps = move_steps(executor, std::move(order), moved);
    Status ended;
    if (together)
        ended = co_await file.together(executor, std::move(steps));
    else
        ended = co_await std::move(steps);
    co_return ended;
}

p2p::Outcome outcome_of(Bytes moved) {
    return {MPI_ANY_SOURCE, MPI_ANY_TAG, moved, false};
}

Task<Status> run(Executor& executor, Order order, MPI_Status* status) {
    File* const fh = order.fh;
    ++fh->under_way;
    Bytes moved = 0;
    Status ended = co_await move(executor, std::move(order), &moved);
    --fh->under_way;
    if (ended.ok()) write(status, outcome_of(moved));
    co_return ended;
}

Task<Status> run_for(Executor& executor, Order order, p2p::Request* request) {
    File* const fh = order.fh;
    ++fh->under_way;
    Bytes moved = 0;
    Status ended = co_await move(executor, std::move(order), &moved);
    --fh->under_way;
    request->outcome = outcome_of(moved);
    co_return ended;
}

Task<Status> finish_split(Executor& executor, File* fh, MPI_Status* status) {
    p2p::Request* const request = std::exchange(fh->split_request, nullptr);
    Status ended = co_await request->finished(executor);
    if (ended.ok()) write(status, request->outcome);
    fh->engine->messenger().release(request);
    release(std::exchange(fh->split_type, nullptr));
    fh->split = Split::none;
    co_return ended;
}

// The others hear of it; the program does here and now.
Status refuse(File& fh, Order order) {
    Status why = order.access.refused;
    fh.engine->requests().background(
        run(fh.engine->executor(), std::move(order), MPI_STATUS_IGNORE));
    return why;
}

}  // namespace

Status check_no_split(const File& fh) {
    if (fh.split == Split::none) return success();
    return failure(MPI_ERR_IO,
                   "a split collective operation of \"{}\" is under way: end it first, a file has "
                   "one at a time",
                   fh.file->path);
}

Pending transfer(File& fh, const Where& where, const Memory& memory, MPI_Status* status) {
    Result<Order> order = order_of(fh, where, memory);
    GANTRY_TRY(order.status());
    return Pending(*fh.engine, run(fh.engine->executor(), std::move(*order), status));
}

Status start_transfer(File& fh, const Where& where, const Memory& memory, MPI_Request* request) {
    Result<Order> order = order_of(fh, where, memory);
    GANTRY_TRY(order.status());
    if (!order->access.refused.ok()) return refuse(fh, std::move(*order));
    Requests& requests = fh.engine->requests();
    Result<p2p::Request*> made = requests.create(p2p::RequestKind::collective);
    GANTRY_TRY(made.status());
    *request = requests.hand_out(*made, fh, memory.datatype);
    requests.run(*made, run_for(fh.engine->executor(), std::move(*order), *made));
    return success();
}

Status begin_split(File& fh, Split split, const Where& where, const Memory& memory) {
    Result<Order> order = order_of(fh, where, memory);
    GANTRY_TRY(order.status());
    if (!order->access.refused.ok()) return refuse(fh, std::move(*order));
    Requests& requests = fh.engine->requests();
    Result<p2p::Request*> made = requests.create(p2p::RequestKind::collective);
    GANTRY_TRY(made.status());
    fh.split = split;
    fh.split_request = *made;
    fh.split_type = retain(&memory.datatype);
    requests.run(*made, run_for(fh.engine->executor(), std::move(*order), *made));
    return success();
}

Pending end_split(File& fh, Split split, MPI_Status* status) {
    if (fh.split != split)
        return failure(MPI_ERR_IO, "this call ends no split collective operation of \"{}\": {}",
                       fh.file->path,
                       fh.split == Split::none ? "none is under way"
                                               : "the one under way was begun by another call");
    return Pending(*fh.engine, finish_split(fh.engine->executor(), &fh, status));
}

}  // namespace gantry::mpi
