// SPDX-License-Identifier: BSD-3-Clause
//
// Which processors the ranks get, on machines that are only written down.
#include "tools/mpiexec/binding.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

#include <fstream>
#include <numeric>

namespace gantry::mpiexec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// So many cores on each NUMA node, each with so many hardware threads, numbered as Linux does: the
// first threads of all cores, then the second ones.
std::vector<Core> machine(const std::vector<int>& cores_of_node, int threads = 1) {
    const int all = std::accumulate(cores_of_node.begin(), cores_of_node.end(), 0);
    std::vector<Core> cores;
    for (int node = 0; node < static_cast<int>(cores_of_node.size()); ++node)
        for (int i = 0; i < cores_of_node[static_cast<std::size_t>(node)]; ++i) {
            Core core{node, node, {}};
            for (int thread = 0; thread < threads; ++thread)
                core.processors.push_back(static_cast<int>(cores.size()) + thread * all);
            cores.push_back(core);
        }
    return cores;
}

std::vector<std::string> sets(BindTo unit, const std::vector<Core>& cores, int ranks,
                              RankThreads threads = RankThreads::program_only) {
    const Binding binding = divide(unit, cores, ranks, threads);
    std::vector<std::string> found;
    for (const Processors& rank : binding.ranks)
        found.push_back(listed(rank));
    return found;
}

TEST(Binding, AsManyRanksAsCoresGetOneCoreEach) {
    EXPECT_THAT(sets(BindTo::share, machine({4}), 4), ElementsAre("0", "1", "2", "3"));
}

TEST(Binding, FewerRanksThanCoresDivideThem) {
    EXPECT_THAT(sets(BindTo::share, machine({8}), 2), ElementsAre("0-3", "4-7"));
    EXPECT_THAT(sets(BindTo::share, machine({8}), 3), ElementsAre("0-1", "2-4", "5-7"));
}

TEST(Binding, ACoreMeansAllItsHardwareThreads) {
    EXPECT_THAT(sets(BindTo::share, machine({2}, 2), 2), ElementsAre("0,2", "1,3"));
    EXPECT_THAT(sets(BindTo::core, machine({4}, 2), 2), ElementsAre("0,4", "1,5"));
}

TEST(Binding, AShareStaysOnOneNumaNode) {
    EXPECT_THAT(sets(BindTo::share, machine({4, 4}), 3), ElementsAre("0-1", "2-3", "5-7"));
}

TEST(Binding, AShareLargerThanANodeTakesSeveral) {
    EXPECT_THAT(sets(BindTo::share, machine({2, 2, 2, 2}), 2), ElementsAre("0-3", "4-7"));
}

TEST(Binding, OneRankAndMoreRanksThanCoresAreNotBound) {
    EXPECT_THAT(sets(BindTo::share, machine({4}), 1), IsEmpty());
    const Binding crowd = divide(BindTo::share, machine({4}), 5, RankThreads::program_only);
    EXPECT_THAT(crowd.ranks, IsEmpty());
    EXPECT_EQ(crowd.why_not, "5 ranks share 4 cores");
    EXPECT_THAT(crowd.mistake, IsEmpty());
}

TEST(Binding, ProgressThreadsHaveAProcessorEachOrShareWhatIsLeft) {
    const auto with = RankThreads::with_progress_thread;
    EXPECT_THAT(sets(BindTo::share, machine({4}), 2, with), ElementsAre("0-1", "2-3"));
    EXPECT_THAT(sets(BindTo::share, machine({2}, 2), 2, with), ElementsAre("0,2", "1,3"));
    EXPECT_THAT(sets(BindTo::share, machine({4}), 3, with), IsEmpty());
    EXPECT_THAT(sets(BindTo::share, machine({2}), 2, with), ElementsAre("0", "1"));
}

TEST(Binding, RanksAreDividedAmongNumaNodesAndSockets) {
    EXPECT_THAT(sets(BindTo::numa, machine({2, 2}), 3), ElementsAre("0-1", "0-1", "2-3"));
    EXPECT_THAT(sets(BindTo::socket, machine({2, 2}), 1), ElementsAre("0-1"));
}

TEST(Binding, MoreRanksThanCoresCannotBeBoundToCores) {
    const Binding binding = divide(BindTo::core, machine({2}), 3, RankThreads::program_only);
    EXPECT_THAT(binding.mistake, HasSubstr("3 ranks, but this job may use 2 cores"));
}

class Sysfs : public testing::Test {
  protected:
    ~Sysfs() override { std::filesystem::remove_all(folder_); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((folder_ / path).parent_path());
        std::ofstream(folder_ / path) << text << '\n';
    }
    std::filesystem::path folder_ =
        std::filesystem::path(testing::TempDir()) / fmt::format("gantry-sysfs-{}", getpid());
};

TEST_F(Sysfs, CoresAreThoseOfAllowedProcessorsInOrderOfTheirNodes) {
    for (int processor = 0; processor < 8; ++processor) {
        const auto topology = fmt::format("devices/system/cpu/cpu{}/topology/", processor);
        write(topology + "thread_siblings_list",
              fmt::format("{},{}", processor % 4, processor % 4 + 4));
        write(topology + "physical_package_id", fmt::format("{}", processor % 2));
    }
    write("devices/system/node/node0/cpulist", "0,2,4,6");
    write("devices/system/node/node1/cpulist", "1,3,5,7");
    const std::vector<Core> cores = read_cores(folder_, {0, 1, 2, 3, 4, 5, 6});
    std::vector<std::string> found;
    for (const Core& core : cores)
        found.push_back(
            fmt::format("{}:{}:{}", core.numa_node, core.socket, listed(core.processors)));
    EXPECT_THAT(found, ElementsAre("0:0:0,4", "0:0:2,6", "1:1:1,5", "1:1:3"));
}

TEST_F(Sysfs, WithoutTopologyEveryProcessorIsACore) {
    const std::vector<Core> cores = read_cores(folder_, {3, 5});
    ASSERT_EQ(cores.size(), 2u);
    EXPECT_THAT(cores[0].processors, ElementsAre(3));
    EXPECT_THAT(cores[1].processors, ElementsAre(5));
}

}  // namespace
}  // namespace gantry::mpiexec
