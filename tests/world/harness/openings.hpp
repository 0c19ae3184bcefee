// SPDX-License-Identifier: BSD-3-Clause
//
// What opening memory of a peer costs, in tests of when that is done.
#pragma once

#include "base/units.hpp"
#include "model/machine.hpp"

namespace gantry::world {

// Every opening is dear, as on an H200 where nothing of the other GPU is kept open.
inline void dear_openings(model::Machine& machine) {
    model::CallCost& calls = machine.gpu.calls;
    calls.ipc_open_peer = 2 * kMillisecond;
    calls.vmm_open = 230 * kMicrosecond;
    calls.pool_open_peer = 9600 * kMicrosecond;
    calls.ipc_pair = calls.pool_first = 0;
}

}  // namespace gantry::world
