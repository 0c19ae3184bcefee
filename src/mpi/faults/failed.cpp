// SPDX-License-Identifier: BSD-3-Clause
//
// What a program is told of ranks that died (ULFM), and what it acknowledges: which members of a communicator or window
// this rank knows to be lost, in the order in which it heard of them. Nothing here communicates.
#include "mpi/faults/faults.hpp"

#include "mpi/bodies.hpp"
#include "mpi/comm/group.hpp"
#include "mpi/engine/engine.hpp"
#include "rma/window.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

std::vector<int> lost_of(Engine& engine, const std::vector<int>& members, std::size_t among) {
    const std::vector<int>& losses = engine.messenger().losses();
    std::vector<int> lost;
    for (std::size_t i = 0; i < std::min(among, losses.size()); ++i)
        if (std::ranges::find(members, losses[i]) != members.end()) lost.push_back(losses[i]);
    return lost;
}

Status make(std::vector<int> peers, MPI_Group* group,
            std::shared_ptr<SendBuffer> session_buffer = {}) {
    const std::size_t members = peers.size();
    *group = make_group(std::move(peers), std::move(session_buffer));
    if (*group != MPI_GROUP_NULL) return success();
    return failure(MPI_ERR_NO_MEM, "out of memory for a group of {} processes", members);
}

void acknowledge(Comm& comm, std::size_t losses) {
    comm.group.acknowledged = static_cast<std::uint32_t>(losses);
    comm.engine->messenger().acknowledged(comm.group);
}

}  // namespace

std::vector<int> lost_members(const Comm& comm, std::size_t among) {
    return lost_of(*comm.engine, comm.collective.peers, among);
}

Status comm_get_failed(Comm& comm, MPI_Group* failedgrp) {
    return make(lost_members(comm), failedgrp, comm.session_buffer);
}

Status win_get_failed(Win& win, MPI_Group* failedgrp) {
    return make(lost_of(*win.engine, win.window->group.peers, kAll), failedgrp);
}

Status comm_failure_ack(Comm& comm) {
    acknowledge(comm, comm.engine->messenger().losses().size());
    return success();
}

Status comm_failure_get_acked(Comm& comm, MPI_Group* failedgrp) {
    return make(lost_members(comm, comm.group.acknowledged), failedgrp, comm.session_buffer);
}

Status comm_ack_failed(Comm& comm, int num_to_ack, int* num_acked) {
    const std::vector<int>& losses = comm.engine->messenger().losses();
    std::size_t upto = comm.group.acknowledged;
    const auto wanted = static_cast<std::size_t>(std::max(num_to_ack, 0));
    while (upto < losses.size() && lost_members(comm, upto).size() < wanted)
        ++upto;
    acknowledge(comm, upto);
    *num_acked = static_cast<int>(lost_members(comm, upto).size());
    return success();
}

}  // namespace gantry::mpi
