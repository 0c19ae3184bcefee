// SPDX-License-Identifier: BSD-3-Clause
//
// One copy between two places that this process reaches: a piece of a user's buffer and staging
// memory, or memory of a peer that is mapped here; by the processor, a copy engine or a kernel.
#pragma once

#include "transfer/context.hpp"
#include "transfer/pack.hpp"

namespace gantry::transfer {

// What may move pieces of a strided end: the planner says kernel, or 2D copies where two processes
// share the GPU.
inline plan::Movers movers_of(const Context& context, plan::CopyEngine engine) {
    if (!context.tuning.kernels) return plan::Movers::copy_engines;
    return engine == plan::CopyEngine::kernel ? plan::Movers::kernels
                                              : plan::Movers::kernels_by_turns;
}

// Host sides only: copies at once, past the cache if `streaming` (large messages of devices).
enum class Stores : std::uint8_t { cached, streaming };
void copy_out(const Side& side, Bytes offset, Bytes bytes, std::byte* to,
              Stores stores = Stores::cached);
void copy_in(const Side& side, Bytes offset, Bytes bytes, const std::byte* from,
             Stores stores = Stores::cached);

// How the end of a copy is seen that somebody waits for before anything else.
device::Notice notice_of_awaited(Bytes bytes);

// One copy through the device.
Task<Status> device_copy(Executor& executor, Context& context, device::Copy copy);
Task<Status> device_copy(Executor& executor, Context& context, void* destination,
                         const void* source, Bytes bytes, int gpu, device::Engine engine,
                         device::Notice notice = device::Notice::event);
// Between any two places this process may touch, of the host or of devices, through Gantry's streams.
Task<Status> copy(Executor& executor, Context& context, void* destination, const void* source,
                  Bytes bytes);
// How the plan wants the end of a copy to be seen, and what makes an ipc plan's copy.
inline device::Notice notice_of(plan::Completion completion) {
    return completion == plan::Completion::flag ? device::Notice::flag : device::Notice::event;
}
inline device::Notice notice_of(const plan::Plan& plan) {
    return notice_of(plan.completion);
}
inline device::Engine engine_of(const plan::Plan& plan) {
    switch (plan.sink_engine) {
        case plan::CopyEngine::fused: return device::Engine::fused;
        case plan::CopyEngine::copy_engine_2d: return device::Engine::h2d_2d;
        default: return device::Engine::automatic;
    }
}

// A copy inside a GPU that another process uses too: this process is its last user then.
Task<Status> copy_inside(Executor& executor, Context& context, void* destination,
                         const void* source, Bytes bytes, int gpu, const plan::Plan& plan);

// The copy of an ipc plan, inside the GPU or not.
inline Task<Status> direct_copy(Executor& executor, Context& context, void* destination,
                                const void* source, Bytes bytes, int gpu, const plan::Plan& plan,
                                bool inside) {
    return inside ? copy_inside(executor, context, destination, source, bytes, gpu, plan)
                  : device_copy(executor, context, destination, source, bytes, gpu, engine_of(plan),
                                notice_of(plan));
}

// Nothrow host memory, or the failure.
Result<std::unique_ptr<std::byte[]>> host_memory(Bytes bytes, const char* what);

}  // namespace gantry::transfer
