// SPDX-License-Identifier: BSD-3-Clause
//
// Files of several ranks (io/file.hpp) on a system that fails at every call in turn: no rank waits for
// ever, all of them have one outcome in collective calls, and the file never has a wrong byte.
#include "transfer/buffer.hpp"
#include "io/fake/faulty_system.hpp"
#include "io/fake/inline_backend.hpp"
#include "io/file.hpp"
#include "unit/io/interleaved_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

namespace gantry::io {
namespace {

using world::Ending;
using world::Rank;
using world::World;
using Call = FaultySystem::Call;

// One disk for all ranks, and what each rank's last call said.
struct Disk {
    explicit Disk(unsigned seed) : system(seed) {}
    FaultySystem system;
    std::array<Status, kRanks> open, write, read, close;
};
Disk* disk = nullptr;

Task<Status> write_and_read(Rank& rank, Hints hints) {
    coll::Common common(rank.transfer.config, nullptr);
    Files files(rank.transfer, rank.messenger, rank.windows, common);
    files.use(std::make_unique<InlineBackend>(disk->system));
    const auto me = static_cast<std::size_t>(rank.number);
    File file(files, group_of(rank, kContext), "the file", MPI_MODE_RDWR | MPI_MODE_CREATE, hints);
    p2p::Group window = group_of(rank, kWindowContext);
    coll::Team team = file.team();
    disk->open[me] = co_await file.open(rank.executor, team, std::move(window));
    if (!disk->open[me].ok()) co_return success();

    std::vector<std::byte> memory(kRun * kRuns);
    Access access;
    access.view = interleaved(rank.number);
    access.buffer = transfer::bytes_buffer(memory.data(), memory.size());
    for (Bytes byte = 0; byte < memory.size(); ++byte)
        memory[byte] = byte_of(access.view->position_of(byte));
    access.direction = Direction::write;
    Bytes moved = 0;
    team = file.team();
    disk->write[me] = co_await file.transfer_all(rank.executor, team, access, &moved);
    if (disk->write[me].ok()) {
        EXPECT_EQ(moved, memory.size());
    }

    std::fill(memory.begin(), memory.end(), std::byte{});
    access.direction = Direction::read;
    team = file.team();
    disk->read[me] = co_await file.transfer_all(rank.executor, team, access, &moved);
    if (disk->write[me].ok() && disk->read[me].ok()) {
        EXPECT_EQ(moved, memory.size());
        for (Bytes byte = 0; byte < memory.size(); ++byte) {
            EXPECT_EQ(memory[byte], byte_of(access.view->position_of(byte))) << byte;
            if (memory[byte] != byte_of(access.view->position_of(byte))) break;
        }
    }
    team = file.team();
    disk->close[me] = co_await file.close(rank.executor, team);
    co_return success();
}

Hints with(plan::IoSwitch together) {
    Hints hints;
    hints.collective_read = hints.collective_write = together;
    hints.window = 4 * kKiB;
    hints.aggregators = 2;
    return hints;
}

Ending run(Disk& on, plan::IoSwitch together) {
    disk = &on;
    World world({.ranks = kRanks, .ranks_per_node = 2, .seed = 11});
    const Hints hints = with(together);
    Ending ending = world.run([hints](Rank& rank) { return write_and_read(rank, hints); });
    disk = nullptr;
    return ending;
}

TEST(Files, ShortAndInterruptedCallsLoseNothing) {
    for (const auto together : {plan::IoSwitch::enable, plan::IoSwitch::disable})
        for (unsigned seed = 0; seed < 4; ++seed) {
            Disk on(seed);
            const Ending ending = run(on, together);
            EXPECT_TRUE(ending.good()) << ending;
            EXPECT_EQ(on.system.file.size(), kRun * kRuns * kRanks);
            for (int rank = 0; rank < kRanks; ++rank) {
                const auto of = static_cast<std::size_t>(rank);
                EXPECT_TRUE(on.write[of].ok()) << on.write[of].text();
                EXPECT_TRUE(on.read[of].ok()) << on.read[of].text();
                EXPECT_TRUE(on.close[of].ok()) << on.close[of].text();
            }
            EXPECT_TRUE(no_wrong_byte(on.system.file));
        }
}

// Which of a rank's outcomes an error at that kind of call shows in.
std::array<Status, kRanks>& outcome(Disk& of, Call call) {
    switch (call) {
        case Call::open: return of.open;
        case Call::write: return of.write;
        case Call::read: return of.read;
        default: return of.close;
    }
}

TEST(Files, AnErrorAtAnyCallIsOneOfAllRanks) {
    for (const auto together : {plan::IoSwitch::enable, plan::IoSwitch::disable})
        for (const Call call : {Call::open, Call::write, Call::read, Call::close})
            for (int at = 1;; at += at < 20 ? 1 : 29) {
                SCOPED_TRACE(fmt::format("call {} number {}, together {}", static_cast<int>(call),
                                         at, together == plan::IoSwitch::enable));
                Disk on(0);
                on.system.faulty = call;
                on.system.at = at;
                on.system.error = call == Call::write ? ENOSPC : EIO;
                const Ending ending = run(on, together);
                ASSERT_TRUE(ending.good()) << ending;
                if (on.system.calls_of(call) < at) break;
                for (const Status& each : outcome(on, call))
                    EXPECT_EQ(each.error_class(),
                              call == Call::write ? MPI_ERR_NO_SPACE : MPI_ERR_IO)
                        << each.text();
                EXPECT_TRUE(no_wrong_byte(on.system.file));
            }
}

}  // namespace
}  // namespace gantry::io
