// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace gantry::config {
namespace {

TEST(Config, TakesBytesWithBinarySuffixes) {
    Config config;
    for (auto [text, bytes] : {std::pair{"65536", 65536ull},
                               {"64K", 65536ull},
                               {"4MiB", 4ull << 20},
                               {"2g", 2ull << 30}}) {
        ASSERT_TRUE(set(config, "eager_limit", text).ok()) << text;
        EXPECT_EQ(config.eager_limit, bytes) << text;
    }
}

TEST(Config, TakesTimesWithUnits) {
    Config config;
    ASSERT_TRUE(set(config, "claim_wait", "3ms").ok());
    EXPECT_EQ(config.claim_wait, 3 * kMillisecond);
}

// GANTRY_PEER_TIMEOUT=3 would be 3 ns, and hardly anybody means that.
TEST(Config, RefusesATimeWithoutUnitButTakesZero) {
    Config config;
    const Status refused = set(config, "peer_timeout", "3");
    EXPECT_EQ(refused.error_class(), MPI_ERR_ARG);
    EXPECT_NE(refused.text().find("1ms or 2s"), std::string_view::npos);
    EXPECT_EQ(config.peer_timeout, 10 * kSecond);
    EXPECT_TRUE(set(config, "peer_timeout", "0").ok());
}

TEST(Config, RefusesNonsenseWithASentenceThatNamesTheVariable) {
    Config config;
    Status status = set(config, "eager_limit", "lots");
    EXPECT_EQ(status.error_class(), MPI_ERR_ARG);
    EXPECT_NE(status.text().find("GANTRY_EAGER_LIMIT"), std::string_view::npos);
    EXPECT_NE(status.text().find("64K"), std::string_view::npos) << "says what is accepted";
    EXPECT_FALSE(set(config, "ipc", "perhaps").ok());
    EXPECT_FALSE(set(config, "eager_limit", "99999999999999G").ok());
    EXPECT_FALSE(set(config, "no_such_parameter", "1").ok());
}

// Less of these and a job hangs, or divides by zero.
TEST(Config, RefusesNumbersThatCannotWork) {
    Config config;
    for (auto [name, value] : {std::pair{"device_pool", "64K"},
                               {"host_pool", "4K"},
                               {"host_cell", "0"},
                               {"chunk", "1"},
                               {"depth", "-3"},
                               {"spin", "-5"}}) {
        const std::string before = value_text(config, name);
        const Status status = set(config, name, value);
        EXPECT_EQ(status.error_class(), MPI_ERR_ARG) << name;
        EXPECT_NE(status.text().find("at least"), std::string_view::npos) << status.text();
        EXPECT_EQ(value_text(config, name), before) << "a refused number changes nothing";
    }
    EXPECT_TRUE(set(config, "device_pool", "128K").ok());
    EXPECT_TRUE(set(config, "chunk", "0").ok()) << "the default is always taken";
    EXPECT_TRUE(set(config, "rank", "-1").ok());
    EXPECT_NE(set(config, "chunk", "1").text().find("or 0"), std::string_view::npos);
}

TEST(Config, RefusesACellThatDoesNotFitItsPool) {
    setenv("GANTRY_HOST_CELL", "8M", 1);
    auto config = from_environment();
    unsetenv("GANTRY_HOST_CELL");
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.status().error_class(), MPI_ERR_ARG);
    EXPECT_NE(config.status().text().find("GANTRY_HOST_POOL"), std::string_view::npos);
}

TEST(Config, TakesOneOfTheWordsAndNamesThemOtherwise) {
    Config config;
    ASSERT_TRUE(set(config, "gpudirect", "on").ok());
    EXPECT_EQ(config.gpudirect, "on");
    for (const char* wrong : {"perhaps", "or", "", "auto,", "o"}) {
        const Status status = set(config, "gpudirect", wrong);
        EXPECT_EQ(status.error_class(), MPI_ERR_ARG) << wrong;
        EXPECT_NE(status.text().find("GANTRY_GPUDIRECT"), std::string_view::npos);
        EXPECT_NE(status.text().find("auto, on or off"), std::string_view::npos);
    }
    EXPECT_FALSE(set(config, "gdrcopy", "no").ok());
    EXPECT_EQ(config.gpudirect, "on") << "a refused word changes nothing";
}

TEST(Config, ReadsTheEnvironment) {
    setenv("GANTRY_IPC", "off", 1);
    auto config = from_environment();
    unsetenv("GANTRY_IPC");
    ASSERT_TRUE(config.ok());
    EXPECT_FALSE(config->ipc);
}

TEST(Config, EveryParameterIsDocumentedAndPrintable) {
    Config config;
    for (const Parameter& parameter : parameters()) {
        EXPECT_GT(parameter.sentence.size(), 20u) << parameter.name;
        EXPECT_EQ(parameter.sentence.back(), '.') << parameter.name;
        EXPECT_TRUE(set(config, parameter.name, value_text(config, parameter.name)).ok())
            << parameter.name;
    }
}

}  // namespace
}  // namespace gantry::config
