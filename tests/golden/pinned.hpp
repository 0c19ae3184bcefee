// SPDX-License-Identifier: BSD-3-Clause
//
// A text that a file beside the tests pins. GANTRY_GOLDEN_UPDATE=1 rewrites the file.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace gantry::test {

inline void expect_pinned(const std::string& path, const std::string& actual) {
    if (std::getenv("GANTRY_GOLDEN_UPDATE") != nullptr) {
        std::ofstream(path) << actual;
        GTEST_SKIP() << path << " rewritten";
    }
    std::ifstream file(path);
    ASSERT_TRUE(file) << "cannot read " << path;
    std::stringstream pinned;
    pinned << file.rdbuf();
    std::string expected_line, actual_line, scene;
    std::stringstream actual_lines(actual);
    int differences = 0;
    while (std::getline(actual_lines, actual_line)) {
        if (!std::getline(pinned, expected_line)) expected_line = "(end of file)";
        if (actual_line.starts_with("==")) scene = actual_line;
        if (actual_line == expected_line || ++differences > 20) continue;
        ADD_FAILURE() << scene << "\n  pinned: " << expected_line << "\n  now:    " << actual_line;
    }
    EXPECT_FALSE(std::getline(pinned, expected_line))
        << "the table has more lines than there are plans";
}

}  // namespace gantry::test
