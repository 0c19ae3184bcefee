// SPDX-License-Identifier: BSD-3-Clause
//
// RowBatch: strided copies between device memories that come together share a launch, whatever
// messages they belong to.
//
//   first copy     goes at once
//   those that come while it is under way     wait, and go together when it has ended
//
// Large ones have nothing to do with it: they go at once, and nobody waits for them.
#pragma once

#include "base/fifo.hpp"
#include "base/task.hpp"
#include "device/device.hpp"

#include <map>

namespace gantry::transfer {

class Context;

class RowBatch {
  public:
    // A copy with engine kernel of rows between device memories; `copy.rows` lives until it has ended.
    Task<Status> move(Executor& executor, Context& context, device::Copy copy);

  private:
    struct Waiting {
        Waiting(Executor& executor, const device::Copy& its_copy)
            : copy(its_copy), done(executor) {}
        device::Copy copy;
        Completion done;
        bool leads = false;  // it makes the launch for all that wait
    };
    struct Gpu {
        int under_way = 0;
        Fifo<Waiting*> waiting;
    };
    Task<Status> launch(Executor& executor, Context& context, Gpu& gpu, Waiting& first);
    static void next(Gpu& gpu);

    std::map<int, Gpu> gpus_;
};

}  // namespace gantry::transfer
