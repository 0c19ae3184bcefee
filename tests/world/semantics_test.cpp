// SPDX-License-Identifier: BSD-3-Clause
//
// What MPI promises about point-to-point messages, in the world: order, wildcards, synchronous
// sends, probes, truncation, cancelling, messages to oneself. Each under reordering, repeats and
// jitter from many seeds.
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <fmt/format.h>

#include <map>

namespace gantry::world {
namespace {

Options rough(std::uint64_t seed, int ranks, int ranks_per_node = 1) {
    return {.ranks = ranks,
            .ranks_per_node = ranks_per_node,
            .seed = seed,
            .jitter = 30 * kMicrosecond,
            .network_order = transport::fake::Order::shuffled,
            .duplicate_envelopes = true,
            .exposes_from = seed % 2 == 0 ? 0 : 32 * kKiB};
}

void expect_good(const Program& program, int ranks, int ranks_per_node = 1,
                 std::uint64_t seeds = repetitions(20)) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        World world(rough(seed, ranks, ranks_per_node));
        const Ending ending = world.run(program);
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "something was left over, seed " << seed;
    }
}

// --- order --------------------------------------------------------------------------------------

// Sizes that take different protocols, so that a later message could easily overtake an earlier
// one.
constexpr Bytes kMixed[] = {100000, 8, 0, 20000, 300000, 1, 40000, 16, 700000, 64};

Task<Status> ordered(Rank& rank) {
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    std::vector<Result<p2p::Request*>> requests;
    const bool sends = rank.number == 0;
    for (std::uint64_t i = 0; i < std::size(kMixed); ++i) {
        buffers.push_back(std::make_unique<Bytebuffer>(
            rank, i % 3 == 0 ? Place::device : Place::host, sends ? kMixed[i] : kMiB));
        if (sends) {
            buffers.back()->fill(i);
            requests.push_back(rank.messenger.isend(rank.all, buffers.back()->whole(), 1, 4,
                                                    p2p::SendMode::standard));
        } else {
            requests.push_back(rank.messenger.ireceive(rank.all, buffers.back()->whole(),
                                                       MPI_ANY_SOURCE, MPI_ANY_TAG));
        }
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
        Received ended = co_await finish(rank.executor, rank, std::move(requests[i]));
        GANTRY_CO_TRY(ended.status);
        WORLD_CHECK(sends || (ended.outcome.bytes == kMixed[i] && buffers[i]->holds(i, kMixed[i])));
    }
    co_return success();
}
TEST(Order, MessagesOfOnePairMatchInTheOrderInWhichTheyWereSent) {
    expect_good(ordered, 2);
}

Task<Status> tags_backwards(Rank& rank) {
    constexpr int kMessages = 12;
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    std::vector<Result<p2p::Request*>> requests;
    for (int i = 0; i < kMessages; ++i) {
        const int tag = rank.number == 0 ? i : kMessages - 1 - i;
        const Bytes bytes = tag % 2 == 0 ? 50 : 90000;
        buffers.push_back(std::make_unique<Bytebuffer>(rank, Place::host, bytes));
        if (rank.number == 0) {
            buffers.back()->fill(static_cast<std::uint64_t>(tag));
            requests.push_back(rank.messenger.isend(rank.all, buffers.back()->whole(), 1, tag,
                                                    p2p::SendMode::standard));
        } else {
            Received received = co_await receive(rank, buffers.back()->whole(), 0, tag);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffers.back()->holds(static_cast<std::uint64_t>(tag), bytes));
        }
    }
    for (Result<p2p::Request*>& request : requests) {
        Received ended = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(ended.status);
    }
    co_return success();
}
TEST(Order, TagsSelectMessagesInAnyOrder) {
    expect_good(tags_backwards, 2);
}

// --- wildcards ----------------------------------------------------------------------------------

Task<Status> collect_from_all(Rank& rank) {
    constexpr int kEach = 5;
    if (rank.number != 0) {
        for (int i = 0; i < kEach; ++i) {
            Bytebuffer out(rank, Place::host, static_cast<Bytes>(i) * 9000 + 4);
            out.fill(static_cast<std::uint64_t>(rank.number * 100 + i));
            Status sent = co_await send(rank, out.whole(), 0, i);
            GANTRY_CO_TRY(sent);
        }
        co_return success();
    }
    std::map<int, int> next;  // of each source: messages of one source come in its order
    for (int i = 0; i < kEach * (rank.all.size() - 1); ++i) {
        Bytebuffer in(rank, Place::host, 64 * kKiB);
        Received received = co_await receive(rank, in.whole(), MPI_ANY_SOURCE, MPI_ANY_TAG);
        GANTRY_CO_TRY(received.status);
        const p2p::Outcome& outcome = received.outcome;
        WORLD_CHECK(outcome.source >= 1 && outcome.source < rank.all.size());
        WORLD_CHECK(outcome.tag == next[outcome.source]++);
        WORLD_CHECK(in.holds(static_cast<std::uint64_t>(outcome.source * 100 + outcome.tag),
                             outcome.bytes));
    }
    co_return success();
}
TEST(Wildcards, EverySenderIsServedInItsOrder) {
    expect_good(collect_from_all, 6, 2);
}

// --- synchronous sends --------------------------------------------------------------------------

Task<Status> synchronous(Rank& rank) {
    for (const Bytes bytes : {Bytes{0}, Bytes{10}, Bytes{200000}}) {
        Bytebuffer buffer(rank, Place::host, bytes);
        if (rank.number == 0) {
            buffer.fill(bytes);
            const Nanoseconds before = rank.processor.now();
            Status sent = co_await send(rank, buffer.whole(), 1, 1, p2p::SendMode::synchronous);
            GANTRY_CO_TRY(sent);
            WORLD_CHECK(rank.processor.now() - before >= 2 * kMillisecond);
        } else {
            Status slept = co_await rank.sleep(rank.executor, 3 * kMillisecond);
            GANTRY_CO_TRY(slept);
            Received received = co_await receive(rank, buffer.whole(), 0, 1);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(bytes, bytes));
        }
        Status met = co_await meet(rank, 9);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}
TEST(SynchronousSend, EndsOnlyWhenItsMessageIsMatched) {
    expect_good(synchronous, 2);
}
TEST(SynchronousSend, EndsOnlyWhenItsMessageIsMatchedOnOneNode) {
    expect_good(synchronous, 2, 2);
}

// --- probes -------------------------------------------------------------------------------------

Task<Status> probed(Rank& rank) {
    constexpr Bytes kSizes[] = {0, 24, 250000};
    for (const Bytes bytes : kSizes) {
        for (const bool taken : {false, true}) {
            if (rank.number == 0) {
                Bytebuffer out(rank, Place::device, bytes);
                out.fill(bytes);
                Status sent = co_await send(rank, out.whole(), 1, 6);
                GANTRY_CO_TRY(sent);
                continue;
            }
            p2p::Matched found;
            while (found.message == nullptr) {
                co_await rank.turn();
                found = taken ? rank.messenger.take(rank.all, MPI_ANY_SOURCE, 6)
                              : rank.messenger.probe(rank.all, 0, MPI_ANY_TAG);
            }
            WORLD_CHECK(found.outcome.bytes == bytes && found.outcome.source == 0 &&
                        found.outcome.tag == 6);
            Bytebuffer in(rank, Place::host, bytes);
            Result<p2p::Request*> request(nullptr);
            if (taken) {
                WORLD_CHECK(rank.messenger.probe(rank.all, 0, MPI_ANY_TAG).message !=
                            found.message);  // the next, or none
                request = rank.messenger.ireceive_matched(rank.all, found, in.whole());
            } else {
                request = rank.messenger.ireceive(rank.all, in.whole(), 0, 6);
            }
            Received received = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(in.holds(bytes, bytes));
        }
    }
    co_return success();
}
TEST(Probe, TellsTheOldestMessageAndLeavesOrTakesIt) {
    expect_good(probed, 2);
}
TEST(Probe, TellsTheOldestMessageAndLeavesOrTakesItOnOneNode) {
    expect_good(probed, 2, 2);
}

// --- truncation ---------------------------------------------------------------------------------

Task<Status> truncated(Rank& rank) {
    for (const Place place : {Place::host, Place::device}) {
        for (const Bytes bytes : {Bytes{100}, Bytes{40000}, Bytes{900000}}) {
            for (const Bytes room : {Bytes{0}, bytes / 2}) {
                if (rank.number == 0) {
                    Bytebuffer out(rank, place, bytes);
                    out.fill(7);
                    Status sent = co_await send(rank, out.whole(), 1, 2);
                    GANTRY_CO_TRY(sent);
                } else {
                    Bytebuffer in(rank, place, bytes);
                    Received received = co_await receive(rank, in.part(0, room), 0, 2);
                    WORLD_CHECK(received.status.error_class() == MPI_ERR_TRUNCATE);
                    WORLD_CHECK(received.status.text() ==
                                fmt::format("a message of {} bytes from rank 0 with tag 2 was "
                                            "received into a buffer of {} bytes",
                                            bytes, room));
                    WORLD_CHECK(
                        in.holds(7, room));  // what fits is there, nothing behind it is touched
                }
            }
        }
    }
    Status met = co_await meet(rank, 3);  // the connection still works
    co_return met;
}
TEST(Truncation, IsAnErrorOfTheReceiveAloneAndFillsWhatFits) {
    expect_good(truncated, 2);
}
TEST(Truncation, IsAnErrorOfTheReceiveAloneAndFillsWhatFitsOnOneNode) {
    expect_good(truncated, 2, 2);
}

// --- cancelling ---------------------------------------------------------------------------------

Task<Status> cancelled(Rank& rank) {
    if (rank.number == 1) {
        Bytebuffer in(rank, Place::host, 8), kept(rank, Place::host, 8);
        Result<p2p::Request*> first = rank.messenger.ireceive(rank.all, in.whole(), 0, 1);
        Result<p2p::Request*> second = rank.messenger.ireceive(rank.all, kept.whole(), 0, 1);
        WORLD_CHECK(rank.messenger.cancel(*first.value()));
        Status met = co_await meet(rank, 8);
        GANTRY_CO_TRY(met);
        Received nothing = co_await finish(rank.executor, rank, std::move(first));
        WORLD_CHECK(nothing.status.ok() && nothing.outcome.cancelled);
        Received received = co_await finish(rank.executor, rank, std::move(second));
        WORLD_CHECK(received.status.ok() && !received.outcome.cancelled && kept.holds(3, 8) &&
                    in.holds(0, 0));
        co_return success();
    }
    Status met = co_await meet(rank, 8);
    GANTRY_CO_TRY(met);
    Bytebuffer out(rank, Place::host, 8);
    out.fill(3);
    Status sent = co_await send(rank, out.whole(), 1, 1);
    co_return sent;
}
// What was copied ahead for them had arrived when the receives were posted.
Task<Status> short_receives_of_staged_messages(Rank& rank, Place place, Bytes room) {
    constexpr Bytes kBytes = 300000;
    Bytebuffer buffer(rank, place, kBytes);
    for (std::uint64_t message = 0; message < 24; ++message) {
        const bool whole = message >= 20;
        if (rank.number == 0) {
            buffer.fill(message);
            Status sent = co_await send(rank, buffer.whole(), 1, 0);
            GANTRY_CO_TRY(sent);
            continue;
        }
        buffer.clear();
        Status slept = co_await rank.sleep(rank.executor, kMillisecond);
        GANTRY_CO_TRY(slept);
        const p2p::Buffer into = whole ? buffer.whole() : buffer.part(0, room);
        Received got = co_await receive(rank, into, 0, 0);
        WORLD_CHECK(got.status.error_class() == (whole ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
        WORLD_CHECK(buffer.holds(message, whole ? kBytes : room));
    }
    co_return success();
}

TEST(Truncation, GivesBackTheSlotsOfWhatItDoesNotTake) {
    for (const Place place : {Place::device, Place::host})
        for (const Bytes room : {Bytes{0}, Bytes{1000}, 70 * kKiB}) {
            Options options{.machine = "h200", .ranks_per_node = 2};
            options.change_config = [](config::Config& config) {
                config.ipc = false;
                config.device_pool = config.host_pool = 128 * kKiB;
            };
            World world(options);
            const Ending ending = world.run(
                [&](Rank& rank) { return short_receives_of_staged_messages(rank, place, room); });
            EXPECT_TRUE(ending.good()) << ending;
            EXPECT_TRUE(world.settle()) << "something was left over";
        }
}

TEST(Cancel, TakesBackAReceiveThatIsNotMatchedYet) {
    expect_good(cancelled, 2);
}

// Each message is either cancelled or received, whatever the way it takes and whenever its receive
// is posted.
Task<Status> cancelled_sends(Rank& rank, Place place, Bytes bytes, p2p::SendMode mode,
                             Nanoseconds posted_after) {
    for (int round = 0; round < 3; ++round) {
        Bytebuffer out(rank, place, bytes), in(rank, place, bytes);
        const bool sends = rank.number == 0;
        bool taken_back = false;
        if (sends) {
            out.fill(7);
            Result<p2p::Request*> request = rank.messenger.isend(rank.all, out.whole(), 1, 3, mode);
            GANTRY_CO_TRY(request.status());
            rank.messenger.cancel(**request);
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(ended.status);
            taken_back = ended.outcome.cancelled;
            Bytebuffer verdict(rank, Place::host, 1);
            verdict.fill(taken_back ? 1 : 0);
            Status told = co_await send(rank, verdict.whole(), 1, 4);
            GANTRY_CO_TRY(told);
        } else {
            Result<p2p::Request*> receive_it = static_cast<p2p::Request*>(nullptr);
            if (posted_after > 0) {
                Status slept = co_await rank.sleep(rank.executor, posted_after);
                GANTRY_CO_TRY(slept);
            }
            if (posted_after >= 0) receive_it = rank.messenger.ireceive(rank.all, in.whole(), 0, 3);
            Bytebuffer verdict(rank, Place::host, 1);
            Received told = co_await receive(rank, verdict.whole(), 0, 4);
            GANTRY_CO_TRY(told.status);
            taken_back = verdict.holds(1, 1);
            if (posted_after < 0 && !taken_back)
                receive_it = rank.messenger.ireceive(rank.all, in.whole(), 0, 3);
            if (*receive_it != nullptr) {
                if (taken_back) WORLD_CHECK(rank.messenger.cancel(**receive_it));
                Received ended = co_await finish(rank.executor, rank, std::move(receive_it));
                GANTRY_CO_TRY(ended.status);
                WORLD_CHECK(ended.outcome.cancelled == taken_back);
                WORLD_CHECK(taken_back || in.holds(7, bytes));
            }
            WORLD_CHECK(rank.messenger.probe(rank.all, 0, 3).message == nullptr);
        }
        // What nothing waits for must not hang; what needs its receiver is cancelled.
        if (posted_after < 0 && mode == p2p::SendMode::synchronous) WORLD_CHECK(taken_back);
        Status met = co_await meet(rank, 9);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

TEST(Cancel, ASendIsEitherTakenBackOrReceived) {
    const Nanoseconds times[] = {-1, 0, 20 * kMicrosecond, kMillisecond};
    for (const Nanoseconds when : times)
        for (const Place place : {Place::host, Place::device})
            for (const Bytes bytes : {Bytes{0}, Bytes{8}, 20 * kKiB, 300 * kKiB, 2 * kMiB})
                for (const auto mode : {p2p::SendMode::standard, p2p::SendMode::synchronous})
                    for (const int per_node : {1, 2}) {
                        SCOPED_TRACE(fmt::format("{} {} B, mode {}, {} a node, receive at {}",
                                                 name(place), bytes, static_cast<int>(mode),
                                                 per_node, when));
                        expect_good(
                            [=](Rank& rank) {
                                return cancelled_sends(rank, place, bytes, mode, when);
                            },
                            2, per_node, repetitions(3));
                    }
}

// --- oneself ------------------------------------------------------------------------------------

Task<Status> to_myself(Rank& rank) {
    for (const Bytes bytes : {Bytes{0}, Bytes{5}, Bytes{100000}, 3 * kMiB}) {
        for (const auto& [from, to] :
             {std::pair{Place::host, Place::host}, std::pair{Place::device, Place::device},
              std::pair{Place::host, Place::device}, std::pair{Place::device, Place::host}}) {
            for (const bool expected : {true, false}) {
                Bytebuffer out(rank, from, bytes), in(rank, to, bytes);
                out.fill(bytes);
                Result<p2p::Request*> receiving(nullptr), sending(nullptr);
                if (expected)
                    receiving = rank.messenger.ireceive(rank.all, in.whole(), rank.number, 1);
                sending = rank.messenger.isend(rank.all, out.whole(), rank.number, 1,
                                               p2p::SendMode::standard);
                Status slept = co_await rank.sleep(rank.executor, 20 * kMicrosecond);
                GANTRY_CO_TRY(slept);
                if (!expected)
                    receiving = rank.messenger.ireceive(rank.all, in.whole(), rank.number, 1);
                Received received = co_await finish(rank.executor, rank, std::move(receiving));
                Received sent = co_await finish(rank.executor, rank, std::move(sending));
                GANTRY_CO_TRY(received.status);
                GANTRY_CO_TRY(sent.status);
                WORLD_CHECK(in.holds(bytes, bytes));
            }
        }
    }
    co_return success();
}
TEST(Self, MessagesToOneselfArrive) {
    expect_good(to_myself, 1, 1, 4);
}

}  // namespace
}  // namespace gantry::world
