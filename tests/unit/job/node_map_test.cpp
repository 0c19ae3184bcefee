// SPDX-License-Identifier: BSD-3-Clause
#include "job/node_map.hpp"

#include <gtest/gtest.h>

namespace gantry::job {
namespace {

using Nodes = std::vector<int>;

TEST(NodeMap, ReadsTheMappingsThatLaunchersWrite) {
    EXPECT_EQ(parse_process_mapping("(vector,(0,1,2))", 2), (Nodes{0, 0}));
    EXPECT_EQ(parse_process_mapping("(vector,(0,1,1))", 2), (Nodes{0, 0}))
        << "blocks repeat cyclically";
    EXPECT_EQ(parse_process_mapping("(vector,(0,2,1))", 2), (Nodes{0, 1}));
    EXPECT_EQ(parse_process_mapping("(vector,(0,2,2))", 6), (Nodes{0, 0, 1, 1, 0, 0}));
    EXPECT_EQ(parse_process_mapping("(vector,(0,1,3),(1,2,1))", 5), (Nodes{0, 0, 0, 1, 2}));
}

TEST(NodeMap, NumbersNodesByFirstAppearance) {
    EXPECT_EQ(parse_process_mapping("(vector,(7,1,1),(2,1,2))", 3), (Nodes{0, 1, 1}));
    EXPECT_EQ(number_nodes({"b", "a", "b", "c"}), (Nodes{0, 1, 0, 2}));
}

TEST(NodeMap, RejectsWhatDoesNotParse) {
    for (const char* text :
         {"", "unknown", "(vector)", "(vector,)", "(vector,(0,1))", "(vector,(0,1,2)",
          "(vector,(0,0,1))", "(vector,(0,1,-1))", "(vector,(0,1,2))x"})
        EXPECT_FALSE(parse_process_mapping(text, 2)) << text;
}

TEST(NodeMap, TheHostMarkIsStableInAProcess) {
    EXPECT_FALSE(host_mark().empty());
    EXPECT_EQ(host_mark(), host_mark());
}

}  // namespace
}  // namespace gantry::job
