// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operations: the predefined ones by table, the program's own, and local reduction.
#include "mpi/coll/op.hpp"

#include "coll/image.hpp"
#include "coll/staged_reduction.hpp"
#include "coll/workplace.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

#include <optional>

namespace gantry::mpi {
namespace {

struct Row {
    MPI_Op handle;
    layout::Operation operation;
};
const Row kRows[] = {
    {MPI_SUM, layout::Operation::sum},         {MPI_MIN, layout::Operation::min},
    {MPI_MAX, layout::Operation::max},         {MPI_PROD, layout::Operation::prod},
    {MPI_BAND, layout::Operation::band},       {MPI_BOR, layout::Operation::bor},
    {MPI_BXOR, layout::Operation::bxor},       {MPI_LAND, layout::Operation::land},
    {MPI_LOR, layout::Operation::lor},         {MPI_LXOR, layout::Operation::lxor},
    {MPI_MINLOC, layout::Operation::minloc},   {MPI_MAXLOC, layout::Operation::maxloc},
    {MPI_REPLACE, layout::Operation::replace}, {MPI_NO_OP, layout::Operation::no_op},
};

// Where the result is on a GPU whose kernels can make it, they do, without a copy; what only the
// operand is not, goes to that GPU first.
Task<Status> reduce_there(Executor& executor, coll::Team team, p2p::Buffer source, p2p::Buffer sink,
                          coll::Reducer how) {
    how = coll::placed_at(team, sink, how);
    if (!how.place.on_device()) {
        Status staged = co_await coll::combine_staged(executor, team, how, source, sink);
        co_return staged;
    }
    coll::Image operand;
    if (coll::works_in(team, source, how)) {
        operand.borrow(source);
    } else {
        Status ready = operand.allocate(team, source.count, *source.layout, how);
        GANTRY_CO_TRY(ready);
        Status loaded = co_await coll::copy(executor, team, source, operand.buffer());
        GANTRY_CO_TRY(loaded);
    }
    Status combined = co_await coll::combine(executor, team, how, operand.buffer(), sink);
    co_return combined;
}

}  // namespace

void fill_predefined(Slab<Op>& slab, Op* (&table)[kPredefinedOps]) {
    for (const Row& row : kRows) {
        Op* op = slab.create();
        GANTRY_ASSERT(op != nullptr);
        op->handle = row.handle;
        op->predefined = true;
        op->operation = row.operation;
        op->name = layout::name(row.operation);
        // What the last operand is matters to it.
        op->commutative = row.operation != layout::Operation::replace &&
                          row.operation != layout::Operation::no_op;
        table[reinterpret_cast<std::uintptr_t>(row.handle) -
              reinterpret_cast<std::uintptr_t>(MPI_OP_NULL)] = op;
    }
}

void release(Op* op) {
    if (let_go(op)) process().ops.destroy(op);
}

Result<coll::Reducer> reducer(const Op& op, Datatype& datatype) {
    coll::Reducer made;
    made.extent = datatype.extent();
    made.commutative = op.commutative;
    made.datatype = datatype.handle;
    made.handles = &datatype.handles;
    if (!op.predefined) {
        made.function = op.function;
        made.function_c = op.function_c;
        made.function_x = op.function_x;
        made.extra_state = op.extra_state;
        return made;
    }
    if (op.operation == layout::Operation::replace || op.operation == layout::Operation::no_op)
        return failure(MPI_ERR_OP, "{} serves one-sided accumulation only", op.name);
    if (!datatype.predefined)
        return failure(
            MPI_ERR_OP,
            "{} takes predefined datatypes; for derived ones make an operation with MPI_Op_create",
            op.name);
    made.predefined = layout::reduction(op.operation, datatype.element);
    made.operation = op.operation;
    made.element = datatype.element;
    if (made.predefined == nullptr)
        return failure(MPI_ERR_OP,
                       "{} is not defined on {}: see the table of operations and types in MPI 5.0 "
                       "section 6.9.2",
                       op.name, datatype.name.empty() ? "this datatype" : datatype.name);
    if (Engine* engine = process().engine.get(); engine != nullptr && engine->checks().on())
        [[unlikely]]
        engine->checks().reduction(op, datatype);
    return made;
}

namespace {

// Of the three forms of a function one is given.
Status make_op(const coll::Reducer& function, bool commutes, MPI_Op* op) {
    if (function.function == nullptr && function.function_c == nullptr &&
        function.function_x == nullptr)
        return failure(MPI_ERR_ARG, "argument user_fn is a null pointer");
    Op* made = create(process().ops);
    if (made == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a reduction operation");
    made->function = function.function;
    made->function_c = function.function_c;
    made->function_x = function.function_x;
    made->extra_state = function.extra_state;
    made->commutative = commutes;
    *op = made->handle;
    return success();
}

}  // namespace

Status op_create(MPI_User_function* user_fn, MPI_User_function_c* user_fn_c, int commute,
                 MPI_Op* op) {
    coll::Reducer function;
    function.function = user_fn;
    function.function_c = user_fn_c;
    return make_op(function, commute != 0, op);
}

Status op_create_x(MPIX_User_function_x* user_fn, int commute, void* extra_state, MPI_Op* op) {
    coll::Reducer function;
    function.function_x = user_fn;
    function.extra_state = extra_state;
    return make_op(function, commute != 0, op);
}

Status op_free(MPI_Op* op) {
    Op* object = find(*op);
    if (object->predefined)
        return failure(MPI_ERR_OP, "{} is predefined and cannot be freed", object->name);
    release(take_handle(object));
    *op = MPI_OP_NULL;
    return success();
}

Status op_commutative(Op& op, int* commute) {
    *commute = op.commutative;
    return success();
}

Pending reduce_local(const void* inbuf, void* inoutbuf, MPI_Count count, Datatype& datatype,
                     Op& op) {
    if (inbuf == inoutbuf && count > 0)
        return failure(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same address {}", inbuf);
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    Engine& engine = *process().engine;
    if (!engine.device().active()) {
        const coll::TypeInUse in_use(*how);
        std::optional<LetOthersIn> program;
        if (how->calls_program()) program.emplace();
        how->apply(inbuf, inoutbuf, static_cast<std::uint64_t>(count));
        return success();
    }
    return Pending(engine,
                   reduce_there(engine.executor(), engine.alone(), buffer(inbuf, count, datatype),
                                buffer(inoutbuf, count, datatype), *how));
}

}  // namespace gantry::mpi
