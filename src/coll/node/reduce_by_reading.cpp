// SPDX-License-Identifier: BSD-3-Clause
#include "coll/node/reduce_by_reading.hpp"

#include "base/yield.hpp"
#include "coll/host_reader.hpp"
#include "coll/node/reduce_offer.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::coll {
namespace {

// Phases: nothing more is read; the share can be read; this rank can read what it needs.
constexpr int kDone = 0, kShared = 1, kTried = 2;

class Combining {
  public:
    explicit Combining(RunningReduction& job)
        : job_(job),
          element_(job.what.source.layout->size),
          me_(job.team.rank()),
          piece_(std::max<std::uint64_t>(tuning_of(job.team).piece / element_, 1)),
          any_order_(job.what.reducer.commutative && !tuning_of(job.team).reproducible) {}

    // Those elements of the first `operands` vectors into `result`.
    Task<Status> combine(Executor& executor, Elements elements, int operands, std::byte* result) {
        if (elements.first == elements.second || operands == 0) co_return success();
        const layout::Layout& layout = *job_.what.source.layout;
        const std::uint64_t longest = std::min(piece_, elements.second - elements.first);
        const bool replaces = result == own(elements.first);
        for (int i = 0; i < (replaces && operands > 2 ? 3 : 2); ++i) {
            Status ready = between_[i].allocate(job_.team, longest, layout);
            GANTRY_CO_TRY(ready);
        }
        for (std::uint64_t at = elements.first; at < elements.second; at += piece_) {
            if (at > elements.first) co_await Yield(executor);
            const std::uint64_t count = std::min(piece_, elements.second - at);
            Status done = co_await one_piece(executor, at, count, operands,
                                             result + (at - elements.first) * element_);
            if (!done.ok()) co_return done;
        }
        co_return success();
    }

  private:
    // Two vectors whose order does not matter: this rank's own is the first one, which needs no copy; where
    // the result replaces it, the last one, which lies there already.
    int in_turn(int number, int operands, bool replaces) const {
        const bool swaps = any_order_ && operands == 2 && me_ == (replaces ? 0 : 1);
        return swaps ? 1 - number : number;
    }

    const std::byte* own(std::uint64_t at) const { return job_.what.source.data() + at * element_; }

    Task<Status> load(Executor& executor, int member, std::uint64_t at, std::uint64_t count,
                      std::byte* to) {
        if (member == me_) {
            if (to != own(at)) std::memcpy(to, own(at), count * element_);
            co_return success();
        }
        Status read = co_await read_from(executor, job_.team, member,
                                         job_.offer(member).sources.first + at * element_, to,
                                         count * element_);
        co_return read;
    }

    // Where the result after that operand is made, for which it is loaded there: in turns in `result`, so that
    // the last one is, and in memory of our own. Where the result replaces this rank's own operand only the last
    // one is.
    std::byte* place_of(int number, int operands, bool replaces, std::byte* result) {
        const int left = operands - 1 - number;
        if (left == 0 || (left % 2 == 0 && !replaces)) return result;
        return between_[left % 2 == 0 ? 2 : 1].buffer().data();
    }

    Task<Status> one_piece(Executor& executor, std::uint64_t at, std::uint64_t count, int operands,
                           std::byte* result) {
        const std::byte* before = own(at);
        const bool replaces = result == before;
        if (const int first = in_turn(0, operands, replaces);
            first != me_ || replaces || operands == 1) {
            std::byte* const to = operands == 1 ? result : between_[0].buffer().data();
            Status loaded = co_await load(executor, first, at, count, to);
            if (!loaded.ok()) co_return loaded;
            before = to;
        }
        for (int number = 1; number < operands; ++number) {
            std::byte* const to = place_of(number, operands, replaces, result);
            Status loaded =
                co_await load(executor, in_turn(number, operands, replaces), at, count, to);
            if (!loaded.ok()) co_return loaded;
            job_.what.reducer.apply(before, to, count);
            before = to;
        }
        co_return success();
    }

    RunningReduction& job_;
    const Bytes element_;
    const int me_;
    const std::uint64_t piece_;
    const bool any_order_;
    HostImage between_[3];
};

// Where vectors have been overwritten the operation cannot go by messages any more.
Status without_another_way(Status status) {
    if (status.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) return status;
    return failure(MPI_ERR_OTHER, "{}", status.text());
}

std::byte* own_share(const RunningReduction& job) {
    return reinterpret_cast<std::byte*>(job.offer(job.me()).share_at);
}

bool gets(const RunningReduction& job) {
    return job.wants(job.me()) && job.what.sink.bytes() > 0;
}

// The shares of all where they belong in this rank's result.
Task<Status> collect(Executor& executor, RunningReduction& job) {
    const int me = job.team.rank(), size = job.team.size();
    const Bytes element = job.what.source.layout->size;
    for (int step = 0; step < size; ++step) {
        const int member = (me + step) % size;
        const auto [first, end] = share_of(job.what.source.count, member, size);
        std::byte* const place = job.what.sink.data() + first * element;
        const Bytes bytes = (end - first) * element;
        if (member == me) {
            if (place != own_share(job)) std::memcpy(place, own_share(job), bytes);
            continue;
        }
        Status read = co_await read_from(executor, job.team, member, job.offer(member).share_at,
                                         place, bytes);
        if (!read.ok()) co_return read;
    }
    co_return success();
}

// A byte of each vector.
Task<Status> try_to_read(Executor& executor, RunningReduction& job, std::uint64_t first) {
    std::byte none;
    for (int member = 0; member < job.team.size(); ++member) {
        if (member == job.team.rank()) continue;
        const std::uint64_t vector = job.offer(member).sources.first;
        Status read = co_await read_from(executor, job.team, member,
                                         vector + first * job.what.source.layout->size, &none, 1);
        if (!read.ok()) co_return read;
    }
    co_return success();
}

Task<Status> in_shares(Executor& executor, RunningReduction& job) {
    const Elements mine = share_of(job.what.source.count, job.team.rank(), job.team.size());
    const bool overwrites = job.any_in_place();  // then no other way is left
    if (overwrites) {
        Status can;
        if (mine.first < mine.second) can = co_await try_to_read(executor, job, mine.first);
        Status all = co_await vote(executor, job.handshake, kTried, std::move(can));
        if (!all.ok()) co_return all;
    }
    Combining combining(job);
    Status done = co_await combining.combine(executor, mine, job.team.size(), own_share(job));
    if (overwrites) done = without_another_way(std::move(done));
    Status all = co_await vote(executor, job.handshake, kShared, std::move(done));
    if (!all.ok() || !gets(job)) co_return all;
    Status collected = co_await collect(executor, job);
    if (overwrites) collected = without_another_way(std::move(collected));
    co_return collected;
}

Task<Status> for_itself(Executor& executor, RunningReduction& job, Elements range,
                        std::byte* result) {
    Combining combining(job);
    Status done = co_await combining.combine(executor, range, job.operands_of(job.me()), result);
    if (result == job.what.source.data()) done = without_another_way(std::move(done));
    co_return done;
}

}  // namespace

Task<Status> reduce_by_reading(Executor& executor, RunningReduction& job) {
    HostImage apart;
    Status done;
    if (is_in_shares(job.what.share, job.team.size())) {
        done = co_await in_shares(executor, job);
    } else if (gets(job)) {
        const auto [first, count] = job.range_of(job.me());
        std::byte* result = job.what.sink.data();
        // Others read this rank's vector where its result belongs.
        if (is_in_the_way(job)) {
            done = apart.allocate(job.team, count, *job.what.source.layout);
            result = apart.buffer().data();
        }
        const Elements range(first, first + count);
        if (done.ok()) done = co_await for_itself(executor, job, range, result);
    }
    Status all = co_await vote(executor, job.handshake, kDone, std::move(done));
    if (all.ok() && apart.address() != nullptr)
        std::memcpy(job.what.sink.data(), apart.buffer().data(), apart.buffer().bytes());
    co_return all;
}

}  // namespace gantry::coll
