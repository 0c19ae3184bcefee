// SPDX-License-Identifier: BSD-3-Clause
//
// Collective reads and writes of ranks of one node (io/on_node.cpp): windows lie in memory that all of them see,
// bytes are where they belong, no message carries any, and what cannot be shared goes by messages as before.
// Whoever dies meanwhile: nobody waits for ever, and no segment is left.
#include "all.hpp"
#include "unit/io/interleaved_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

namespace gantry::io {
namespace {

using testing::HasSubstr;
using testing::Not;
using world::Ending;
using world::Options;
using world::Rank;
using world::World;

constexpr const char* kShared = "in memory that the ranks share";

Hints together() {
    Hints hints;
    hints.collective_read = hints.collective_write = plan::IoSwitch::enable;
    hints.window = 4 * kKiB;
    hints.aggregators = 2;
    return hints;
}

// What each rank sees of the file, and what it brings.
struct Part {
    std::shared_ptr<const View> view;
    Bytes first = 0, bytes = 0;
    layout::Layout memory = layout::contiguous_layout(1);  // of one byte of data
};

Part interleaved_part(int rank, Bytes runs) {
    return {interleaved(rank), 0, kRun * runs, layout::contiguous_layout(1)};
}

// Ranks of one node that write a file together and read it again.
class Node {
  public:
    explicit Node(unsigned seed = 0, const char* mechanisms = "all") : system(seed) {
        Options options{.ranks = kRanks, .ranks_per_node = kRanks, .seed = 11};
        options.mechanisms = mechanisms;
        options.on_send_in_node = [this](int, transport::MessageKind) {
            ++messages_;
            return success();
        };
        world_.emplace(std::move(options));
        for (int rank = 0; rank < kRanks; ++rank) {
            Rank& its = world_->rank(rank);
            revocations_.push_back(std::make_unique<faults::Revocations>(
                its.transfer, its.messenger, [&its](std::uint32_t) { return its.all.peers; }));
        }
    }
    Ending run() {
        return world_->run([this](Rank& rank) { return program(rank); });
    }
    World& world() { return *world_; }
    std::string explained(int rank) { return world_->rank(rank).explain.text(rank); }

    FaultySystem system;
    Hints hints = together();
    std::array<Part, kRanks> parts;
    // When all have opened the file.
    std::function<void()> opened = [] {};
    std::array<Status, kRanks> write, read;
    std::array<bool, kRanks> ended{}, right{};
    int messages_of_write = 0, messages_of_read = 0;

  private:
    static std::size_t span(const Part& part) {
        return part.bytes * static_cast<std::size_t>(part.memory.extent);
    }
    Task<Status> program(Rank& rank) {
        const auto me = static_cast<std::size_t>(rank.number);
        const Part& part = parts[me];
        FileOfRank its(rank, system, *revocations_[me], hints);
        File& file = its.file;
        Status of_open = co_await its.open(rank);
        EXPECT_TRUE(of_open.ok()) << of_open.text();
        if (++opened_ranks_ == kRanks) opened();
        std::vector<std::byte> memory(span(part) + 1), got(memory.size());
        Access access;
        access.view = part.view;
        access.first = part.first;
        access.buffer = {memory.data(), part.bytes, &part.memory};
        for (Bytes byte = 0; byte < part.bytes; ++byte)
            memory[byte * static_cast<Bytes>(part.memory.extent)] =
                byte_of(part.view->position_of(part.first + byte));
        Bytes moved = 0;
        access.direction = Direction::write;
        const int before_write = messages_;
        Task<Status> call = file.transfer_all(rank.executor, file.team(), access, &moved);
        write[me] = co_await file.together(rank.executor, std::move(call));
        messages_of_write = std::max(messages_of_write, messages_ - before_write);
        access.direction = Direction::read;
        access.buffer.address = got.data();
        const int before_read = messages_;
        call = file.transfer_all(rank.executor, file.team(), access, &moved);
        read[me] = co_await file.together(rank.executor, std::move(call));
        messages_of_read = std::max(messages_of_read, messages_ - before_read);
        right[me] = got == memory;
        call = file.close(rank.executor, file.team());
        Status closed = co_await file.together(rank.executor, std::move(call));
        ended[me] = true;
        co_return success();
    }

    int messages_ = 0, opened_ranks_ = 0;
    std::optional<World> world_;
    std::vector<std::unique_ptr<faults::Revocations>> revocations_;
};

void expect_all_right(Node& node) {
    const Ending ending = node.run();
    ASSERT_TRUE(ending.good()) << ending;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        EXPECT_TRUE(node.write[rank].ok()) << node.write[rank].text();
        EXPECT_TRUE(node.read[rank].ok()) << node.read[rank].text();
        EXPECT_TRUE(node.right[rank]) << "rank " << rank;
    }
    EXPECT_TRUE(no_wrong_byte(node.system.file));
}

void interleave(Node& node, Bytes runs) {
    for (int rank = 0; rank < kRanks; ++rank)
        node.parts[static_cast<std::size_t>(rank)] = interleaved_part(rank, runs);
}

// Mappings of windows, and descriptors of them.
int segments_left() {
    int found = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        found += line.find("gantry-file-windows") != std::string::npos ? 1 : 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
        found += target.find("gantry-file-windows") != std::string::npos ? 1 : 0;
    }
    return found;
}

TEST(FilesOnANode, NoMessageCarriesBytesOfTheFile) {
    Node small, large;
    interleave(small, 100);
    interleave(large, 1600);  // 16 times as many windows
    expect_all_right(small);
    expect_all_right(large);
    EXPECT_EQ(large.messages_of_write, small.messages_of_write);
    EXPECT_EQ(large.messages_of_read, small.messages_of_read);
    for (int rank = 0; rank < kRanks; ++rank)
        EXPECT_THAT(large.explained(rank), HasSubstr(kShared));

    Node by_messages(0, "none");
    interleave(by_messages, 1600);
    expect_all_right(by_messages);
    EXPECT_GT(by_messages.messages_of_write, large.messages_of_write + 100);
    EXPECT_GT(by_messages.messages_of_read, large.messages_of_read + 100);
    EXPECT_THAT(by_messages.explained(0), Not(HasSubstr(kShared)));
}

// Blocks of random owners, or of none; memory with holes or without; a system that cuts calls short.
void randomize(Node& node, unsigned seed) {
    std::mt19937 random(seed);
    node.system.in_memory = seed % 2 == 0;
    node.hints.aggregators = static_cast<int>(1 + random() % kRanks);
    std::array<std::vector<layout::Block>, kRanks> blocks;
    std::ptrdiff_t extent = 0;
    const unsigned longest = seed % 5 == 0 ? 3000 : 40;
    for (int block = 0; block < 60; ++block) {
        const auto owner = random() % (kRanks + 1);
        const Bytes bytes = 1 + random() % longest;
        if (owner < kRanks) blocks[owner].push_back({extent, bytes});
        extent += static_cast<std::ptrdiff_t>(bytes);
    }
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        auto view = std::make_shared<View>();
        view->displacement = 100;
        if (!blocks[rank].empty()) view->filetype = layout::listed_layout(extent, blocks[rank]);
        Part& part = node.parts[rank];
        part.view = view;
        part.first = random() % 30;
        if (!blocks[rank].empty() && random() % 8 != 0)
            part.bytes = random() % (3 * view->filetype.size);
        if (random() % 2 == 0)
            part.memory = layout::listed_layout(3, std::vector<layout::Block>{{0, 1}});
    }
}

TEST(FilesOnANode, RandomViewsAreWrittenAndReadByteByByte) {
    const int before = segments_left();
    for (unsigned seed = 0; seed < seeds(24, 1000); ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        Node node(seed % 3);
        randomize(node, seed);
        expect_all_right(node);
    }
    EXPECT_EQ(segments_left(), before);
}

TEST(FilesOnANode, AnErrorOfTheFileIsOneOfAllRanks) {
    using Call = FaultySystem::Call;
    for (const Call call : {Call::write, Call::read})
        for (int at = 1; at < 10; ++at) {
            SCOPED_TRACE(fmt::format("call {} number {}", static_cast<int>(call), at));
            Node node;
            interleave(node, 400);
            node.system.faulty = call;
            node.system.at = at;
            node.system.error = EIO;
            const Ending ending = node.run();
            ASSERT_TRUE(ending.good()) << ending;
            ASSERT_GE(node.system.calls_of(call), at);
            for (const Status& each : call == Call::write ? node.write : node.read)
                EXPECT_EQ(each.error_class(), MPI_ERR_IO) << each.text();
            EXPECT_TRUE(no_wrong_byte(node.system.file));
        }
}

struct Failed {
    int writes = 0, reads = 0;
};

// Of a run in which that rank dies.
Failed survive(Node& node, int victim) {
    const Ending ending = node.run();
    EXPECT_TRUE(ending.good()) << ending;
    Failed failed;
    for (int rank = 0; rank < kRanks; ++rank) {
        if (rank == victim) continue;
        const auto of = static_cast<std::size_t>(rank);
        EXPECT_TRUE(node.ended[of]) << "rank " << rank << " waits for ever\n" << ending;
        for (const Status* each : {&node.write[of], &node.read[of]})
            EXPECT_TRUE(each->ok() || each->error_class() == MPIX_ERR_PROC_FAILED) << each->text();
        failed.writes += node.write[of].ok() ? 0 : 1;
        failed.reads += node.read[of].ok() ? 0 : 1;
        if (node.read[of].ok() && node.write[of].ok()) {
            EXPECT_TRUE(node.right[of]);
        }
    }
    // Who has the write's end knows that all was written; a file that was given up stays so.
    if (failed.writes < kRanks - 1) {
        EXPECT_EQ(node.system.file.size(), kRun * 400 * kRanks);
    }
    if (failed.writes > 0) {
        EXPECT_EQ(failed.reads, kRanks - 1);
    }
    EXPECT_TRUE(no_wrong_byte(node.system.file));
    return failed;
}

// What the dead process holds goes with it: its own windows, a descriptor of them, another one's.
constexpr int kMostOfTheDead = 3;

TEST(FilesOnANode, WhoeverDiesAtAnyMomentNobodyWaits) {
    for (int victim = 0; victim < kRanks; ++victim)
        for (Nanoseconds after = 0;; after += 100) {
            SCOPED_TRACE(fmt::format("rank {} dies after {} ns", victim, after));
            const int before = segments_left();
            Node node;
            interleave(node, 400);
            node.opened = [&node, victim, after] {
                node.world().kill_at(node.world().timeline().now() + after, victim);
            };
            survive(node, victim);
            if (node.ended[static_cast<std::size_t>(victim)]) break;
            EXPECT_LE(segments_left() - before, kMostOfTheDead);
        }
}

TEST(FilesOnANode, WhoeverDiesAtAnyWindowNobodyWaits) {
    // 10 windows of two aggregators. At the last two the rank may have told its outcome already.
    for (int victim = 0; victim < kRanks; ++victim)
        for (int window = 0; window < 2 * 10; ++window) {
            SCOPED_TRACE(fmt::format("rank {} dies at window {}", victim, window));
            const int before = segments_left();
            Node node;
            interleave(node, 400);
            int calls = 0;
            node.system.before = [&node, &calls, victim, window] {
                if (calls++ == window) node.world().kill(victim);
            };
            const Failed failed = survive(node, victim);
            ASSERT_GT(calls, window);
            EXPECT_LE(segments_left() - before, kMostOfTheDead);
            if (window < 8) {
                EXPECT_EQ(failed.writes, kRanks - 1);
            } else if (window >= 10) {
                EXPECT_EQ(failed.writes, 0);
            }
        }
}

class Limit {
  public:
    Limit(decltype(RLIMIT_FSIZE) of, rlim_t most) : of_(of) {
        getrlimit(of_, &before_);
        const rlimit lower{most, before_.rlim_max};
        setrlimit(of_, &lower);
    }
    ~Limit() { setrlimit(of_, &before_); }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

  private:
    const decltype(RLIMIT_FSIZE) of_;
    rlimit before_{};
};

TEST(FilesOnANode, WithoutSharedMemoryBytesGoByMessages) {
    std::signal(SIGXFSZ, SIG_IGN);
    Node node;
    interleave(node, 400);
    std::optional<Limit> no_room;
    node.opened = [&no_room] { no_room.emplace(RLIMIT_FSIZE, 4096); };
    const int before = segments_left();
    expect_all_right(node);
    no_room.reset();
    EXPECT_EQ(segments_left(), before);
    EXPECT_THAT(node.explained(0), HasSubstr("windows could not be shared"));
    EXPECT_THAT(node.explained(0), Not(HasSubstr(kShared)));
}

// Both aggregators have made theirs; nobody has a descriptor left to open the other one's.
TEST(FilesOnANode, WhoCannotMapWindowsMakesAllGoByMessages) {
    Node node;
    interleave(node, 400);
    std::vector<int> fillers;
    std::optional<Limit> few;
    node.opened = [&fillers, &few] {
        int highest = 0;
        for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
            highest = std::max(highest, std::stoi(each.path().filename().string()));
        few.emplace(RLIMIT_NOFILE, static_cast<rlim_t>(highest) + 10);
        for (int more = dup(0); more >= 0; more = dup(0))
            fillers.push_back(more);
        for (int free = 0; free < 2; ++free) {
            close(fillers.back());
            fillers.pop_back();
        }
    };
    const int before = segments_left();
    expect_all_right(node);
    for (const int each : fillers)
        close(each);
    few.reset();
    EXPECT_EQ(segments_left(), before);
    EXPECT_THAT(node.explained(0), HasSubstr("windows could not be shared"));
}

}  // namespace
}  // namespace gantry::io
