// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbor exchanges in the world on graphs that a test knows as a whole: every edge has a number, bytes
// of its own, and a layout on each side.
#pragma once

#include "coll/neighbor_exchange.hpp"
#include "collective_world.hpp"
#include "layout/form.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace gantry::coll::neighbor_scene {

using layout::Layout;
using world::Bytebuffer;

constexpr int kMemories = 2;  // allocations that a rank sends from, and as many to receive into

struct End {
    Layout layout;
    std::size_t memory = 0;
    Bytes at = 0;  // in it
};

struct Edge {
    int from, to;
    Bytes bytes;
    End out, in;
};

struct Scene {
    int ranks = 2;
    std::vector<Edge> edges = {};
    std::vector<Place> places = {};  // by rank
    int gpus = 8;
    bool nobody = false;  // MPI_PROC_NULL stands between neighbors
    plan::Algorithm algorithm = plan::Algorithm::direct;
    int rounds = 3;
    Nanoseconds delay = 0;  // before each exchange, at most
    int first_tag = 0;
};

inline Layout of_runs(Bytes width, Bytes count, Bytes planes, Bytes gap) {
    layout::FormBuilder run;
    run.add_run(0, width);
    const auto pitch = static_cast<std::ptrdiff_t>(width + gap);
    const auto plane = pitch * static_cast<std::ptrdiff_t>(count) + 48;
    return {layout::repeated(layout::repeated(run.finish(), count, pitch), planes, plane),
            plane * static_cast<std::ptrdiff_t>(planes)};
}

inline Layout listed(std::mt19937_64& dice, Bytes bytes) {
    std::vector<layout::Block> blocks;
    std::ptrdiff_t at = 0;
    for (Bytes left = bytes; left > 0;) {
        const Bytes width = std::min<Bytes>(left, 1 + dice() % (1 + bytes / 3));
        blocks.push_back({at, width});
        at += static_cast<std::ptrdiff_t>(width + dice() % 20);
        left -= width;
    }
    std::ranges::shuffle(blocks, dice);
    return layout::listed_layout(at + 8, blocks);
}

enum class Shape : std::uint8_t { contiguous, column, box, listed };

// Of a multiple of 64 bytes, but for contiguous and listed ones.
inline Layout layout_of(std::mt19937_64& dice, Shape shape, Bytes bytes) {
    switch (shape) {
        case Shape::contiguous: return layout::contiguous_layout(bytes);
        case Shape::column: {
            const Bytes width = Bytes{1} << dice() % 5;
            return of_runs(width, bytes / width, 1, width * (1 + dice() % 3));
        }
        case Shape::box: {
            const Bytes width = Bytes{1} << dice() % 4;
            return of_runs(width, bytes / width / 4, 4, 8);
        }
        case Shape::listed: break;
    }
    return listed(dice, bytes);
}

// Puts the edge's ends behind what the ranks' memories hold already.
class Memories {
  public:
    explicit Memories(int ranks) : ends_(static_cast<std::size_t>(ranks) * 2 * kMemories) {}
    void place(int rank, bool out, End& end) {
        Bytes& used =
            ends_[(static_cast<std::size_t>(rank) * 2 + (out ? 1 : 0)) * kMemories + end.memory];
        end.at = used;
        used += round_up(static_cast<Bytes>(layout::span_of(end.layout, 1).high) + 16, 16);
    }

  private:
    std::vector<Bytes> ends_;
};

inline Bytes bytes_of_memory(const Scene& scene, int rank, bool out, std::size_t memory) {
    Bytes bytes = 64;
    for (const Edge& edge : scene.edges) {
        const End& end = out ? edge.out : edge.in;
        if ((out ? edge.from : edge.to) == rank && end.memory == memory)
            bytes = std::max(bytes,
                             end.at + static_cast<Bytes>(layout::span_of(end.layout, 1).high) + 16);
    }
    return bytes;
}

struct Side {
    std::vector<int> neighbors;
    Blocks blocks;
};

using Buffers = std::array<std::unique_ptr<Bytebuffer>, kMemories>;

inline Side side_of(const Scene& scene, int rank, bool out, Buffers& memory) {
    Side side;
    std::byte* const origin = memory[0]->address();
    side.blocks.address = origin;
    static const Layout nothing = layout::contiguous_layout(0);
    const auto add = [&](int neighbor, std::int64_t count, const Layout& layout, std::byte* at) {
        side.neighbors.push_back(neighbor);
        side.blocks.counts.push_back(count);
        side.blocks.layouts.push_back(&layout);
        side.blocks.displacements.push_back(static_cast<std::int64_t>(
            reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(origin)));
    };
    for (const Edge& edge : scene.edges) {
        if ((out ? edge.from : edge.to) != rank) continue;
        const End& end = out ? edge.out : edge.in;
        if (scene.nobody && (edge.bytes + end.at) % 3 == 0)
            add(MPI_PROC_NULL, 1, end.layout, memory[end.memory]->address());
        add(out ? edge.to : edge.from, edge.bytes > 0 ? 1 : 0,
            edge.bytes > 0 ? end.layout : nothing, memory[end.memory]->address() + end.at);
    }
    return side;
}

inline std::byte* stored(Rank& rank, Place place, Bytebuffer& memory) {
    return place == Place::device ? rank.device.behind(memory.address(), memory.bytes())
                                  : memory.address();
}

struct Launched {
    std::uint64_t rows = 0, all = 0;
};

// Exchanges until all rounds are over. `launched`, of the last round; `wrong` is set if bytes are.
inline Task<Status> exchanges(Executor& executor, Rank& rank, const Scene* scene,
                              std::vector<Launched>* launched, bool* wrong) {
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed[static_cast<std::size_t>(plan::Collective::neighbor)] =
        scene->algorithm;
    while (everybody.team().tag + 1 < scene->first_tag) {
    }
    const int me = rank.number;
    const auto index = static_cast<std::size_t>(me);
    const Place place = scene->places[index];
    std::mt19937_64 dice(index + 1);
    Buffers out, in;
    for (std::size_t each = 0; each < kMemories; ++each) {
        const int gpu = me % scene->gpus;
        out[each] =
            std::make_unique<Bytebuffer>(rank, place, bytes_of_memory(*scene, me, true, each), gpu);
        in[each] = std::make_unique<Bytebuffer>(rank, place,
                                                bytes_of_memory(*scene, me, false, each), gpu);
    }
    const Side outgoing = side_of(*scene, me, true, out), incoming = side_of(*scene, me, false, in);
    Neighbors neighbors;
    neighbors.sources = incoming.neighbors;
    neighbors.destinations = outgoing.neighbors;
    const auto known = std::make_shared<const Neighbors>(std::move(neighbors));
    const auto key = [](int round, std::size_t edge) {
        return static_cast<std::uint64_t>(round) * 100'000 + edge;
    };
    for (int round = 0; round < scene->rounds; ++round) {
        std::array<std::vector<std::byte>, kMemories> right;
        for (std::size_t each = 0; each < kMemories; ++each) {
            right[each].assign(in[each]->bytes(), std::byte{0xAB});
            std::memset(stored(rank, place, *in[each]), 0xAB, in[each]->bytes());
        }
        for (std::size_t i = 0; i < scene->edges.size(); ++i) {
            const Edge& edge = scene->edges[i];
            std::vector<std::byte> packed(edge.bytes);
            if (edge.bytes == 0) continue;
            world::fill_pattern(packed.data(), key(round, i), edge.bytes);
            if (edge.from == me)
                layout::unpack(edge.out.layout,
                               stored(rank, place, *out[edge.out.memory]) + edge.out.at, 0,
                               edge.bytes, packed.data());
            if (edge.to == me)
                layout::unpack(edge.in.layout, right[edge.in.memory].data() + edge.in.at, 0,
                               edge.bytes, packed.data());
        }
        if (scene->delay > 0) {
            Status slept = co_await rank.sleep(
                executor,
                static_cast<Nanoseconds>(dice() % static_cast<std::uint64_t>(scene->delay)));
            GANTRY_CO_TRY(slept);
        }
        const device::fake::Counts before = rank.device.counts();
        Status met = co_await neighbor_exchange(executor, everybody.team(), known, outgoing.blocks,
                                                incoming.blocks);
        GANTRY_CO_TRY(met);
        const device::fake::Counts& after = rank.device.counts();
        if (launched != nullptr) {
            const auto all = [](const device::fake::Counts& counts) {
                return counts.row_launches + counts.launches + counts.all_copies();
            };
            (*launched)[index] = {after.row_launches - before.row_launches,
                                  all(after) - all(before)};
        }
        for (std::size_t each = 0; each < kMemories; ++each)
            if (std::memcmp(right[each].data(), stored(rank, place, *in[each]),
                            in[each]->bytes()) != 0) {
                if (wrong != nullptr) *wrong = true;
                co_return failure(MPI_ERR_OTHER, "rank {}, round {}: wrong bytes", me, round);
            }
    }
    co_return success();
}

inline world::Options node_of(const Scene& scene, std::uint64_t seed = 1) {
    world::Options options;
    options.machine = "h200";
    options.ranks = options.ranks_per_node = scene.ranks;
    options.seed = seed;
    options.jitter = 2 * kMicrosecond;
    options.mechanisms = "all";
    return options;
}

}  // namespace gantry::coll::neighbor_scene
