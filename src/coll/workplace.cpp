// SPDX-License-Identifier: BSD-3-Clause
#include "coll/workplace.hpp"

#include "coll/host_image.hpp"
#include "coll/staged_reduction.hpp"
#include "device/reduce_kernels.hpp"
#include "plan/reduce_place.hpp"
#include "transfer/context.hpp"

#include <algorithm>
#include <bit>

namespace gantry::coll {
namespace {

struct End {
    bool on_device = false;
    int gpu = -1;
};

const SeenVector* seen(const Reducer& reducer, const p2p::Buffer& buffer) {
    for (const SeenVector* vector : {&reducer.source, &reducer.sink})
        if (vector->address != nullptr && vector->address == buffer.address) return vector;
    return nullptr;
}

End locate(transfer::Context& context, const p2p::Buffer& buffer, const Reducer& reducer) {
    if (const SeenVector* vector = seen(reducer, buffer); vector != nullptr)
        return {vector->gpu >= 0, vector->gpu};
    Result<device::Location> location = context.locate(buffer);
    if (!location.ok() || !location->on_device()) return {};
    return {true, location->gpu};
}

// A GPU reads nothing else.
bool is_aligned(const p2p::Buffer& buffer, const device::ReduceKernel& kernel) {
    return reinterpret_cast<std::uintptr_t>(buffer.address) % kernel.alignment == 0;
}

// Messages between device memories of the team go without slots.
bool reaches_all_directly(transfer::Context& context, const Team& team) {
    if (!context.tuning.ipc) return false;
    for (int rank = 0; rank < team.size(); ++rank) {
        const int peer = team.group->peer(team.in_group(rank));
        if (peer != context.world_rank && !context.endpoints.to(peer).facts.shared_memory)
            return false;
    }
    return true;
}

Task<Status> reduce_on_device(Executor& executor, Team team, Reducer reducer, const void* first,
                              void* second, std::uint64_t count) {
    transfer::Context& context = *team.context;
    context.arbiter.use(reducer.place.gpu);
    const void* const sources[] = {first, second};
    device::Reduce reduce;
    reduce.operation = reducer.operation;
    reduce.element = reducer.element;
    reduce.sources = sources;
    reduce.destination = second;
    reduce.count = count * reducer.items;
    reduce.gpu = reducer.place.gpu;
    Completion done(executor);
    context.device.reduce(reduce, done);
    Status status = co_await done;
    co_return status;
}

}  // namespace

Reducer placed_at(const Team& team, const p2p::Buffer& sink, Reducer reducer) {
    transfer::Context& context = *team.context;
    const auto kernel = device::reduce_kernel(reducer.operation, reducer.element);
    if (reducer.calls_program() || !kernel || !context.tuning.kernels || sink.bytes() == 0 ||
        context.config.reduce_on == "host")
        return reducer;
    const End end = locate(context, sink, reducer);
    if (end.on_device && is_aligned(sink, *kernel)) reducer.place = {sink.data(), end.gpu};
    return reducer;
}

Reducer placed(const Team& team, const p2p::Buffer& source, const p2p::Buffer& sink,
               Reducer reducer) {
    if (reducer.place.on_device() || reducer.calls_program()) return reducer;
    const p2p::Buffer& vector = source.bytes() > 0 ? source : sink;
    transfer::Context& context = *team.context;
    if (vector.bytes() == 0 || !context.tuning.kernels || !context.device.active() ||
        !device::reduce_kernel(reducer.operation, reducer.element))
        return reducer;
    const End from = locate(context, source, reducer);
    reducer.source = {source.address, from.on_device ? from.gpu : -1};
    const End to = locate(context, sink, reducer);
    reducer.sink = {sink.address, to.on_device ? to.gpu : -1};
    if (!from.on_device && !to.on_device) return reducer;
    const int gpu = to.on_device ? to.gpu : from.gpu;
    plan::ReduceQuestion question;
    question.bytes = vector.bytes();
    question.steps = static_cast<int>(std::bit_width(static_cast<unsigned>(team.size() - 1)));
    question.source_on_device = from.on_device;
    question.sink_on_device = to.on_device;
    question.direct = reaches_all_directly(context, team);
    question.time_sliced = context.arbiter.is_time_sliced(gpu);
    if (plan::reduce_place(context.device.gpu_facts(gpu), question, context.config.reduce_on) ==
        plan::ReducePlace::host)
        return reducer;
    reducer.place = {to.on_device ? sink.data() : source.data(), gpu};
    return reducer;
}

bool works_in(const Team& team, const p2p::Buffer& buffer, const Reducer& reducer) {
    if (!reducer.place.on_device()) {
        const SeenVector* const vector = seen(reducer, buffer);
        return vector != nullptr ? vector->gpu < 0 : on_host(team, buffer);
    }
    const auto kernel = device::reduce_kernel(reducer.operation, reducer.element);
    const End end = locate(*team.context, buffer, reducer);
    return end.on_device && end.gpu == reducer.place.gpu && is_aligned(buffer, *kernel);
}

Task<Status> combine(Executor& executor, Team team, Reducer reducer, p2p::Buffer first,
                     p2p::Buffer second) {
    if (second.count == 0) co_return success();
    if (!reducer.place.on_device()) {
        Apply all(executor, reducer, first.address, second.address, second.count);
        co_await all;
        co_return success();
    }
    Status reduced = co_await reduce_on_device(executor, team, reducer, first.address,
                                               second.address, second.count);
    if (reduced.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return reduced;
    reducer.place = {};
    Status staged = co_await combine_staged(executor, team, reducer, first, second);
    co_return staged;
}

}  // namespace gantry::coll
