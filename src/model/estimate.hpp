// SPDX-License-Identifier: BSD-3-Clause
//
// The description of a GPU that nobody has measured, made of what its driver and the system say.
// Calls, latencies and turns of the compute queue cost about the same on all GPUs of the last years
// (they are the driver's and the link's), so those are taken from the H200, which was measured; its
// rates are scaled to the memory, the link to the host and the links between GPUs that this one has:
//
//   memory     clock and width, from the driver
//   host       the link of its slot, from the system; else the PCI Express of its generation
//   other GPU  NVLink of its generation where atomic operations work across, which they do over
//              NVLink only; else that of the host
//
// `gantry tune` replaces it.
#pragma once

#include "model/machine.hpp"

#include <string>

namespace gantry::model {

// What is known of a GPU before anything is measured; 0: not told.
struct Traits {
    std::string name;
    int compute_major = 0, compute_minor = 0;
    Bytes memory = 0;
    int copy_engines = 0;  // that describe() believes, whatever the description says
    // Raw rates, one direction of a link.
    double memory_bytes_per_second = 0;
    double host_link_bytes_per_second = 0;
    int gpus = 1;             // that this process sees
    bool peer_access = true;  // to some other one of them; with one, nobody can say
    bool peer_atomics = true;
};

Machine estimate(const Traits& traits);

}  // namespace gantry::model
