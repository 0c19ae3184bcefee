// SPDX-License-Identifier: BSD-3-Clause
//
// Groups: set operations on ordered lists of world ranks (MPI 5.0 section 7.3). All local.
#include "mpi/comm/group.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace gantry::mpi {
namespace {

std::unordered_map<int, int> positions(const std::vector<int>& peers) {
    std::unordered_map<int, int> map;
    map.reserve(peers.size());
    for (std::size_t i = 0; i < peers.size(); ++i)
        map.emplace(peers[i], static_cast<int>(i));
    return map;
}

// Made from `like`, it comes from the same session.
Status give(std::vector<int> peers, const Group& like, MPI_Group* newgroup) {
    const std::size_t size = peers.size();
    *newgroup = make_group(std::move(peers), like.session_buffer);
    if (*newgroup == MPI_GROUP_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for a group of {} processes", size);
    return success();
}

// The ranks, each judged to be one of the group and named once.
Status check_ranks(const Group& group, const std::vector<int>& ranks) {
    std::vector<bool> seen(group.peers.size());
    for (int rank : ranks) {
        if (rank < 0 || rank >= group.size())
            return failure(MPI_ERR_RANK, "rank {} is not in the group, which has ranks 0 to {}",
                           rank, group.size() - 1);
        if (seen[static_cast<std::size_t>(rank)])
            return failure(MPI_ERR_RANK, "rank {} is named twice; a group names each process once",
                           rank);
        seen[static_cast<std::size_t>(rank)] = true;
    }
    return success();
}

Status include(const Group& group, const std::vector<int>& ranks, MPI_Group* newgroup) {
    GANTRY_TRY(check_ranks(group, ranks));
    std::vector<int> peers;
    peers.reserve(ranks.size());
    for (int rank : ranks)
        peers.push_back(group.peers[static_cast<std::size_t>(rank)]);
    return give(std::move(peers), group, newgroup);
}

Status exclude(const Group& group, const std::vector<int>& ranks, MPI_Group* newgroup) {
    GANTRY_TRY(check_ranks(group, ranks));
    std::vector<bool> out(group.peers.size());
    for (int rank : ranks)
        out[static_cast<std::size_t>(rank)] = true;
    std::vector<int> peers;
    for (std::size_t i = 0; i < group.peers.size(); ++i)
        if (!out[i]) peers.push_back(group.peers[i]);
    return give(std::move(peers), group, newgroup);
}

// The ranks that triplets (first, last, stride) name.
Result<std::vector<int>> expand(const Group& group, int n, int (*ranges)[3]) {
    std::vector<int> ranks;
    for (int i = 0; i < n; ++i) {
        const long first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
        if (stride == 0)
            return failure(MPI_ERR_ARG,
                           "range {} has stride 0; (first, last, stride) needs a step towards last",
                           i);
        for (long rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
            if (rank < 0 || rank >= group.size())
                return failure(MPI_ERR_RANK,
                               "range {} names rank {}, which is not in the group of {} processes",
                               i, rank, group.size());
            ranks.push_back(static_cast<int>(rank));
        }
    }
    return ranks;
}

}  // namespace

MPI_Group make_group(std::vector<int> peers, std::shared_ptr<SendBuffer> session_buffer) {
    if (peers.empty()) return MPI_GROUP_EMPTY;
    Process& p = process();
    Group* group = create(p.groups);
    if (group == nullptr) return MPI_GROUP_NULL;
    group->peers = std::move(peers);
    group->session_buffer = std::move(session_buffer);
    const int me = p.engine != nullptr ? p.engine->rank() : 0;
    const auto mine = std::find(group->peers.begin(), group->peers.end(), me);
    if (mine != group->peers.end()) group->rank = static_cast<int>(mine - group->peers.begin());
    return group->handle;
}

Status group_size(Group& group, int* size) {
    *size = group.size();
    return success();
}

Status group_rank(Group& group, int* rank) {
    *rank = group.rank;
    return success();
}

Status group_free(MPI_Group* group) {
    Group* object = find(*group);
    *group = MPI_GROUP_NULL;
    if (!object->predefined) process().groups.destroy(object);
    return success();
}

Status group_compare(Group& group1, Group& group2, int* result) {
    if (group1.peers == group2.peers) {
        *result = MPI_IDENT;
    } else {
        const std::unordered_set<int> first(group1.peers.begin(), group1.peers.end());
        const bool same = group1.size() == group2.size() &&
                          std::all_of(group2.peers.begin(), group2.peers.end(),
                                      [&](int peer) { return first.contains(peer); });
        *result = same ? MPI_SIMILAR : MPI_UNEQUAL;
    }
    return success();
}

Status group_translate_ranks(Group& group1, int n, const int* ranks1, Group& group2, int* ranks2) {
    const auto position = positions(group2.peers);
    for (int i = 0; i < n; ++i) {
        const int rank = ranks1[i];
        if (rank == MPI_PROC_NULL) {
            ranks2[i] = MPI_PROC_NULL;
            continue;
        }
        if (rank < 0 || rank >= group1.size())
            return failure(MPI_ERR_RANK,
                           "rank {} is not in the first group, which has {} processes", rank,
                           group1.size());
        const auto found = position.find(group1.peers[static_cast<std::size_t>(rank)]);
        ranks2[i] = found != position.end() ? found->second : MPI_UNDEFINED;
    }
    return success();
}

Status group_union(Group& group1, Group& group2, MPI_Group* newgroup) {
    std::vector<int> peers = group1.peers;
    const std::unordered_set<int> first(peers.begin(), peers.end());
    for (int peer : group2.peers)
        if (!first.contains(peer)) peers.push_back(peer);
    return give(std::move(peers), group1, newgroup);
}

Status group_intersection(Group& group1, Group& group2, MPI_Group* newgroup) {
    const std::unordered_set<int> second(group2.peers.begin(), group2.peers.end());
    std::vector<int> peers;
    for (int peer : group1.peers)
        if (second.contains(peer)) peers.push_back(peer);
    return give(std::move(peers), group1, newgroup);
}

Status group_difference(Group& group1, Group& group2, MPI_Group* newgroup) {
    const std::unordered_set<int> second(group2.peers.begin(), group2.peers.end());
    std::vector<int> peers;
    for (int peer : group1.peers)
        if (!second.contains(peer)) peers.push_back(peer);
    return give(std::move(peers), group1, newgroup);
}

Status group_incl(Group& group, int n, const int* ranks, MPI_Group* newgroup) {
    return include(group, std::vector<int>(ranks, ranks + n), newgroup);
}

Status group_excl(Group& group, int n, const int* ranks, MPI_Group* newgroup) {
    return exclude(group, std::vector<int>(ranks, ranks + n), newgroup);
}

Status group_range_incl(Group& group, int n, int (*ranges)[3], MPI_Group* newgroup) {
    Result<std::vector<int>> ranks = expand(group, n, ranges);
    if (!ranks.ok()) return std::move(ranks).status();
    return include(group, *ranks, newgroup);
}

Status group_range_excl(Group& group, int n, int (*ranges)[3], MPI_Group* newgroup) {
    Result<std::vector<int>> ranks = expand(group, n, ranges);
    if (!ranks.ok()) return std::move(ranks).status();
    return exclude(group, *ranks, newgroup);
}

}  // namespace gantry::mpi
