// SPDX-License-Identifier: BSD-3-Clause
#include "model/machine.hpp"

#include <mpi.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <string>

namespace gantry::model {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string problem(std::string_view json) {
    const Result<Machine> machine = from_json(json, "test");
    return machine.ok() ? "none" : std::string(machine.status().text());
}

TEST(Machine, BuiltInMachinesLoadByName) {
    EXPECT_THAT(built_in_machines(), Contains("c2050-qdr"));
    EXPECT_THAT(built_in_machines(), Contains("h100"));
    EXPECT_THAT(built_in_machines(), Contains("h200"));
    for (const std::string_view name : built_in_machines()) {
        const Result<Machine> machine = load(name);
        ASSERT_TRUE(machine.ok()) << machine.status().text();
        EXPECT_EQ(machine.value().name, name);
        EXPECT_GT(machine.value().gpu.d2h.rate.peak(), 0);
        EXPECT_GT(machine.value().network.rate.peak(), 0);
    }
}

TEST(Machine, PublishedPlatformHasThePublishedRates) {
    const Machine machine = load("c2050-qdr").value();
    EXPECT_DOUBLE_EQ(machine.gpu.d2h.rate.peak(), 5.5e9);
    EXPECT_DOUBLE_EQ(machine.gpu.h2d.rate.peak(), 5.5e9);
    EXPECT_DOUBLE_EQ(machine.network.rate.peak(), 3.1e9);
}

TEST(Machine, WrittenAsJsonItReadsBackEqual) {
    for (const std::string_view name : built_in_machines()) {
        const Machine machine = load(name).value();
        const Result<Machine> again = from_json(to_json(machine), name);
        ASSERT_TRUE(again.ok()) << again.status().text();
        EXPECT_EQ(again.value(), machine);
    }
}

TEST(Machine, UnderMpsAGpuIsTheSameButForTurnsAndWhatIsSaid) {
    const auto described = [](const char* under_mps) {
        return from_json(
            std::string(R"({"name": "m", "gpu": {"turn_ns": 900, "d2h": {"latency_ns": 5},
            "calls": {"event_query_ns": 7, "event_seen_ns": 20}})") +
                under_mps + "}",
            "test");
    };
    const Result<Machine> plain = described("");
    ASSERT_TRUE(plain.ok()) << plain.status().text();
    EXPECT_EQ(plain.value().gpu_under_mps, without_turns(plain.value().gpu));
    EXPECT_EQ(plain.value().gpu_under_mps.turn, 0);
    EXPECT_EQ(to_json(plain.value()).find("gpu_under_mps"), std::string::npos);

    const Machine machine =
        described(R"(, "gpu_under_mps": {"calls": {"event_seen_ns": 40}})").value();
    EXPECT_EQ(machine.gpu, plain.value().gpu);
    EXPECT_EQ(machine.gpu_under_mps.calls.event_seen, 40);
    EXPECT_EQ(machine.gpu_under_mps.calls.event_query_vain, 7);
    EXPECT_EQ(machine.gpu_under_mps.d2h.latency, 5);
    EXPECT_EQ(from_json(to_json(machine), "again").value(), machine);
    EXPECT_THAT(problem(R"({"name":"m","gpu_under_mps":{"calls":{"speed":1}}})"),
                HasSubstr("gpu_under_mps.calls.speed"));
}

TEST(Machine, AGpuHasACopyEngineAtLeast) {
    EXPECT_EQ(from_json(R"({"name":"m","gpu":{"copy_engines":1}})", "test")->gpu.copy_engines, 1);
    EXPECT_THAT(problem(R"({"name":"m","gpu":{"copy_engines":0}})"),
                HasSubstr("gpu.copy_engines is not at least 1"));
}

TEST(Machine, NetworksNobodyDescribedAreTcpOrACard) {
    const Link tcp = built_in_network("tcp"), card = built_in_network("card");
    for (const Link& link : {tcp, card}) {
        EXPECT_GT(link.rate.peak(), 0);
        EXPECT_GT(link.latency, 0);
        EXPECT_GT(link.put_cost, 0);
    }
    EXPECT_LT(tcp.rate.peak(), card.rate.peak());
}

TEST(Machine, LoadsFromAFile) {
    // Also by a name without a folder or an ending.
    const std::string name = "gantry-machine-" + std::to_string(::getpid());
    for (const std::string& path : {testing::TempDir() + name + ".json", name}) {
        std::FILE* file = std::fopen(path.c_str(), "w");
        ASSERT_NE(file, nullptr);
        std::fputs(
            R"({"name": "mine", "gpu": {"d2h": {"latency_ns": 5, "bytes_per_second": 7e9}}})",
            file);
        std::fclose(file);
        const Result<Machine> machine = load(path);
        std::remove(path.c_str());
        ASSERT_TRUE(machine.ok()) << machine.status().text();
        EXPECT_EQ(machine.value().gpu.d2h.latency, 5);
    }
}

TEST(Machine, UnknownNameIsAnErrorThatListsTheKnownOnes) {
    const Result<Machine> machine = load("h2000");
    ASSERT_FALSE(machine.ok());
    EXPECT_EQ(machine.status().error_class(), MPI_ERR_ARG);
    EXPECT_THAT(std::string(machine.status().text()), HasSubstr("c2050-qdr"));
}

TEST(Machine, MissingFileIsAnErrorThatNamesIt) {
    const Result<Machine> machine = load("./no-such-machine.json");
    ASSERT_FALSE(machine.ok());
    EXPECT_EQ(machine.status().error_class(), MPI_ERR_NO_SUCH_FILE);
    EXPECT_THAT(std::string(machine.status().text()), HasSubstr("no-such-machine.json"));
}

TEST(Machine, BadDescriptionsAreErrorsThatNameTheField) {
    EXPECT_THAT(problem("{"), HasSubstr("is not JSON"));
    EXPECT_THAT(problem("[]"), HasSubstr("an object"));
    EXPECT_THAT(problem("{}"), HasSubstr("name"));
    EXPECT_THAT(problem(R"({"name":"m","gpu":{"d2h":{"bytes_per_second":-1}}})"),
                HasSubstr("gpu.d2h.bytes_per_second"));
    EXPECT_THAT(problem(R"({"name":"m","gpu":{"d2h":{"bytes_per_second":[[8,1],[4,1]]}}})"),
                HasSubstr("growing size"));
    EXPECT_THAT(problem(R"({"name":"m","gpu":{"d2h":{"latency_ns":1,"gap_ns":2}}})"),
                HasSubstr("gpu.d2h.gap_ns"));
    EXPECT_THAT(problem(R"({"name":"m","gpu":{"speed":1}})"),
                HasSubstr("gpu.speed is not a known field"));
    EXPECT_THAT(problem(R"({"name":"m","network":{"rails":0}})"), HasSubstr("network.rails"));
    EXPECT_THAT(problem(R"({"name":"m","ipc":1})"), HasSubstr("ipc is not true or false"));
}

}  // namespace
}  // namespace gantry::model
