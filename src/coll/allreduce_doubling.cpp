// SPDX-License-Identifier: BSD-3-Clause
//
// Recursive doubling: in round k pairs at distance 2^k swap all they have and combine it, the lower
// rank's on the left, so the order of ranks is kept. Ranks beyond a power of two work in pairs.
//
//     steps log2 P (two more for P no power of two); bytes sent per rank n in each; memory: two
//     pieces
#include "coll/allreduce_algorithms.hpp"

namespace gantry::coll {
namespace {

// The result to the ranks that gave their vector to a neighbour.
Task<Status> give_back(Executor& executor, Run& run, p2p::Buffer vector, PowerOfTwo place) {
    if (!place.in_pair() || vector.count == 0) co_return run.status();
    if (place.works()) {
        Status sent = co_await send(executor, run, vector, run.rank() - 1);
        co_return sent;
    }
    Status received = co_await receive(executor, run, vector, run.rank() + 1);
    co_return received;
}

}  // namespace

Task<Status> allreduce_doubling(Executor& executor, Run& run, p2p::Buffer vector, Reducer reducer) {
    const PowerOfTwo place(run.rank(), run.size());
    Status met;
    if (place.excess > 0) met = co_await fold_pairs(executor, run, vector, place, reducer);
    for (int distance = 1; place.works() && distance < place.size; distance *= 2) {
        const int partner = place.rank_of(place.number ^ distance);
        const Mine mine = partner > run.rank() ? Mine::left : Mine::right;
        met = co_await exchange_and_combine(executor, run, vector, partner, vector, partner,
                                            reducer, mine);
    }
    if (place.excess > 0) met = co_await give_back(executor, run, vector, place);
    co_return run.status();
}

// Rabenseifner: recursive halving, then the shares double again.
//
//     steps 2 log2 P (two more for P no power of two); bytes sent per rank 2n (P - 1) / P; memory:
//     two pieces
Task<Status> allreduce_rabenseifner(Executor& executor, Run& run, p2p::Buffer vector,
                                    Reducer reducer) {
    const PowerOfTwo place(run.rank(), run.size());
    const Shares shares(vector.count, place.size);
    Status met;
    if (place.excess > 0) met = co_await fold_pairs(executor, run, vector, place, reducer);
    if (place.works()) {
        met = co_await combine_halving(executor, run, vector, shares, place, reducer);
        for (int distance = 1; distance < place.size; distance *= 2) {
            const int partner = place.number ^ distance, peer = place.rank_of(partner);
            const int mine = place.number & ~(distance - 1), theirs = partner & ~(distance - 1);
            met = co_await exchange_pieces(executor, run,
                                           shares.range(vector, mine, mine + distance), peer,
                                           shares.range(vector, theirs, theirs + distance), peer);
        }
    }
    if (place.excess > 0) met = co_await give_back(executor, run, vector, place);
    co_return run.status();
}

}  // namespace gantry::coll
