// SPDX-License-Identifier: BSD-3-Clause
//
// First an all-to-all in which every rank tells every other how many edges it has for it; then the
// edges themselves go, from those ranks that have some. An edge goes to both its ends, to a rank
// that is both ends only once. Messages: n - 1 small ones a rank, and one with edges to each rank
// that is named. Memory: a count for every rank, and the edges named by and for this one.
//
// Edges are listed by who named them, in rank order, and then in the order of the call: both ends
// of an edge see the same order.
#include "coll/graph_edges.hpp"

#include "base/room.hpp"
#include "base/scope.hpp"
#include "coll/exchange.hpp"
#include "coll/gather.hpp"

#include <cstdint>

namespace gantry::coll {
namespace {

enum class Weights : std::int64_t { not_said, absent, present };

// On the wire: what one rank tells another before the edges.
struct Notice {
    std::int64_t edges = 0;               // for that one
    Weights weights = Weights::not_said;  // a rank without edges does not say
};

Blocks notices(std::vector<Notice>& all) {
    Blocks blocks;
    const p2p::Buffer one = transfer::bytes_buffer(all.data(), sizeof(Notice));
    blocks.address = one.address;
    blocks.count = one.count;
    blocks.layout = one.layout;
    return blocks;
}

// Where each rank's edges begin in a list of all.
std::vector<std::size_t> beginnings(const std::vector<Notice>& all) {
    std::vector<std::size_t> begins(all.size() + 1, 0);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        begins[rank + 1] = begins[rank] + static_cast<std::size_t>(all[rank].edges);
    return begins;
}

// Calls visit(rank) for each end of the edge; MPI_PROC_NULL is nobody.
template <class Visit>
void for_each_end(const Edge& edge, Visit visit) {
    if (edge.source != MPI_PROC_NULL) visit(static_cast<std::size_t>(edge.source));
    if (edge.destination != edge.source && edge.destination != MPI_PROC_NULL)
        visit(static_cast<std::size_t>(edge.destination));
}

p2p::Buffer part(std::vector<Edge>& edges, const std::vector<std::size_t>& begins,
                 std::size_t rank) {
    const std::size_t number = begins[rank + 1] - begins[rank];
    return transfer::bytes_buffer(edges.data() + begins[rank], number * sizeof(Edge));
}

// Whether the graph has weights, as all ranks say that name edges; one that names none follows them.
Result<bool> agree_on_weights(const std::vector<Notice>& heard, bool mine) {
    std::size_t first = heard.size();  // the first rank that says something
    for (std::size_t rank = 0; rank < heard.size(); ++rank) {
        if (heard[rank].weights == Weights::not_said) continue;
        if (first == heard.size()) first = rank;
        if (heard[rank].weights == heard[first].weights) continue;
        const bool present = heard[first].weights == Weights::present;
        return failure(MPI_ERR_ARG,
                       "rank {} passed weights and rank {} passed MPI_UNWEIGHTED: either all ranks "
                       "pass MPI_UNWEIGHTED or none",
                       present ? first : rank, present ? rank : first);
    }
    return first == heard.size() ? mine : heard[first].weights == Weights::present;
}

Adjacency sort_in(const std::vector<Edge>& edges, int me) {
    Adjacency mine;
    for (const Edge& edge : edges) {
        if (edge.destination == me) {
            mine.sources.push_back(edge.source);
            mine.source_weights.push_back(edge.weight);
        }
        if (edge.source == me) {
            mine.destinations.push_back(edge.destination);
            mine.destination_weights.push_back(edge.weight);
        }
    }
    return mine;
}

}  // namespace

Task<Status> share_edges(Executor& executor, Team team, std::vector<Edge> named, bool weighted,
                         Adjacency* mine) {
    const auto size = static_cast<std::size_t>(team.size());
    std::vector<Notice> told(size), heard(size);
    if (!named.empty())
        for (Notice& notice : told)
            notice.weights = weighted ? Weights::present : Weights::absent;
    for (const Edge& edge : named)
        for_each_end(edge, [&told](std::size_t rank) { ++told[rank].edges; });
    Status met = co_await alltoall(executor, team, notices(told), notices(heard));
    GANTRY_CO_TRY(met);

    // The same edges by rank. Room for both was asked for by the caller.
    const std::vector<std::size_t> outgoing_at = beginnings(told), incoming_at = beginnings(heard);
    std::vector<Edge> outgoing(outgoing_at.back());
    std::vector<std::size_t> next = outgoing_at;
    for (const Edge& edge : named)
        for_each_end(edge, [&](std::size_t rank) { outgoing[next[rank]++] = edge; });
    Status room = check_room(incoming_at.back(), sizeof(Edge) + 4 * sizeof(int));
    GANTRY_CO_TRY(room);
    std::vector<Edge> incoming(incoming_at.back());

    Scope messages(executor);
    for (std::size_t rank = 0; rank < size; ++rank)
        if (heard[rank].edges > 0)
            messages.spawn(
                receive(executor, team, part(incoming, incoming_at, rank), static_cast<int>(rank)));
    for (std::size_t rank = 0; rank < size; ++rank)
        if (told[rank].edges > 0)
            messages.spawn(
                send(executor, team, part(outgoing, outgoing_at, rank), static_cast<int>(rank)));
    Status shared = co_await messages.join(executor);
    GANTRY_CO_TRY(shared);

    const Result<bool> has_weights = agree_on_weights(heard, weighted);
    GANTRY_CO_TRY(has_weights.status());
    *mine = sort_in(incoming, team.rank());
    mine->weighted = has_weights.value();
    co_return success();
}

}  // namespace gantry::coll
