// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan.hpp"

#include "plan/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

namespace gantry::plan {
namespace {

std::string_view name(CopyEngine engine) {
    switch (engine) {
        case CopyEngine::cpu: return "cpu";
        case CopyEngine::copy_engine: return "copy engine";
        case CopyEngine::copy_engine_2d: return "copy engine (2D)";
        case CopyEngine::kernel: return "kernel or copy engine (2D)";
        case CopyEngine::fused: return "copy engine, or one kernel or call for many";
        case CopyEngine::bar: return "cpu through a BAR mapping";
    }
    return "?";
}

std::string rails_text(int rails) {
    return rails == 1 ? "1 rail" : fmt::format("{} rails", rails);
}

std::string pipeline_text(const Plan& plan, Bytes bytes) {
    const Bytes pieces = std::max<Bytes>(1, divide_up(bytes, std::max<Bytes>(1, plan.chunk)));
    std::string text = pieces == 1 ? fmt::format("pipeline, 1 chunk of {}", bytes_text(bytes))
                                   : fmt::format("pipeline, {} chunks of {}, depth {}", pieces,
                                                 bytes_text(plan.chunk), plan.depth);
    const bool source_slot = plan.source_stage == Stage::slot,
               sink_slot = plan.sink_stage == Stage::slot;
    text += ", ";
    text += source_slot ? fmt::format("{} -> slot", name(plan.source_engine)) : "buffer";
    text += " -> ";
    text += sink_slot ? std::string(name(plan.sink_engine)) : "buffer";
    return text + ", " + rails_text(plan.rails);
}

}  // namespace

std::string_view name(Executor executor) {
    return executor == Executor::receiver ? "receiver" : "sender";
}

std::string_view name(Protocol protocol) {
    switch (protocol) {
        case Protocol::self: return "self";
        case Protocol::eager: return "eager";
        case Protocol::rdma: return "rdma";
        case Protocol::ipc: return "ipc";
        case Protocol::pipeline: return "pipeline";
        case Protocol::cma: return "cma";
    }
    return "?";
}

std::string describe(const Plan& plan, Bytes bytes) {
    std::string text(name(plan.protocol));
    switch (plan.protocol) {
        case Protocol::self:
            text += plan.sink_stage == Stage::slot
                        ? fmt::format(", packed aside and unpacked by {}", name(plan.sink_engine))
                        : fmt::format(", one copy by {}", name(plan.sink_engine));
            break;
        case Protocol::eager:
            if (plan.source_engine == CopyEngine::bar)
                text += fmt::format(", read by {}", name(plan.source_engine));
            if (plan.sink_stage == Stage::slot || plan.sink_engine == CopyEngine::bar)
                text += fmt::format(", then {}", name(plan.sink_engine));
            break;
        case Protocol::rdma:
            text += plan.executor == Executor::receiver ? ", exposed to the receiver"
                                                        : ", one put, " + rails_text(plan.rails);
            break;
        case Protocol::ipc:
            text +=
                fmt::format(", {} by the {}", plan.executor == Executor::receiver ? "get" : "put",
                            name(plan.executor));
            text += fmt::format(
                ", {}", plan.sink_engine == CopyEngine::kernel ? "kernel" : name(plan.sink_engine));
            break;
        case Protocol::pipeline: text = pipeline_text(plan, bytes); break;
        case Protocol::cma: text += ", read by the receiver"; break;
    }
    if (plan.why[0] != '\0') text += fmt::format(" ({})", plan.why);
    return text;
}

Tuning tuning_from(const config::Config& config) {
    Tuning tuning;
    tuning.eager_limit = config.eager_limit;
    tuning.chunk = config.chunk;
    tuning.depth = static_cast<int>(std::clamp<config::Integer>(config.depth, 0, INT_MAX));
    tuning.ipc = config.ipc;
    tuning.ipc_threshold = config.ipc_threshold;
    tuning.cma_threshold = config.cma_threshold;
    tuning.kernels = config.kernels;
    tuning.host_cell = std::max<Bytes>(1, config.host_cell);
    tuning.host_pool = config.host_pool;
    tuning.device_pool = config.device_pool;
    const bool divides = config.rail_policy == "even" || config.rail_policy == "weighted";
    tuning.rail_stripe = divides ? std::max<Bytes>(1, config.rail_stripe) : 0;
    // A list that is wrong was refused when the configuration was read.
    if (Result<Mechanisms> mechanisms = mechanisms_from(config.mechanisms); mechanisms.ok())
        tuning.mechanisms = *mechanisms;
    return tuning;
}

}  // namespace gantry::plan
