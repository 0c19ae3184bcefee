// SPDX-License-Identifier: BSD-3-Clause
//
// Steps of an application in the world, its halos exchanged in one of the ways of apps/common/exchange.hpp:
//
//   copies      strided copies to the host, messages of host memory, strided copies back
//   staged      a pack kernel, a copy to the host a message, host messages, copies back, an unpack kernel:
//               each stage in turn
//   packed      a pack kernel, messages of device memory, an unpack kernel
//   datatypes   messages of the fields, with a datatype each
//   neighbours  one neighbour collective, the same datatypes
//
// Only what is exchanged has memory, in rows as long and as many as the application's. All messages of a
// rank share it: they carry the same bytes.
#pragma once

#include "world/harness/app_step.hpp"

namespace gantry::world {

enum class Halo : std::uint8_t { copies, staged, packed, datatypes, neighbours };
inline constexpr Halo kHalos[] = {Halo::copies, Halo::staged, Halo::packed, Halo::datatypes,
                                  Halo::neighbours};
std::string_view name(Halo way);

struct HaloTimes {
    Halo way = Halo::staged;
    Nanoseconds step = 0, compute = 0;
    // Of a rank and step, on average: messages of the program, envelopes and bytes between ranks.
    double messages = 0, envelopes = 0, bytes = 0;
    Bytes memory = 0;  // that the library holds for a rank
    double turns = 0;  // of the engine, of a rank, on average

    double communication() const {  // of a step, of 1
        return 1 - static_cast<double>(compute) / static_cast<double>(step);
    }
    // How much shorter a step is than in that other way, of 1.
    double below(const HaloTimes& other) const {
        return 1 - static_cast<double>(step) / static_cast<double>(other.step);
    }
};

HaloTimes measure_halo(const Cluster& cluster, const AppCase& step, Halo way,
                       Turns turns = Turns::of_those_told);

}  // namespace gantry::world
