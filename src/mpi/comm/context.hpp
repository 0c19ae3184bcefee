// SPDX-License-Identifier: BSD-3-Clause
//
// The context id of a new communicator: its first member takes one that no other rank of the job
// can take (the ids of rank r are r, r + n, r + 2n, ...) and tells the others. Ids are never used
// twice, so a late message of a freed communicator cannot meet a new one, and communicators may be
// made concurrently, also by overlapping groups. Where members belong to several jobs, they look together
// for an id that none of them has.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace gantry::mpi {

class Engine;

// For the ranks of `team`, who are the members; `context` is set when the task ends well.
Task<Status> share_context(Executor& executor, Engine& engine, coll::Team team,
                           std::uint32_t* context);

// What processes that are no whole communicator use to agree, without a communicator of their own:
// a group in the collective context that is given, where messages name world ranks, since other
// such groups use that context at the same time.
std::shared_ptr<p2p::Group> agreement_group(std::uint32_t context, std::vector<int> peers,
                                            int rank);
// The same of members of a communicator, on its collective context.
struct Comm;
std::shared_ptr<p2p::Group> agreement_group(const Comm& old, std::vector<int> peers, int rank);
// Their tags keep concurrent agreements apart, and lie apart from those of collectives (comm.cpp).
int agreement_tag(int tag);
int agreement_tag(const char* stringtag);

}  // namespace gantry::mpi
