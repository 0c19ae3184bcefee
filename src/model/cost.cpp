// SPDX-License-Identifier: BSD-3-Clause
#include "model/cost.hpp"

#include <algorithm>

namespace gantry::model {
namespace {

const CopyCost& copy_cost(const Gpu& gpu, Operation operation) {
    switch (operation) {
        case Operation::d2h: return gpu.d2h;
        case Operation::h2d: return gpu.h2d;
        case Operation::h2d_2d: return gpu.h2d_2d;
        case Operation::peer: return gpu.peer;
        case Operation::peer_get:
            return gpu.peer_get.rate.points().empty() ? gpu.peer : gpu.peer_get;
        case Operation::pageable_d2h: return gpu.pageable_d2h;
        case Operation::pageable_h2d: return gpu.pageable_h2d;
        case Operation::fill: return gpu.fill;
        case Operation::d2d:
        case Operation::kernel: break;
    }
    return gpu.d2d;
}

}  // namespace

Engine engine_of(const Gpu& gpu, Operation operation) {
    switch (operation) {
        case Operation::d2h:
        case Operation::pageable_d2h: return Engine::d2h;
        case Operation::h2d:
        case Operation::h2d_2d:
        case Operation::pageable_h2d: return gpu.copy_engines > 1 ? Engine::h2d : Engine::d2h;
        case Operation::peer:
        case Operation::peer_get: return Engine::peer;
        case Operation::d2d:
        case Operation::fill: return Engine::d2d;
        case Operation::kernel: break;
    }
    return Engine::compute;
}

bool needs_turn(const Gpu& gpu, const Work& work) {
    if (work.operation == Operation::kernel) return true;
    // In rows also pageable memory goes by a copy engine.
    if (work.operation == Operation::pageable_h2d && work.rows > 1) return false;
    const Bytes below = copy_cost(gpu, work.operation).turn_below;
    return below == kAlwaysTurn || work.bytes < below;
}

Nanoseconds launch_time(const Gpu& gpu, const Work& work) {
    if (work.operation == Operation::kernel) return gpu.kernel.latency;
    if (work.further) return 0;
    const CopyCost& cost = copy_cost(gpu, work.operation);
    return cost.latency - cost.gap;
}

Nanoseconds engine_time(const Gpu& gpu, const Work& work) {
    if (work.operation == Operation::kernel)
        return static_cast<Nanoseconds>(gpu.kernel.thread * static_cast<double>(work.threads));
    const CopyCost& cost = copy_cost(gpu, work.operation);
    const auto further_rows = static_cast<double>(work.rows > 0 ? work.rows - 1 : 0);
    const Nanoseconds gap = work.further ? std::min(cost.gap, gpu.calls.further_copy) : cost.gap;
    return gap + static_cast<Nanoseconds>(further_rows * cost.row) + cost.rate.time(work.bytes);
}

Interval place(const Gpu& gpu, const Work& work, Nanoseconds ready, Nanoseconds engine_free_at,
               Nanoseconds turn) {
    const Nanoseconds start = std::max(ready + launch_time(gpu, work), engine_free_at) + turn;
    return {start, start + engine_time(gpu, work)};
}

Nanoseconds window_read_time(const Gpu& gpu, Bytes bytes) {
    return gpu.window.read + Rate(gpu.window.read_bytes_per_second).time(bytes);
}

Nanoseconds window_write_time(const Gpu& gpu, Bytes bytes) {
    return gpu.window.write + Rate(gpu.window.write_bytes_per_second).time(bytes);
}

Nanoseconds turn_cost(const Gpu& gpu, const Work& work, std::int64_t process,
                      std::int64_t last_process) {
    return last_process != -1 && last_process != process && needs_turn(gpu, work) ? gpu.turn : 0;
}

Carried carry(const Link& link, Transfer transfer, Bytes bytes, Nanoseconds ready,
              Nanoseconds sender_free_at, Nanoseconds receiver_free_at) {
    const Nanoseconds cost = transfer == Transfer::put ? link.put_cost : link.message_cost;
    const Nanoseconds wire = link.rate.time(bytes + link.header);
    const Nanoseconds start = std::max(ready, sender_free_at) + cost;
    // Cut-through: bytes arrive while they leave, so a single transfer pays the wire once.
    const Nanoseconds first_byte = std::max(start + link.latency, receiver_free_at);
    return {start + wire, first_byte + wire};
}

}  // namespace gantry::model
