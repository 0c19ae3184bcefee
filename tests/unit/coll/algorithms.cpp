// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms.hpp"

#include <numeric>

namespace gantry::coll {
namespace {

using plan::Algorithm;
using plan::Collective;
using Word = std::uint64_t;

Word word(int rank, int to, std::size_t index) {
    return static_cast<Word>(rank) * 1'000'003 + static_cast<Word>(to) * 7919 + index;
}

// Words in memory, with a gap behind each of them on odd ranks if the form says so: those ranks have
// another datatype of the same signature.
class Words {
  public:
    Words(Rank& rank, const Setting& setting, std::size_t count)
        : step_(setting.form == Form::gaps && rank.number % 2 == 1 ? 2 : 1),
          array_(rank, setting.place, count * step_) {
        const layout::Block one{0, sizeof(Word)};
        layout_ = step_ == 1 ? layout::contiguous_layout(sizeof(Word))
                             : layout::listed_layout(2 * sizeof(Word), {&one, 1});
    }
    Word& operator[](std::size_t index) { return array_[index * step_]; }
    const layout::Layout& layout() const { return layout_; }
    void* address() { return array_.address(); }
    p2p::Buffer part(std::size_t first, std::size_t count) {
        return {static_cast<std::byte*>(address()) + first * step_ * sizeof(Word), count, &layout_};
    }
    Blocks blocks(std::size_t count) {
        Blocks blocks;
        blocks.address = address();
        blocks.count = count;
        blocks.layout = &layout_;
        return blocks;
    }
    // Blocks of count + rank % 3 words.
    Blocks listed(std::size_t count, int ranks) {
        Blocks listed = blocks(0);
        std::int64_t before = 0;
        for (int rank = 0; rank < ranks; ++rank) {
            listed.counts.push_back(static_cast<std::int64_t>(count) + rank % 3);
            listed.displacements.push_back(before);
            before += listed.counts.back();
        }
        return listed;
    }
    Task<Status> store(Executor& executor) { return array_.store(executor); }
    Task<Status> load(Executor& executor) { return array_.load(executor); }

  private:
    std::size_t step_;
    Array<Word> array_;
    layout::Layout layout_;
};

#define RIGHT(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            ++*setting.wrong;                                                \
            co_return failure(MPI_ERR_OTHER, "wrong bytes: {}", #condition); \
        }                                                                    \
    } while (false)

Task<Status> barrier_once(Executor& executor, Rank&, Everybody& all, Setting) {
    Status met = co_await barrier(executor, all.team());
    co_return met;
}

Task<Status> bcast_once(Executor& executor, Rank& rank, Everybody& all, Setting setting) {
    const int root = setting.root % all.size();
    Words data(rank, setting, setting.count);
    for (std::size_t i = 0; i < setting.count && rank.number == root; ++i)
        data[i] = word(root, 0, i);
    Status done = co_await data.store(executor);
    GANTRY_CO_TRY(done);
    done = co_await bcast(executor, all.team(), data.part(0, setting.count), root);
    GANTRY_CO_TRY(done);
    done = co_await data.load(executor);
    GANTRY_CO_TRY(done);
    for (std::size_t i = 0; i < setting.count; ++i)
        RIGHT(data[i] == word(root, 0, i));
    co_return success();
}

Task<Status> allgather_once(Executor& executor, Rank& rank, Everybody& all, Setting setting) {
    const int ranks = all.size();
    const bool listed = setting.operation == Collective::allgatherv;
    const std::size_t most = setting.count + 2;
    Words whole(rank, setting, most * static_cast<std::size_t>(ranks));
    Blocks blocks = listed ? whole.listed(setting.count, ranks) : whole.blocks(setting.count);
    const auto place = [&](int of) {
        return listed ? static_cast<std::size_t>(blocks.displacements[static_cast<std::size_t>(of)])
                      : setting.count * static_cast<std::size_t>(of);
    };
    const auto length = [&](int of) {
        return listed ? setting.count + static_cast<std::size_t>(of % 3) : setting.count;
    };
    Words mine(rank, setting, most);
    const std::size_t own = length(rank.number);
    for (std::size_t i = 0; i < own; ++i) {
        mine[i] = word(rank.number, 0, i);
        if (setting.form == Form::in_place) whole[place(rank.number) + i] = mine[i];
    }
    Status done = co_await mine.store(executor);
    GANTRY_CO_TRY(done);
    done = co_await whole.store(executor);
    GANTRY_CO_TRY(done);
    done = co_await allgather(executor, all.team(), mine.part(0, own), blocks,
                              setting.form == Form::in_place);
    GANTRY_CO_TRY(done);
    done = co_await whole.load(executor);
    GANTRY_CO_TRY(done);
    for (int from = 0; from < ranks; ++from)
        for (std::size_t i = 0; i < length(from); ++i)
            RIGHT(whole[place(from) + i] == word(from, 0, i));
    co_return success();
}

Task<Status> alltoall_once(Executor& executor, Rank& rank, Everybody& all, Setting setting) {
    const int ranks = all.size();
    const bool listed = setting.operation == Collective::alltoallv;
    // Of listed blocks, ranks a and b have count + (a + b) % 3 words for each other.
    const auto length = [&](int a, int b) {
        return setting.count + (listed ? static_cast<std::size_t>((a + b) % 3) : 0);
    };
    const std::size_t most = setting.count + 2;
    Words out(rank, setting, most * static_cast<std::size_t>(ranks)),
        in(rank, setting, most * static_cast<std::size_t>(ranks));
    Blocks outgoing = out.blocks(setting.count), incoming = in.blocks(setting.count);
    const std::size_t distance = listed ? most : setting.count;
    if (listed) {
        for (int peer = 0; peer < ranks; ++peer) {
            outgoing.counts.push_back(static_cast<std::int64_t>(length(rank.number, peer)));
            outgoing.displacements.push_back(static_cast<std::int64_t>(most) * peer);
        }
        incoming.counts = outgoing.counts;
        incoming.displacements = outgoing.displacements;
    }
    Words& source = setting.form == Form::in_place ? in : out;
    for (int to = 0; to < ranks; ++to)
        for (std::size_t i = 0; i < length(rank.number, to); ++i)
            source[distance * static_cast<std::size_t>(to) + i] = word(rank.number, to, i);
    Status done = co_await source.store(executor);
    GANTRY_CO_TRY(done);
    if (setting.form == Form::in_place) {
        done = co_await alltoall_in_place(executor, all.team(), incoming);
    } else {
        done = co_await alltoall(executor, all.team(), outgoing, incoming);
    }
    GANTRY_CO_TRY(done);
    done = co_await in.load(executor);
    GANTRY_CO_TRY(done);
    for (int from = 0; from < ranks; ++from)
        for (std::size_t i = 0; i < length(rank.number, from); ++i)
            RIGHT(in[distance * static_cast<std::size_t>(from) + i] == word(from, rank.number, i));
    co_return success();
}

Task<Status> gather_once(Executor& executor, Rank& rank, Everybody& all, Setting setting) {
    const int ranks = all.size(), root = setting.root % ranks;
    Words whole(rank, setting, setting.count * static_cast<std::size_t>(ranks)),
        mine(rank, setting, setting.count);
    const bool in_place = setting.form == Form::in_place && rank.number == root;
    for (std::size_t i = 0; i < setting.count; ++i) {
        mine[i] = word(rank.number, 0, i);
        if (in_place) whole[setting.count * static_cast<std::size_t>(root) + i] = mine[i];
    }
    Status done = co_await mine.store(executor);
    GANTRY_CO_TRY(done);
    done = co_await whole.store(executor);
    GANTRY_CO_TRY(done);
    done = co_await gather(executor, all.team(), mine.part(0, setting.count),
                           whole.blocks(setting.count), root, in_place, BlockSizes::equal);
    GANTRY_CO_TRY(done);
    done = co_await whole.load(executor);
    GANTRY_CO_TRY(done);
    for (int from = 0; from < ranks && rank.number == root; ++from)
        for (std::size_t i = 0; i < setting.count; ++i)
            RIGHT(whole[setting.count * static_cast<std::size_t>(from) + i] == word(from, 0, i));
    co_return success();
}

Task<Status> scatter_once(Executor& executor, Rank& rank, Everybody& all, Setting setting) {
    const int ranks = all.size(), root = setting.root % ranks;
    Words whole(rank, setting, setting.count * static_cast<std::size_t>(ranks)),
        mine(rank, setting, setting.count);
    const bool in_place = setting.form == Form::in_place && rank.number == root;
    for (int to = 0; to < ranks; ++to)
        for (std::size_t i = 0; i < setting.count; ++i)
            whole[setting.count * static_cast<std::size_t>(to) + i] = word(root, to, i);
    Status done = co_await whole.store(executor);
    GANTRY_CO_TRY(done);
    done = co_await scatter(executor, all.team(), whole.blocks(setting.count),
                            mine.part(0, setting.count), root, in_place, BlockSizes::equal);
    GANTRY_CO_TRY(done);
    if (in_place) co_return success();
    done = co_await mine.load(executor);
    GANTRY_CO_TRY(done);
    for (std::size_t i = 0; i < setting.count; ++i)
        RIGHT(mine[i] == word(root, rank.number, i));
    co_return success();
}

// --- reductions: of maps whose composition shows its order, or of their sums ------------------------

void add_all(void* first, void* second, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i) {
        Affine& result = static_cast<Affine*>(second)[i];
        const Affine other = static_cast<Affine*>(first)[i];
        result = {result.a + other.a, result.b + other.b};
    }
}

Reducer reducer_of(const Setting& setting) {
    Reducer reducer = composition();
    if (setting.ordered) return reducer;
    reducer.function = add_all;
    reducer.commutative = true;
    return reducer;
}

// Of ranks 0..last.
Affine reduced(const Setting& setting, int last, std::size_t index) {
    std::vector<int> ranks(static_cast<std::size_t>(last) + 1);
    std::iota(ranks.begin(), ranks.end(), 0);
    if (setting.ordered) return composed(ranks, index);
    Affine sum{0, 0};
    for (const int rank : ranks) {
        const Affine one = of_process(rank, index);
        sum = {sum.a + one.a, sum.b + one.b};
    }
    return sum;
}

// Of reduce_scatter: the share of a rank is count + rank % 3 elements, of none for every fourth rank.
std::int64_t share_of(const Setting& setting, int rank) {
    return rank % 4 == 3 ? 0 : static_cast<std::int64_t>(setting.count) + rank % 3;
}

Task<Status> reduction_once(Executor& executor, Rank& rank, Everybody& all, Setting setting) {
    const int ranks = all.size(), root = setting.root % ranks;
    const bool in_place = setting.form == Form::in_place;
    const Reducer how = reducer_of(setting);
    Array<Affine> source(rank, setting.place, setting.count),
        sink(rank, setting.place, setting.count);
    const bool at_root = setting.operation != Collective::reduce || rank.number == root;
    Array<Affine>& from = in_place && at_root ? sink : source;
    for (std::size_t i = 0; i < setting.count; ++i)
        from[i] = of_process(rank.number, i);
    Status done = co_await from.store(executor);
    GANTRY_CO_TRY(done);
    int last = ranks - 1;
    if (setting.operation == Collective::reduce) {
        done = co_await reduce(executor, all.team(), from.buffer(), sink.buffer(), how, root);
    } else if (setting.operation == Collective::allreduce) {
        done = co_await allreduce(executor, all.team(), from.buffer(), sink.buffer(), how);
    } else {
        const bool exclusive = setting.root % 2 == 1;
        last = exclusive ? rank.number - 1 : rank.number;
        done = co_await scan(executor, all.team(), from.buffer(), sink.buffer(), how, exclusive);
    }
    GANTRY_CO_TRY(done);
    done = co_await sink.load(executor);
    GANTRY_CO_TRY(done);
    for (std::size_t i = 0; i < setting.count && at_root && last >= 0; ++i)
        RIGHT(sink[i] == reduced(setting, last, i));
    if (in_place) co_return success();
    done = co_await source.load(executor);
    GANTRY_CO_TRY(done);
    for (std::size_t i = 0; i < setting.count; ++i)
        RIGHT(source[i] == of_process(rank.number, i));
    co_return success();
}

Task<Status> reduce_scatter_once(Executor& executor, Rank& rank, Everybody& all, Setting setting) {
    Blocks shares;
    std::int64_t whole = 0, first = 0;
    for (int to = 0; to < all.size(); ++to) {
        if (to == rank.number) first = whole;
        shares.counts.push_back(share_of(setting, to));
        shares.displacements.push_back(whole);
        whole += shares.counts.back();
    }
    const bool in_place = setting.form == Form::in_place;
    const auto own = static_cast<std::size_t>(share_of(setting, rank.number));
    Array<Affine> source(rank, setting.place, static_cast<std::size_t>(whole)),
        apart(rank, setting.place, own);
    shares.layout = &source.layout();
    for (std::size_t i = 0; i < static_cast<std::size_t>(whole); ++i)
        source[i] = of_process(rank.number, i);
    Status done = co_await source.store(executor);
    GANTRY_CO_TRY(done);
    p2p::Buffer sink = in_place ? source.buffer() : apart.buffer();
    sink.count = own;
    done = co_await reduce_scatter(executor, all.team(), source.buffer(), shares, sink,
                                   reducer_of(setting));
    GANTRY_CO_TRY(done);
    done = co_await source.load(executor);
    GANTRY_CO_TRY(done);
    done = co_await apart.load(executor);
    GANTRY_CO_TRY(done);
    for (std::size_t i = 0; i < own; ++i)
        RIGHT((in_place ? source[i] : apart[i]) ==
              reduced(setting, all.size() - 1, static_cast<std::size_t>(first) + i));
    co_return success();
}

Task<Status> start(Executor& executor, Rank& rank, Everybody& all, Setting setting) {
    switch (setting.operation) {
        case Collective::barrier: return barrier_once(executor, rank, all, setting);
        case Collective::bcast: return bcast_once(executor, rank, all, setting);
        case Collective::allgather:
        case Collective::allgatherv: return allgather_once(executor, rank, all, setting);
        case Collective::alltoall:
        case Collective::alltoallv: return alltoall_once(executor, rank, all, setting);
        case Collective::gather:
        case Collective::gatherv: return gather_once(executor, rank, all, setting);
        case Collective::scatter:
        case Collective::scatterv: return scatter_once(executor, rank, all, setting);
        case Collective::reduce_scatter: return reduce_scatter_once(executor, rank, all, setting);
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::scan: return reduction_once(executor, rank, all, setting);
        case Collective::neighbor: break;  // neighbor_direct_test.cpp
    }
    return Task<Status>(success());
}

}  // namespace

Task<Status> once(Executor& executor, Rank& rank, Setting setting) {
    Everybody all(rank);
    plan::CollTuning& tuning = all.common().job.tuning;
    tuning.fixed[static_cast<std::size_t>(setting.operation)] = setting.algorithm;
    tuning.segment = kKiB;
    tuning.reproducible = setting.reproducible;
    Status done = co_await start(executor, rank, all, setting);
    const auto self = static_cast<std::size_t>(rank.number);
    if (setting.messages != nullptr) {
        (*setting.messages)[self] = all.common().messages;
        (*setting.bytes)[self] = all.common().bytes;
    }
    co_return done;
}

std::string text(const Setting& setting) {
    constexpr const char* kForms[] = {"", " in place", " with gaps"};
    return fmt::format("{} by {} of {} elements in {} memory{}{}, root {}", name(setting.operation),
                       name(setting.algorithm), setting.count, world::name(setting.place),
                       kForms[static_cast<int>(setting.form)],
                       setting.ordered ? ", whose order matters" : "", setting.root);
}

const std::vector<Algorithms>& all_algorithms() {
    using enum Algorithm;
    static const std::vector<Algorithms> list = {
        {Collective::barrier, {dissemination, hierarchical}},
        {Collective::bcast, {binomial, scatter_allgather, chain, hierarchical}},
        {Collective::reduce,
         {binomial, rabenseifner, pairwise, Algorithm::fold, ordered, hierarchical}},
        {Collective::allreduce,
         {recursive_doubling, rabenseifner, ring, pairwise, Algorithm::fold, ordered,
          hierarchical}},
        {Collective::reduce_scatter, {recursive_halving, pairwise, binomial, ordered}},
        {Collective::allgather, {recursive_doubling, bruck, ring, spread, hierarchical}},
        {Collective::allgatherv, {ring, spread}},
        {Collective::alltoall, {bruck, pairwise, spread, staged}},
        {Collective::alltoallv, {pairwise, spread, staged}},
        {Collective::gather, {binomial, linear}},
        {Collective::scatter, {binomial, linear}},
        {Collective::scan, {recursive_doubling, chain}},
    };
    return list;
}

bool reduces(Collective operation) {
    return operation == Collective::reduce || operation == Collective::allreduce ||
           operation == Collective::reduce_scatter || operation == Collective::scan;
}

bool keeps_order(Collective, Algorithm algorithm) {
    return algorithm != Algorithm::rabenseifner && algorithm != Algorithm::ring &&
           algorithm != Algorithm::recursive_halving;
}

}  // namespace gantry::coll
