// SPDX-License-Identifier: BSD-3-Clause
//
// Of those that wait the oldest is told when its turn has come: it takes all others along, and tells
// them how the launch ended.
#include "transfer/row_batch.hpp"

#include "transfer/mover.hpp"
#include "transfer/row_launch.hpp"

#include <mpi.h>

#include <vector>

namespace gantry::transfer {
namespace {

constexpr Bytes kMostThatWaits = device::kMostInOneLaunch;

}  // namespace

// Who is under way last hands over.
void RowBatch::next(Gpu& gpu) {
    if (--gpu.under_way > 0 || gpu.waiting.empty()) return;
    Waiting& first = *gpu.waiting.pop();
    first.leads = true;
    ++gpu.under_way;
    first.done.complete(success());
}

Task<Status> RowBatch::launch(Executor& executor, Context& context, Gpu& gpu, Waiting& first) {
    RowLaunch together;
    std::vector<Waiting*> others;
    together.add(first.copy.destination, first.copy.source, first.copy.rows);
    while (!gpu.waiting.empty()) {
        const device::Copy& copy = gpu.waiting.front()->copy;
        if (!together.add(copy.destination, copy.source, copy.rows)) break;
        others.push_back(gpu.waiting.pop());
    }
    Status ended;
    if (others.empty())
        ended = co_await device_copy(executor, context, first.copy);
    else
        ended = co_await together.run(executor, context, first.copy.gpu, first.copy.notice);
    for (Waiting* other : others)
        other->done.complete(ended);
    if (!others.empty() && ended.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
        ended = co_await device_copy(executor, context, first.copy);
    co_return ended;
}

Task<Status> RowBatch::move(Executor& executor, Context& context, device::Copy copy) {
    if (copy.bytes > kMostThatWaits) {
        Status ended = co_await device_copy(executor, context, copy);
        co_return ended;
    }
    Gpu& gpu = gpus_[copy.gpu];
    Waiting mine(executor, copy);
    if (gpu.under_way > 0) {
        gpu.waiting.push(&mine);
        Status ended = co_await mine.done;
        if (!mine.leads && ended.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return ended;
    }
    if (!mine.leads) ++gpu.under_way;
    Status ended;
    if (mine.leads)
        ended = co_await launch(executor, context, gpu, mine);
    else
        ended = co_await device_copy(executor, context, copy);
    next(gpu);
    co_return ended;
}

}  // namespace gantry::transfer
