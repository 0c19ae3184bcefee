// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges wait on requests rather than on tasks: a receive is posted, a send queued, then both
// are awaited. A copy inside the process is a message to itself: the messenger knows every layout
// and memory kind already.
#include "coll/exchange.hpp"

#include "coll/planner.hpp"
#include "p2p/reason.hpp"
#include "transfer/context.hpp"

#include <mpi-ext.h>

namespace gantry::coll {
namespace {

constexpr std::byte kBadNews{};

// Ahead of bad news for a rank that may not know the reason.
[[gnu::cold]] void say_why(const Run& run, int to) {
    const int why = run.status().error_class();
    if (why != MPIX_ERR_REVOKED && why != MPIX_ERR_PROC_FAILED) return;
    transfer::Context& context = *run.team.context;
    transfer::Endpoint& peer = context.endpoints.to(run.team.group->peer(run.team.in_group(to)));
    if (!peer.lost.ok()) return;
    const p2p::Reason reason{p2p::base_context(run.team.group->context), why};
    // What the collective ends with there is a failure in any case.
    static_cast<void>(context.send(peer, p2p::kReason, reason));
}

// What goes out: the data, or what stands for it in a failed run.
p2p::Buffer outgoing_of(const Run& run, const p2p::Buffer& buffer, int to) {
    if (run.team.planner != nullptr) {
        if (Common* common = run.team.planner->common(); common != nullptr) {
            ++common->messages;
            common->bytes += buffer.bytes();
        }
    }
    if (!run.failed()) [[likely]]
        return buffer;
    say_why(run, to);
    return transfer::bytes_buffer(&kBadNews, buffer.bytes() == 0 ? 1 : 0);
}

Status judge(const Team& team, const p2p::Request& request, Bytes expected) {
    if (!request.status.ok()) [[unlikely]] {
        if (expected != 0 || request.outcome.bytes != 0) return request.status;
    } else if (request.outcome.bytes != 0 || expected == 0) {
        return success();
    }
    GANTRY_TRY(team.messenger->nothing_comes(*team.group, MPI_ANY_SOURCE));
    return failure(MPI_ERR_OTHER,
                   "the collective operation failed on another rank, whose error says why");
}

}  // namespace

Task<Status> send(Executor& executor, Run& run, p2p::Buffer buffer, int to) {
    const Team& team = run.team;
    Result<p2p::Request*> started =
        team.messenger->isend(*team.group, outgoing_of(run, buffer, to), team.in_group(to),
                              team.tag, p2p::SendMode::awaited);
    if (!started.ok()) {
        run.note(std::move(started).status());
        co_return run.status();
    }
    p2p::Request* request = *started;
    Status sent = co_await request->finished(executor);
    team.messenger->release(request);
    run.note(std::move(sent));
    co_return run.status();
}

Task<Status> receive(Executor& executor, Run& run, p2p::Buffer buffer, int from) {
    const Team& team = run.team;
    Result<p2p::Request*> started =
        team.messenger->ireceive(*team.group, buffer, team.in_group(from), team.tag);
    if (!started.ok()) {
        run.note(std::move(started).status());
        co_return run.status();
    }
    p2p::Request* request = *started;
    Status received = co_await request->finished(executor);
    run.note(judge(team, *request, buffer.bytes()));
    team.messenger->release(request);
    co_return run.status();
}

Task<Status> exchange(Executor& executor, Run& run, p2p::Buffer outgoing, int to,
                      p2p::Buffer incoming, int from) {
    const Team& team = run.team;
    const p2p::Messenger::Half out{outgoing_of(run, outgoing, to), team.in_group(to), team.tag,
                                   p2p::SendMode::awaited},
        in{incoming, team.in_group(from), team.tag};
    Result<p2p::Messenger::Exchange> started =
        team.messenger->exchange(*team.group, &out, &in, false);
    if (!started.ok()) {
        // Nothing has started, since one of the two ranks is lost. The other one still waits for what
        // this rank sends, or with what this rank gets.
        run.note(std::move(started).status());
        InFlight apart(run);
        apart.receive(incoming, from);
        apart.send(outgoing, to);
        Status ended = co_await apart.all(executor);
        co_return run.status();
    }
    Status sent = co_await started->sending->finished(executor);
    team.messenger->release(started->sending);
    run.note(std::move(sent));
    Status received = co_await started->receiving->finished(executor);
    run.note(judge(team, *started->receiving, incoming.bytes()));
    team.messenger->release(started->receiving);
    co_return run.status();
}

void InFlight::started(Result<p2p::Request*> request, Bytes expected, bool incoming) {
    if (request.ok())
        messages_.push_back({*request, expected, incoming});
    else
        run_.note(std::move(request).status());
}

void InFlight::send(const p2p::Buffer& buffer, int to) {
    const Team& team = run_.team;
    started(team.messenger->isend(*team.group, outgoing_of(run_, buffer, to), team.in_group(to),
                                  team.tag, p2p::SendMode::awaited),
            buffer.bytes(), false);
}

void InFlight::receive(const p2p::Buffer& buffer, int from) {
    const Team& team = run_.team;
    started(team.messenger->ireceive(*team.group, buffer, team.in_group(from), team.tag),
            buffer.bytes(), true);
}

Task<Status> InFlight::oldest(Executor& executor) {
    if (ended_ == messages_.size()) co_return run_.status();
    const Message message = messages_[ended_++];
    Status ended = co_await message.request->finished(executor);
    if (message.incoming) ended = judge(run_.team, *message.request, message.expected);
    run_.team.messenger->release(message.request);
    run_.note(std::move(ended));
    if (ended_ == messages_.size()) messages_.clear(), ended_ = 0;
    co_return run_.status();
}

Task<Status> InFlight::all(Executor& executor) {
    while (ended_ < messages_.size()) {
        Status ended = co_await oldest(executor);
    }
    co_return run_.status();
}

Task<Status> send(Executor& executor, Team team, p2p::Buffer buffer, int to) {
    Result<p2p::Request*> started = team.messenger->isend(*team.group, buffer, team.in_group(to),
                                                          team.tag, p2p::SendMode::awaited);
    if (!started.ok()) co_return std::move(started).status();
    p2p::Request* request = *started;
    Status sent = co_await request->finished(executor);
    team.messenger->release(request);
    co_return sent;
}

Task<Status> receive(Executor& executor, Team team, p2p::Buffer buffer, int from) {
    Result<p2p::Request*> started =
        team.messenger->ireceive(*team.group, buffer, team.in_group(from), team.tag);
    if (!started.ok()) co_return std::move(started).status();
    p2p::Request* request = *started;
    Status received = co_await request->finished(executor);
    team.messenger->release(request);
    co_return received;
}

Task<Status> exchange(Executor& executor, Team team, p2p::Buffer outgoing, int to,
                      p2p::Buffer incoming, int from) {
    const p2p::Messenger::Half out{outgoing, team.in_group(to), team.tag, p2p::SendMode::awaited},
        in{incoming, team.in_group(from), team.tag};
    Result<p2p::Messenger::Exchange> started =
        team.messenger->exchange(*team.group, &out, &in, false);
    if (!started.ok()) co_return std::move(started).status();
    Status sent = co_await started->sending->finished(executor);
    team.messenger->release(started->sending);
    Status received = co_await started->receiving->finished(executor);
    team.messenger->release(started->receiving);
    GANTRY_CO_TRY(sent);
    co_return received;
}

}  // namespace gantry::coll
