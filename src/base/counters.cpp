// SPDX-License-Identifier: BSD-3-Clause
#include "base/counters.hpp"

namespace gantry {
namespace {

constexpr CounterRow kRows[] = {
#define GANTRY_COUNTER(kind, name, layer, sentence) \
    {#name, CounterKind::kind, #layer, sentence, &Counters::name, nullptr},
#define GANTRY_COMM_COUNTER(kind, name, layer, sentence) \
    {#name, CounterKind::kind, #layer, sentence, nullptr, &CommCounters::name},
#include "base/counters.def"
#undef GANTRY_COUNTER
#undef GANTRY_COMM_COUNTER
};

}  // namespace

std::span<const CounterRow> counter_rows() {
    return kRows;
}

std::string_view name(CounterKind kind) {
    switch (kind) {
        case CounterKind::state: return "state";
        case CounterKind::level: return "level";
        case CounterKind::size: return "size";
        case CounterKind::highwatermark: return "highwatermark";
        case CounterKind::counter: return "counter";
        case CounterKind::aggregate: return "aggregate";
    }
    return "";
}

}  // namespace gantry
