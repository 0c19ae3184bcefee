// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_Comm_agree and MPIX_Comm_shrink: each is an agreement of the members that live (faults/agreement.hpp),
// of all members of both groups on an inter-communicator. A shrunken communicator leaves out whom any member
// knew to be lost, and gets its context id with the agreement.
#include "mpi/faults/faults.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"

#include <algorithm>
#include <memory>

namespace gantry::mpi {
namespace {

using faults::Decision;
using faults::MemberSet;

MemberSet set_of(const Comm& comm, const std::vector<int>& peers) {
    const std::vector<int>& members = comm.collective.peers;
    MemberSet set(comm.collective.size());
    for (const int peer : peers)
        set.add(static_cast<int>(std::ranges::find(members, peer) - members.begin()));
    return set;
}

}  // namespace

faults::Agreements::Call next_agreement(Comm& comm) {
    faults::Agreements::Call call;
    call.context = comm.group.context;
    call.sequence = comm.agreements++;
    call.peers = comm.collective.peers;
    call.rank = comm.collective.rank;
    call.mine.failed = set_of(comm, lost_members(comm));
    call.mine.acknowledged = set_of(comm, lost_members(comm, comm.group.acknowledged));
    return call;
}

Task<Status> all_or_none(Executor& executor, Comm* comm, faults::Agreements::Call call,
                         Status mine) {
    call.mine.flags = mine.ok() ? 1 : 0;
    call.mine.failed = set_of(*comm, lost_members(*comm));
    Decision decided;
    Status agreed = co_await comm->engine->agreements().agree(executor, std::move(call), &decided);
    if (!mine.ok()) co_return mine;
    GANTRY_CO_TRY(agreed);
    if (decided.flags == 1 && decided.failed == MemberSet(comm->collective.size()))
        co_return success();
    co_return failure(MPIX_ERR_PROC_FAILED,
                      "a rank of the communicator has died, or could not take part");
}

namespace {

Task<Status> agree(Executor& executor, Comm* comm, faults::Agreements::Call call, int* flag) {
    Decision decided;
    Status agreed = co_await comm->engine->agreements().agree(executor, std::move(call), &decided);
    GANTRY_CO_TRY(agreed);
    *flag = static_cast<int>(decided.flags);
    if (decided.failed.within(decided.acknowledged)) co_return success();
    co_return failure(
        MPIX_ERR_PROC_FAILED,
        "a rank has died whose loss not all have acknowledged (MPIX_Comm_failure_ack)");
}

Task<Status> agreed(Executor& executor, Comm* comm, int* flag) {
    faults::Agreements::Call call = next_agreement(*comm);
    call.mine.flags = static_cast<std::uint32_t>(*flag);
    return agree(executor, comm, std::move(call), flag);
}

// --- shrinking -----------------------------------------------------------------------------------

// Members from `first` on that live, and my place among them.
struct Living {
    std::vector<int> peers;
    int rank = MPI_UNDEFINED;
};
Living living(const Comm& comm, const Decision& decided, int first, int end) {
    Living those;
    for (int member = first; member < end; ++member) {
        if (decided.failed.has(member)) continue;
        if (member == comm.collective.rank) those.rank = static_cast<int>(those.peers.size());
        those.peers.push_back(comm.collective.peer(member));
    }
    return those;
}

Status make_shrunken(Comm& old, const Decision& decided, MPI_Comm* newcomm) {
    Engine& engine = *old.engine;
    const auto context = static_cast<std::uint32_t>(decided.value);
    if (context == 0)
        return failure(MPI_ERR_OTHER, "there are no context ids left for more communicators");
    if (decided.failed.has(old.collective.rank))
        return failure(MPIX_ERR_PROC_FAILED,
                       "another rank has lost its connection to this one, which is left out");
    Comm* made = nullptr;
    if (!old.is_inter()) {
        Living all = living(old, decided, 0, old.collective.size());
        made = make_comm(engine, context, std::move(all.peers), all.rank, old.errhandler);
    } else {
        Living mine = living(old, decided, 0, old.border);
        Living theirs = living(old, decided, old.border, old.collective.size());
        if (mine.rank == MPI_UNDEFINED) std::swap(mine, theirs);
        if (theirs.peers.empty())
            return failure(MPIX_ERR_PROC_FAILED, "no process of the remote group is left");
        made = make_intercomm(engine, context, std::move(mine.peers), std::move(theirs.peers),
                              mine.rank, old.errhandler);
    }
    if (made == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a communicator");
    made->session_buffer = old.session_buffer;
    *newcomm = made->handle;
    return success();
}

// Ids of members of several jobs: the largest that one proposes, if it is free for all.
Task<Status> shrink_between_jobs(Executor& executor, Comm* comm, faults::Agreements::Call call,
                                 MPI_Comm* newcomm) {
    Engine& engine = *comm->engine;
    while (true) {
        call.mine.value = engine.propose_shared_context();
        Decision proposed;
        Status agreed = co_await engine.agreements().agree(executor, std::move(call), &proposed);
        GANTRY_CO_TRY(agreed);
        const auto context = static_cast<std::uint32_t>(proposed.value);
        if (context >= p2p::kNodesContext)
            co_return failure(MPI_ERR_OTHER,
                              "there are no context ids left for communicators of several jobs");
        call = next_agreement(*comm);
        call.mine.value = proposed.value;
        call.mine.flags = engine.take_shared_context(context) ? 1 : 0;
        Decision decided;
        agreed = co_await engine.agreements().agree(executor, std::move(call), &decided);
        GANTRY_CO_TRY(agreed);
        if (decided.flags != 0) co_return make_shrunken(*comm, decided, newcomm);
        call = next_agreement(*comm);
    }
}

Task<Status> shrink(Executor& executor, Comm* comm, faults::Agreements::Call call,
                    MPI_Comm* newcomm) {
    Engine& engine = *comm->engine;
    call.make_value = [&engine] {
        Result<std::uint32_t> taken = engine.new_context();
        return std::uint64_t{taken.ok() ? *taken : 0};
    };
    Decision decided;
    Status agreed = co_await engine.agreements().agree(executor, std::move(call), &decided);
    GANTRY_CO_TRY(agreed);
    co_return make_shrunken(*comm, decided, newcomm);
}

Task<Status> shrunken(Executor& executor, Comm* comm, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    faults::Agreements::Call call = next_agreement(*comm);
    if (comm->engine->outsiders().among(comm->collective.peers))
        return shrink_between_jobs(executor, comm, std::move(call), newcomm);
    return shrink(executor, comm, std::move(call), newcomm);
}

Status in_background(Comm& comm, Task<Status> task, MPI_Request* request) {
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> started = requests.spawn(std::move(task));
    if (!started.ok()) return std::move(started).status();
    *request = requests.hand_out(*started, comm);
    return success();
}

}  // namespace

Pending comm_agree(Comm& comm, int* flag) {
    return Pending(*comm.engine, agreed(comm.engine->executor(), &comm, flag));
}

Status comm_iagree(Comm& comm, int* flag, MPI_Request* request) {
    return in_background(comm, agreed(comm.engine->executor(), &comm, flag), request);
}

Pending comm_shrink(Comm& comm, MPI_Comm* newcomm) {
    return Pending(*comm.engine, shrunken(comm.engine->executor(), &comm, newcomm));
}

Status comm_ishrink(Comm& comm, MPI_Comm* newcomm, MPI_Request* request) {
    return in_background(comm, shrunken(comm.engine->executor(), &comm, newcomm), request);
}

}  // namespace gantry::mpi
