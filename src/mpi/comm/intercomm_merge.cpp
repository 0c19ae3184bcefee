// SPDX-License-Identifier: BSD-3-Clause
//
// One communicator of both groups of an inter-communicator. The first rank of the group that goes
// first hears from the other group where it wants to stand, and tells everybody.
#include "mpi/comm/comm.hpp"

#include "coll/bcast.hpp"
#include "coll/exchange.hpp"
#include "mpi/bodies.hpp"
#include "mpi/comm/context.hpp"
#include "mpi/engine/engine.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

// How a merge ends on every rank.
struct Merged {
    std::uint32_t context = 0;
    std::int32_t second_goes_first = 0;
};

Task<Status> merge(Executor& executor, Comm* inter, coll::Team everybody, bool high,
                   MPI_Comm* newcomm) {
    const int border = everybody.border;
    Merged merged;
    Status context_taken;
    if (everybody.rank() == border) {
        const std::int32_t mine = high ? 1 : 0;
        const p2p::Buffer told = transfer::bytes_buffer(&mine, sizeof mine);
        Status sent = co_await coll::send(executor, everybody, told, 0);
        GANTRY_CO_TRY(sent);
    }
    if (everybody.rank() == 0) {
        std::int32_t theirs = 0;
        const p2p::Buffer heard = transfer::bytes_buffer(&theirs, sizeof theirs);
        Status received = co_await coll::receive(executor, everybody, heard, border);
        GANTRY_CO_TRY(received);
        Result<std::uint32_t> taken = inter->engine->new_context();
        context_taken = taken.status();
        merged = {taken.ok() ? *taken : 0, high && theirs == 0 ? 1 : 0};
    }
    const p2p::Buffer verdict = transfer::bytes_buffer(&merged, sizeof merged);
    Status told = co_await coll::bcast(executor, everybody, verdict, 0);
    GANTRY_CO_TRY(context_taken);
    GANTRY_CO_TRY(told);
    if (merged.context == 0)
        co_return failure(MPI_ERR_OTHER,
                          "the first rank of the new communicator has no context ids left");
    if (inter->engine->outsiders().among(inter->collective.peers)) {
        // Both groups are one team here.
        everybody.border = 0;
        Status agreed =
            co_await share_context(executor, *inter->engine, everybody, &merged.context);
        GANTRY_CO_TRY(agreed);
    }
    std::vector<int> peers = inter->collective.peers;
    int rank = everybody.rank();
    if (merged.second_goes_first != 0) {
        std::rotate(peers.begin(), peers.begin() + border, peers.end());
        const int second = everybody.size() - border;
        rank = rank < border ? rank + second : rank - border;
    }
    Comm* made =
        make_comm(*inter->engine, merged.context, std::move(peers), rank, inter->errhandler);
    if (made == nullptr) co_return failure(MPI_ERR_NO_MEM, "out of memory for a communicator");
    made->session_buffer = inter->session_buffer;
    *newcomm = made->handle;
    co_return success();
}

}  // namespace

Pending intercomm_merge(Comm& intercomm, int high, MPI_Comm* newintracomm) {
    *newintracomm = MPI_COMM_NULL;
    if (!intercomm.is_inter())
        return failure(MPI_ERR_COMM, "argument intercomm is a communicator of one group");
    return Pending(*intercomm.engine, merge(intercomm.engine->executor(), &intercomm,
                                            intercomm.team(), high != 0, newintracomm));
}

}  // namespace gantry::mpi
