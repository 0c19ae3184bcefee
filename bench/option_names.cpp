// SPDX-License-Identifier: BSD-3-Clause
//
// The words of the command line, of tables and of JSON.
#include "options.hpp"

namespace gantry::bench {

const char* name(Benchmark benchmark) {
    switch (benchmark) {
        case Benchmark::latency: return "latency";
        case Benchmark::sendrecv: return "sendrecv";
        case Benchmark::bw: return "bw";
        case Benchmark::bibw: return "bibw";
        case Benchmark::mr: return "mr";
        case Benchmark::overlap: return "overlap";
        case Benchmark::fresh: return "fresh";
        case Benchmark::demo: return "demo";
        case Benchmark::put: return "put";
        case Benchmark::get: return "get";
        case Benchmark::accumulate: return "accumulate";
        case Benchmark::fetch_op: return "fetch_op";
        case Benchmark::cas: return "cas";
    }
    return "?";
}
bool is_one_sided(Benchmark benchmark) {
    return benchmark >= Benchmark::put;
}
const char* name(Measure measure) {
    switch (measure) {
        case Measure::latency: return "latency";
        case Measure::bw: return "bw";
        case Measure::bibw: return "bibw";
        case Measure::rate: return "rate";
    }
    return "?";
}
const char* name(Sync sync) {
    switch (sync) {
        case Sync::flush: return "flush";
        case Sync::fence: return "fence";
        case Sync::pscw: return "pscw";
        case Sync::lock: return "lock";
    }
    return "?";
}
const char* name(WindowKind kind) {
    switch (kind) {
        case WindowKind::allocate: return "allocate";
        case WindowKind::create: return "create";
        case WindowKind::dynamic: return "dynamic";
        case WindowKind::shared: return "shared";
    }
    return "?";
}

}  // namespace gantry::bench
