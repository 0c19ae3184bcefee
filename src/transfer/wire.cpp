// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/wire.hpp"

namespace gantry::transfer::wire {

Plan encode(const plan::Plan& plan) {
    Plan out{};
    out.protocol = static_cast<std::uint8_t>(plan.protocol);
    out.executor = static_cast<std::uint8_t>(plan.executor);
    out.source_engine = static_cast<std::uint8_t>(plan.source_engine);
    out.sink_engine = static_cast<std::uint8_t>(plan.sink_engine);
    out.source_stage = static_cast<std::uint8_t>(plan.source_stage);
    out.sink_stage = static_cast<std::uint8_t>(plan.sink_stage);
    out.completion = static_cast<std::uint8_t>(plan.completion);
    out.rails = static_cast<std::uint8_t>(plan.rails);
    out.depth = plan.depth;
    out.ahead = plan.ahead;
    out.chunk = plan.chunk;
    return out;
}

plan::Plan decode(const Plan& plan) {
    plan::Plan out;
    out.protocol = static_cast<plan::Protocol>(plan.protocol);
    out.executor = static_cast<plan::Executor>(plan.executor);
    out.source_engine = static_cast<plan::CopyEngine>(plan.source_engine);
    out.sink_engine = static_cast<plan::CopyEngine>(plan.sink_engine);
    out.source_stage = static_cast<plan::Stage>(plan.source_stage);
    out.sink_stage = static_cast<plan::Stage>(plan.sink_stage);
    out.completion = static_cast<plan::Completion>(plan.completion);
    out.rails = plan.rails;
    out.depth = plan.depth;
    out.ahead = plan.ahead;
    out.chunk = plan.chunk;
    return out;
}

Handle encode(const device::IpcHandle& handle) {
    Handle out{};
    out.kind = static_cast<std::uint8_t>(handle.kind);
    std::memcpy(out.bytes, handle.bytes.data(), sizeof out.bytes);
    std::memcpy(out.gpu, handle.gpu.data(), sizeof out.gpu);
    out.buffer_id = handle.buffer_id;
    out.base = handle.base;
    out.size = handle.size;
    out.origin = handle.origin;
    out.pool = handle.pool;
    return out;
}

device::IpcHandle decode(const Handle& handle) {
    device::IpcHandle out;
    out.kind = static_cast<device::IpcKind>(handle.kind);
    std::memcpy(out.bytes.data(), handle.bytes, sizeof handle.bytes);
    std::memcpy(out.gpu.data(), handle.gpu, sizeof handle.gpu);
    out.buffer_id = handle.buffer_id;
    out.base = handle.base;
    out.size = handle.size;
    out.origin = handle.origin;
    out.pool = handle.pool;
    return out;
}

}  // namespace gantry::transfer::wire
