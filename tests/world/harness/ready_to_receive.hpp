// SPDX-License-Identifier: BSD-3-Clause
//
// What programs of puts after a ready-to-receive (RTR) are made of (p2p/protocols/put_after_rtr.cpp).
#pragma once

#include "world/harness/programs.hpp"

namespace gantry::world {

inline constexpr Bytes kBytes = 4 * kKiB;
inline constexpr int kLearn = 200;  // by then both mappings have repaid themselves

// Two GPUs of a node whose mappings are cheap: 20 us each. With an odd seed nothing is recorded for
// `gantry explain`, which must change nothing.
inline Options two_gpus(std::uint64_t seed = 3) {
    Options options{.machine = "h200", .ranks_per_node = 2, .seed = seed, .mechanisms = "all"};
    options.explain = seed % 2 == 0;
    options.change_machine = [](model::Machine& machine) {
        machine.gpu.calls.ipc_pair = 0;
        machine.gpu.calls.ipc_open_peer = 20 * kMicrosecond;
    };
    return options;
}

// As MPI_Send and MPI_Recv do it.
inline Task<Status> send_and_wait(Rank& rank, p2p::Buffer buffer, int to, int tag) {
    Result<p2p::Request*> started =
        rank.messenger.send_to_wait(rank.all, buffer, to, tag, p2p::SendMode::standard);
    if (started.ok() && *started == nullptr) co_return success();
    Received ended = co_await finish(rank.executor, rank, std::move(started));
    co_return ended.status;
}

inline Task<Received> receive_and_wait(Rank& rank, p2p::Buffer buffer, int from, int tag) {
    Result<p2p::Request*> started = rank.messenger.receive_to_wait(rank.all, buffer, from, tag);
    Received ended = co_await finish(rank.executor, rank, std::move(started));
    co_return ended;
}

inline std::uint64_t puts(Rank& rank) {
    return rank.device.counts().copies[static_cast<int>(model::Operation::peer)];
}
inline std::uint64_t gets(Rank& rank) {
    return rank.device.counts().copies[static_cast<int>(model::Operation::peer_get)];
}

// One message from rank 0, whose receive waits for it already.
inline Task<Status> one(Rank& rank, Bytebuffer& buffer, int round) {
    if (rank.number == 0) {
        buffer.fill(static_cast<std::uint64_t>(round));
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        Status sent = co_await send_and_wait(rank, buffer.whole(), 1, 7);
        GANTRY_CO_TRY(sent);
    } else {
        buffer.clear();
        Received got = co_await receive_and_wait(rank, buffer.whole(), 0, 7);
        GANTRY_CO_TRY(got.status);
        WORLD_CHECK(got.outcome.bytes == buffer.bytes() && got.outcome.tag == 7);
        WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), buffer.bytes()));
    }
    Status met = co_await meet(rank, 1000 + round);
    co_return met;
}

// Until that buffer of rank 1 is put into; counts from then on.
inline Task<Status> learn_to_put(Rank& rank, Bytebuffer& buffer) {
    for (int round = 0; round < kLearn; ++round) {
        Status done = co_await one(rank, buffer, round);
        GANTRY_CO_TRY(done);
    }
    rank.device.reset_counts();
    co_return success();
}

// One more message, whose sender starts it and then computes for two milliseconds; `took`: until the
// receiver, which waits for it, had it.
enum class Sends : bool { at_leisure, blocking };  // MPI_Isend, MPI_Send
inline Task<Status> send_and_compute(Rank& rank, Bytebuffer& buffer, Sends how, Nanoseconds& took) {
    if (rank.number == 0) {
        buffer.fill(4);
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        const auto standard = p2p::SendMode::standard;
        Result<p2p::Request*> sending =
            how == Sends::blocking
                ? rank.messenger.send_to_wait(rank.all, buffer.whole(), 1, 7, standard)
                : rank.messenger.isend(rank.all, buffer.whole(), 1, 7, standard);
        rank.work(2 * kMillisecond);
        Received sent = co_await finish(rank.executor, rank, std::move(sending));
        co_return sent.status;
    }
    buffer.clear();
    const Nanoseconds begin = rank.processor.now();
    Received got = co_await receive_and_wait(rank, buffer.whole(), 0, 7);
    GANTRY_CO_TRY(got.status);
    took = rank.processor.now() - begin;
    WORLD_CHECK(buffer.holds(4, buffer.bytes()));
    co_return success();
}

}  // namespace gantry::world
