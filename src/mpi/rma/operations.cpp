// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations (MPI 5.0 section 12.3): from MPI's arguments to a rma::Access.
#include "mpi/bodies.hpp"
#include "mpi/coll/op.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/request/status.hpp"
#include "mpi/rma/at_once.hpp"
#include "mpi/rma/win.hpp"
#include "rma/windows.hpp"

#include <limits>
#include <utility>

namespace gantry::mpi {
namespace {

using rma::Access;
using rma::Side;
using rma::Verb;

// Whether so many elements reach further than any memory does.
bool is_endless(MPI_Count count, const Datatype& datatype) {
    constexpr std::ptrdiff_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
    std::ptrdiff_t bytes = 0, reach = 0;
    return __builtin_mul_overflow(count, static_cast<std::ptrdiff_t>(datatype.size()), &bytes) ||
           __builtin_mul_overflow(count, datatype.extent(), &reach) || bytes > kMost ||
           reach > kMost || reach < -kMost;
}

Result<Side> side(Win& win, const void* address, MPI_Count count, const Datatype& datatype) {
    if (is_endless(count, datatype))
        return failure(MPI_ERR_COUNT, "a buffer of {} elements of {} bytes is larger than memory",
                       count, datatype.size());
    Side made;
    made.buffer = buffer(address, count, datatype);
    Result<device::Location> location = win.engine->transfer().locate(made.buffer);
    GANTRY_TRY(location.status());
    made.location = *location;
    return made;
}

// The one predefined type that a type is made of; null: several, or none.
Datatype* item_type(Datatype& datatype) {
    if (datatype.predefined) return &datatype;
    Datatype* only = nullptr;
    for (const Piece& piece : datatype.pieces) {
        Datatype* inner = item_type(*piece.type);
        if (inner == nullptr) return nullptr;
        if (only != nullptr &&
            (inner->element != only->element || inner->element == layout::Element::none))
            return nullptr;
        only = inner;
    }
    return only;
}

struct Target {
    int rank;
    MPI_Aint displacement;
    MPI_Count count;
    Datatype& datatype;
    // What it is to its owner; where that lies is not known here.
    p2p::Buffer elements() const { return buffer(nullptr, count, datatype); }
};

Result<Access> access(Verb verb, Win& win, const Target& target) {
    if (is_endless(target.count, target.datatype))
        return failure(MPI_ERR_RMA_RANGE,
                       "{} elements of {} bytes at rank {} are more than any window has",
                       target.count, target.datatype.size(), target.rank);
    (void)win;
    Access made;
    made.verb = verb;
    made.target = target.rank;
    made.displacement = target.displacement;
    made.count = static_cast<std::uint64_t>(target.count);
    made.layout = &target.datatype.layout;
    return made;
}

Status too_small(const char* what, Bytes bytes, Bytes room) {
    return failure(MPI_ERR_TRUNCATE, "{} has {} bytes, and {} are to go there", what, room, bytes);
}

Result<Access> copy(Verb verb, const void* address, MPI_Count count, const Datatype& datatype,
                    const Target& target, Win& win) {
    Result<Access> made = access(verb, win, target);
    GANTRY_TRY(made.status());
    Result<Side> origin = side(win, address, count, datatype);
    GANTRY_TRY(origin.status());
    made->origin = *origin;
    const Bytes at_origin = origin->buffer.bytes(),
                at_target = made->count * target.datatype.size();
    made->bytes = verb == Verb::put ? at_origin : at_target;
    if (verb == Verb::put && at_origin > at_target)
        return too_small("the target's buffer", at_origin, at_target);
    if (verb == Verb::get && at_target > at_origin)
        return too_small("the origin's buffer", at_target, at_origin);
    const p2p::Buffer &here = made->origin.buffer, there = target.elements();
    GANTRY_TRY(win.engine->checks().one_sided(verb == Verb::put ? here : there,
                                              verb == Verb::put ? there : here));
    return made;
}

Status set_items(Access& made, Datatype& datatype, const Op& op) {
    if (!op.predefined)
        return failure(MPI_ERR_OP,
                       "one-sided accumulation takes predefined operations only, not those of "
                       "MPI_Op_create");
    made.operation = op.operation;
    if (made.count == 0) return success();  // no item, so any kind will do
    Datatype* item = item_type(datatype);
    if (item == nullptr && datatype.size() > 0)
        return failure(MPI_ERR_TYPE,
                       "accumulation takes datatypes made of one kind of predefined type");
    if (item == nullptr) return success();
    const bool moves =
        op.operation == layout::Operation::replace || op.operation == layout::Operation::no_op;
    const layout::Element element =
        item->element == layout::Element::none && moves ? layout::Element::byte : item->element;
    made.items = rma::items_of(element);
    if (made.items.size == 0 || layout::reduction(op.operation, element) == nullptr)
        return failure(MPI_ERR_OP, "{} is not defined on {}", op.name, item->name);
    return success();
}

// Accumulates, and those that fetch: `result_datatype` null for the first.
Result<Access> change(const void* origin_addr, MPI_Count origin_count, Datatype* origin_datatype,
                      void* result_addr, MPI_Count result_count, Datatype* result_datatype,
                      const Target& target, const Op& op, Win& win) {
    Result<Access> made =
        access(result_datatype != nullptr ? Verb::fetch : Verb::accumulate, win, target);
    GANTRY_TRY(made.status());
    GANTRY_TRY(set_items(*made, target.datatype, op));
    made->bytes = made->count * target.datatype.size();
    const bool only_reads = made->operation == layout::Operation::no_op;
    if (only_reads && result_datatype == nullptr)
        return failure(MPI_ERR_OP,
                       "MPI_NO_OP changes nothing: only operations that fetch take it "
                       "(MPI_Get_accumulate, MPI_Fetch_and_op)");
    if (!only_reads) {
        if (origin_datatype == nullptr)
            return failure(MPI_ERR_TYPE,
                           "argument origin_datatype is no datatype; only MPI_NO_OP needs none");
        Result<Side> origin = side(win, origin_addr, origin_count, *origin_datatype);
        GANTRY_TRY(origin.status());
        made->origin = *origin;
        const Bytes given = origin->buffer.bytes();
        if (origin_addr == nullptr && given > 0 && origin_datatype->predefined)
            return failure(MPI_ERR_BUFFER, "argument origin_addr is a null pointer");
        if (given > made->bytes) return too_small("the target's buffer", given, made->bytes);
        made->bytes = given;
        GANTRY_TRY(win.engine->checks().one_sided(origin->buffer, target.elements()));
    }
    if (result_datatype == nullptr) return made;
    Result<Side> result = side(win, result_addr, result_count, *result_datatype);
    GANTRY_TRY(result.status());
    made->result = *result;
    if (made->bytes > result->buffer.bytes())
        return too_small("the result's buffer", made->bytes, result->buffer.bytes());
    GANTRY_TRY(win.engine->checks().one_sided(only_reads ? target.elements() : made->origin.buffer,
                                              result->buffer));
    return made;
}

Status run(Win& win, const Result<Access>& described) {
    GANTRY_TRY(described.status());
    return win.window->begin(described.value(), nullptr).status();
}

Status run(Win& win, const Result<Access>& described, MPI_Request* request) {
    GANTRY_TRY(described.status());
    Engine& engine = *win.engine;
    Requests& requests = engine.requests();
    Result<p2p::Request*> made = requests.create(p2p::RequestKind::collective);
    GANTRY_TRY(made.status());
    requests.run(*made, win.window->begin_and_wait(engine.executor(), described.value()));
    if ((*made)->done && !(*made)->status.ok()) {
        Status failed = (*made)->status;
        engine.messenger().release(*made);
        return failed;
    }
    *request = requests.hand_out(*made);
    return success();
}

Status nothing_to_do(Win& win, MPI_Request* request) {
    Requests& requests = win.engine->requests();
    Result<p2p::Request*> made =
        requests.completed(p2p::RequestKind::collective, proc_null_outcome());
    GANTRY_TRY(made.status());
    *request = requests.hand_out(*made);
    return success();
}

}  // namespace

Status put(const void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype,
           int target_rank, MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype,
           Win& win) {
    if (target_rank == MPI_PROC_NULL) return success();
    return run(win, copy(Verb::put, origin_addr, origin_count, origin_datatype,
                         {target_rank, target_disp, target_count, target_datatype}, win));
}

Status rput(const void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype,
            int target_rank, MPI_Aint target_disp, MPI_Count target_count,
            Datatype& target_datatype, Win& win, MPI_Request* request) {
    if (target_rank == MPI_PROC_NULL) return nothing_to_do(win, request);
    return run(win,
               copy(Verb::put, origin_addr, origin_count, origin_datatype,
                    {target_rank, target_disp, target_count, target_datatype}, win),
               request);
}

Status get(void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype, int target_rank,
           MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Win& win) {
    if (target_rank == MPI_PROC_NULL) return success();
    return run(win, copy(Verb::get, origin_addr, origin_count, origin_datatype,
                         {target_rank, target_disp, target_count, target_datatype}, win));
}

Status rget(void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype, int target_rank,
            MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Win& win,
            MPI_Request* request) {
    if (target_rank == MPI_PROC_NULL) return nothing_to_do(win, request);
    return run(win,
               copy(Verb::get, origin_addr, origin_count, origin_datatype,
                    {target_rank, target_disp, target_count, target_datatype}, win),
               request);
}

Status accumulate(const void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  Datatype& target_datatype, Op& op, Win& win) {
    if (target_rank == MPI_PROC_NULL) return success();
    return run(win, change(origin_addr, origin_count, &origin_datatype, nullptr, 0, nullptr,
                           {target_rank, target_disp, target_count, target_datatype}, op, win));
}

Status raccumulate(const void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype,
                   int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                   Datatype& target_datatype, Op& op, Win& win, MPI_Request* request) {
    if (target_rank == MPI_PROC_NULL) return nothing_to_do(win, request);
    return run(win,
               change(origin_addr, origin_count, &origin_datatype, nullptr, 0, nullptr,
                      {target_rank, target_disp, target_count, target_datatype}, op, win),
               request);
}

Status get_accumulate(const void* origin_addr, MPI_Count origin_count, Datatype* origin_datatype,
                      void* result_addr, MPI_Count result_count, Datatype& result_datatype,
                      int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                      Datatype& target_datatype, Op& op, Win& win) {
    if (target_rank == MPI_PROC_NULL) return success();
    return run(win, change(origin_addr, origin_count, origin_datatype, result_addr, result_count,
                           &result_datatype,
                           {target_rank, target_disp, target_count, target_datatype}, op, win));
}

Status rget_accumulate(const void* origin_addr, MPI_Count origin_count, Datatype* origin_datatype,
                       void* result_addr, MPI_Count result_count, Datatype& result_datatype,
                       int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                       Datatype& target_datatype, Op& op, Win& win, MPI_Request* request) {
    if (target_rank == MPI_PROC_NULL) return nothing_to_do(win, request);
    return run(win,
               change(origin_addr, origin_count, origin_datatype, result_addr, result_count,
                      &result_datatype, {target_rank, target_disp, target_count, target_datatype},
                      op, win),
               request);
}

Status fetch_and_op(const void* origin_addr, void* result_addr, Datatype& datatype, int target_rank,
                    MPI_Aint target_disp, Op& op, Win& win) {
    if (target_rank == MPI_PROC_NULL) return success();
    if (!datatype.predefined)
        return failure(MPI_ERR_TYPE, "MPI_Fetch_and_op takes predefined datatypes only");
    if (result_addr == nullptr)
        return failure(MPI_ERR_BUFFER, "argument result_addr is a null pointer");
    return run(win, change(origin_addr, 1, &datatype, result_addr, 1, &datatype,
                           {target_rank, target_disp, 1, datatype}, op, win));
}

Status compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr,
                        Datatype& datatype, int target_rank, MPI_Aint target_disp, Win& win) {
    if (target_rank == MPI_PROC_NULL) return success();
    if (!datatype.predefined || !at_once::swaps(datatype.element))
        return failure(MPI_ERR_TYPE,
                       "MPI_Compare_and_swap takes integers, logicals and bytes only (MPI 5.0 "
                       "section 12.3.4)");
    if (origin_addr == nullptr || compare_addr == nullptr || result_addr == nullptr)
        return failure(MPI_ERR_BUFFER,
                       "origin_addr, compare_addr and result_addr must not be null pointers");
    Result<Access> made =
        access(Verb::compare_and_swap, win, {target_rank, target_disp, 1, datatype});
    GANTRY_TRY(made.status());
    made->items = rma::items_of(datatype.element);
    made->bytes = datatype.size();
    const std::pair<Side*, const void*> sides[] = {
        {&made->origin, origin_addr}, {&made->compare, compare_addr}, {&made->result, result_addr}};
    for (const auto& [into, address] : sides) {
        Result<Side> found = side(win, address, 1, datatype);
        GANTRY_TRY(found.status());
        *into = *found;
    }
    return run(win, made);
}

}  // namespace gantry::mpi
