// SPDX-License-Identifier: BSD-3-Clause
//
// Which path the demo's messages took, in Gantry's own words: the record that GANTRY_EXPLAIN=on
// makes each rank write when it ends.
#include "benchmarks.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gantry::bench {
namespace {

std::string record_file() {
    return (std::filesystem::temp_directory_path() / fmt::format("gantry-demo-{}.json", getpid()))
        .string();
}

// The largest received message between devices.
nlohmann::json interesting(const nlohmann::json& document) {
    nlohmann::json best;
    if (!document.is_object() || !document.contains("paths")) return best;
    for (const auto& path : document["paths"]) {
        if (!path.value("received", false) || path.value("source", "") != "device" ||
            path.value("sink", "") != "device")
            continue;
        if (best.is_null() || path.value("largest", 0u) > best.value("largest", 0u)) best = path;
    }
    return best;
}

}  // namespace

void prepare_taken_path() {
    // A record that the user asked for is the user's.
    if (std::getenv("GANTRY_EXPLAIN_FILE") != nullptr) return;
    setenv("GANTRY_EXPLAIN", "on", 1);
    setenv("GANTRY_EXPLAIN_FILE", record_file().c_str(), 1);
}

void print_taken_path() {
    std::ifstream file(record_file());
    if (!file) return;
    const auto path = interesting(nlohmann::json::parse(file, nullptr, false));
    if (path.is_null()) return;
    fmt::print("  path      {}\n  why       {}\n", path.value("how", ""), path.value("why", ""));
    for (const auto& loser : path.value("rejected", nlohmann::json::array())) {
        const std::string protocol = loser.value("protocol", "");
        if (protocol == "self") continue;
        const long expected = loser.value("expected_ns", 0L);
        fmt::print("  {:<9} {}: {}\n", "not", protocol,
                   expected == 0 ? loser.value("why", "")
                                 : fmt::format("{} us expected, {}", expected / 1000,
                                               loser.value("why", "")));
    }
    fmt::print("\n");
}

void forget_taken_path() {
    std::error_code ignored;
    std::filesystem::remove(record_file(), ignored);
}

}  // namespace gantry::bench
