// SPDX-License-Identifier: BSD-3-Clause
#include "model.hpp"

#include <algorithm>
#include <utility>

namespace simgpu {

using gantry::model::Operation;
using gantry::model::Work;

Cost Model::cost_of(const Work& work) const {
    if (!timed()) {
        return {};
    }
    const gantry::model::Gpu& gpu = machine_.gpu;
    return {static_cast<int>(gantry::model::engine_of(gpu, work.operation)),
            scaled(gantry::model::launch_time(gpu, work)),
            scaled(gantry::model::engine_time(gpu, work)), gantry::model::needs_turn(gpu, work)};
}

Cost Model::copy(Direction direction, std::size_t bytes, std::size_t rows, Shape shape,
                 HostMemory host, bool further) const {
    const auto work = [&](Operation operation) {
        return cost_of({operation, bytes, rows, 0, further});
    };
    switch (direction) {
        case Direction::h2d:
            if (host == HostMemory::pageable) {
                return work(Operation::pageable_h2d);
            }
            return work(shape == Shape::strided ? Operation::h2d_2d : Operation::h2d);
        case Direction::d2h:
            return work(host == HostMemory::pageable ? Operation::pageable_d2h : Operation::d2h);
        case Direction::d2d: return work(Operation::d2d);
        case Direction::peer: return work(Operation::peer);
        case Direction::peer_get: return work(Operation::peer_get);
        case Direction::h2h: break;
    }
    return {kNoEngine, 0, timed() ? scaled(machine_.host.memcpy.time(bytes)) : 0, false};
}

Cost Model::fill(std::size_t bytes) const {
    return cost_of({Operation::fill, bytes, 1, 0});
}

Cost Model::kernel(std::size_t threads, Traffic traffic) const {
    Cost cost = cost_of({Operation::kernel, 0, 1, threads});
    if (timed()) {
        // A plain kernel reaches the memory limit, which a copy (read and write) shows; over the
        // link, the copy rate.
        const gantry::model::Gpu& gpu = machine_.gpu;
        cost.occupancy =
            std::max({cost.occupancy, scaled(gpu.d2d.rate.time(traffic.device_bytes) / 2),
                      scaled(gpu.d2h.rate.time(traffic.link_bytes))});
    }
    return cost;
}

Cost Model::value_write() const {
    return {kNoEngine, 0, timed() ? scaled(calls().write_value) : 0, false};
}

Model Model::load(const std::string& name, double scale, bool mps, std::string* complaint) {
    Model model;
    model.scale_ = scale;
    auto machine = gantry::model::load(name);
    if (!machine.ok()) {
        *complaint += std::string(machine.status().text()) + ", so it is an h200; ";
        machine = gantry::model::load("h200");
    }
    if (machine.ok()) {
        model.machine_ = std::move(*machine);
        if (mps) model.machine_.gpu = model.machine_.gpu_under_mps;
    }
    return model;
}

}  // namespace simgpu
