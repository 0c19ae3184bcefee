// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that die in the middle of collective calls of a file (io/survive.cpp): each rank as it is about to
// send each of its messages. Nobody waits for ever; where the dead rank's outcome is not known, all that
// live have an error that says so, and the file has no byte that nobody wrote.
#include "unit/io/interleaved_file.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>

namespace gantry::io {
namespace {

using world::Ending;
using world::Options;
using world::Rank;
using world::World;

// Ranks that open a file, write it together and read it together, of which one dies as it is about to send
// its nth message after it has opened the file.
class Mortals {
  public:
    Mortals(plan::IoSwitch together, int victim, int step) : victim_(victim), step_(step) {
        hints_.collective_read = hints_.collective_write = together;
        hints_.window = 4 * kKiB;
        hints_.aggregators = 2;
        Options options{.ranks = kRanks, .ranks_per_node = 2, .seed = 11};
        options.on_send = options.on_send_in_node = [this](int rank, transport::MessageKind) {
            return may_send(rank);
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
    bool died() const { return died_; }

    FaultySystem system;
    std::array<Status, kRanks> write, read;
    std::array<bool, kRanks> ended{};

  private:
    Status may_send(int rank) {
        if (rank != victim_ || !opened_) return success();
        if (died_ || sent_++ == step_) {
            if (!died_) world_->kill_at(world_->timeline().now() + 20 * kMicrosecond, rank);
            died_ = true;
            return failure(MPI_ERR_OTHER, "rank {} is dead", rank);
        }
        return success();
    }
    Task<Status> program(Rank& rank) {
        const auto me = static_cast<std::size_t>(rank.number);
        FileOfRank its(rank, system, *revocations_[me], hints_);
        File& file = its.file;
        Status opened = co_await its.open(rank);
        EXPECT_TRUE(opened.ok()) << opened.text();
        if (rank.number == victim_) opened_ = true;
        std::vector<std::byte> memory(kRun * kRuns);
        Access access;
        access.view = interleaved(rank.number);
        access.buffer = transfer::bytes_buffer(memory.data(), memory.size());
        for (Bytes byte = 0; byte < memory.size(); ++byte)
            memory[byte] = byte_of(access.view->position_of(byte));
        Bytes moved = 0;
        access.direction = Direction::write;
        Task<Status> call = file.transfer_all(rank.executor, file.team(), access, &moved);
        write[me] = co_await file.together(rank.executor, std::move(call));
        access.direction = Direction::read;
        call = file.transfer_all(rank.executor, file.team(), access, &moved);
        read[me] = co_await file.together(rank.executor, std::move(call));
        call = file.close(rank.executor, file.team());
        Status closed = co_await file.together(rank.executor, std::move(call));
        ended[me] = true;
        co_return success();
    }

    const int victim_, step_;
    Hints hints_;
    bool opened_ = false, died_ = false;
    int sent_ = 0;
    std::optional<World> world_;
    std::vector<std::unique_ptr<faults::Revocations>> revocations_;
};

void die_at_every_step(plan::IoSwitch together) {
    for (int victim = 0; victim < kRanks; ++victim)
        for (int step = 0;; ++step) {
            SCOPED_TRACE(fmt::format("rank {} dies at its message {}", victim, step));
            Mortals mortals(together, victim, step);
            const Ending ending = mortals.run();
            ASSERT_TRUE(ending.good()) << ending;
            if (!mortals.died()) break;
            int failed_writes = 0, failed_reads = 0;
            for (int rank = 0; rank < kRanks; ++rank) {
                if (rank == victim) continue;
                const auto of = static_cast<std::size_t>(rank);
                ASSERT_TRUE(mortals.ended[of]) << "rank " << rank << " waits for ever\n" << ending;
                for (const Status* each : {&mortals.write[of], &mortals.read[of]})
                    EXPECT_TRUE(each->ok() || each->error_class() == MPIX_ERR_PROC_FAILED)
                        << each->text();
                failed_writes += mortals.write[of].ok() ? 0 : 1;
                failed_reads += mortals.read[of].ok() ? 0 : 1;
            }
            // Who has the write's end knows that all was written.
            if (failed_writes < kRanks - 1) {
                EXPECT_EQ(mortals.system.file.size(), kRun * kRuns * kRanks);
            }
            // A file that was given up stays so.
            if (failed_writes > 0) {
                EXPECT_EQ(failed_reads, kRanks - 1);
            }
            EXPECT_TRUE(no_wrong_byte(mortals.system.file));
        }
}

TEST(FileDeaths, InTwoPhases) {
    die_at_every_step(plan::IoSwitch::enable);
}

TEST(FileDeaths, WhereEachRankGoesAlone) {
    die_at_every_step(plan::IoSwitch::disable);
}

}  // namespace
}  // namespace gantry::io
