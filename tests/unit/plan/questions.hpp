// SPDX-License-Identifier: BSD-3-Clause
//
// Questions to the planner, as its unit tests ask them.
#pragma once

#include "golden/scenes.hpp"

namespace gantry::test {

inline plan::Question verdict(Bytes bytes, device::MemoryKind source, device::MemoryKind sink,
                              device::IpcKind ipc = device::IpcKind::none) {
    return {.bytes = bytes, .source = end(source, ipc), .sink = end(sink, ipc), .sink_known = true};
}
inline plan::Question offer(Bytes bytes, device::MemoryKind source,
                            device::IpcKind ipc = device::IpcKind::none) {
    return {.bytes = bytes, .source = end(source, ipc), .sink = {}};
}
inline plan::Plan plan_for(const plan::Question& question, const Described& with,
                           const plan::Tuning& tuning = {}) {
    return choose(question, with, tuning).plan;
}
inline Described two_gpus() {
    auto with = facts(shared_memory(), h200(), other_h200());
    with.peer_access = with.ipc_open = with.put_open = true;
    return with;
}

}  // namespace gantry::test
