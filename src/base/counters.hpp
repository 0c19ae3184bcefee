// SPDX-License-Identifier: BSD-3-Clause
//
// Counters: what Gantry has counted, as others read it at one moment: a field for each row of
// counters.def. The table of the rows serves MPI_T and `gantry info`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gantry {

struct Counters {
#define GANTRY_COUNTER(kind, name, layer, sentence) std::uint64_t name = 0;
#define GANTRY_COMM_COUNTER(kind, name, layer, sentence)
#include "base/counters.def"
#undef GANTRY_COUNTER
#undef GANTRY_COMM_COUNTER
};

struct CommCounters {
#define GANTRY_COUNTER(kind, name, layer, sentence)
#define GANTRY_COMM_COUNTER(kind, name, layer, sentence) std::uint64_t name = 0;
#include "base/counters.def"
#undef GANTRY_COUNTER
#undef GANTRY_COMM_COUNTER
};

enum class CounterKind : std::uint8_t { state, level, size, highwatermark, counter, aggregate };
std::string_view name(CounterKind kind);

// One row of counters.def.
struct CounterRow {
    std::string_view name;
    CounterKind kind;
    std::string_view layer;
    std::string_view sentence;
    std::uint64_t Counters::*value;           // null: of a communicator
    std::uint64_t CommCounters::*comm_value;  // null: of the process
};
std::span<const CounterRow> counter_rows();

}  // namespace gantry
