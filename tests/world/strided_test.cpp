// SPDX-License-Identifier: BSD-3-Clause
//
// Strided buffers in device memory (transfer/pack.hpp), over every way between two ranks and to
// oneself: blocks in any order, receives whose blocks lie between each other's, and gaps that
// belong to the program while a receive is under way.
#include "strided_cost.hpp"
#include "world/harness/programs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ostream>
#include <random>

namespace gantry::world {
namespace {

using layout::Layout;

constexpr int kTag = 5;

struct Way {
    const char* name;
    const char* machine;
    int ranks_per_node;
    int sink_gpu;
};
constexpr Way kWays[] = {{"Network", "c2050-qdr", 1, 0},
                         {"SharedMemoryStaged", "c2050-qdr", 2, 0},
                         {"SharedGpu", "h200", 2, 0},
                         {"TwoGpusOfANode", "h200", 2, 1}};

Layout layout_of(std::ptrdiff_t extent, const std::vector<layout::Block>& blocks) {
    return layout::listed_layout(extent, blocks);
}

// A matrix, its columns, and what its bytes are.
struct Matrix {
    Bytes rows, columns, cell;
    Bytes bytes() const { return rows * columns * cell; }
    // Its cells, each second one `aside` bytes further.
    Layout column(std::ptrdiff_t aside = 0) const {
        std::vector<layout::Block> cells;
        for (Bytes row = 0; row < rows; ++row)
            cells.push_back(
                {static_cast<std::ptrdiff_t>(row * columns * cell) + (row % 2 == 0 ? aside : 0),
                 cell});
        return layout_of(static_cast<std::ptrdiff_t>(cell), cells);
    }
};

std::byte value(Bytes column, Bytes byte) {
    return static_cast<std::byte>(column * 57 + byte * 3 + 1);
}

std::byte* stored(Rank& rank, Place place, std::byte* address, Bytes bytes) {
    return place == Place::device ? rank.device.behind(address, bytes) : address;
}

struct Case {
    Matrix matrix;
    Place source = Place::device, sink = Place::device;
    int sink_gpu = 0;
    bool to_itself = false;
    bool refuse_pin = false;
};

// Rank 0 sends each second column; all receives are under way at once, and the program writes the
// columns between meanwhile.
Task<Status> columns(Rank& rank, const Case& test) {
    const Matrix& matrix = test.matrix;
    const Layout column = matrix.column();
    const Bytes packed = matrix.rows * matrix.cell;
    rank.device.faults.refuse_pin = test.refuse_pin;
    const int peer = test.to_itself ? rank.number : 1 - rank.number;
    const bool sends = rank.number == 0, receives = test.to_itself ? sends : !sends;
    if (!sends && !receives) co_return success();
    Bytebuffer out(rank, test.source, matrix.columns * packed);
    Bytebuffer in(rank, test.sink, matrix.bytes(), test.sink_gpu);
    std::vector<Result<p2p::Request*>> started;
    std::byte* const gaps = stored(rank, test.sink, in.address(), matrix.bytes());
    if (receives) {
        std::memset(gaps, 0, matrix.bytes());
        for (Bytes i = 0; i < matrix.columns; i += 2) {
            const p2p::Buffer whole{in.address() + i * matrix.cell, 1, &column};
            started.push_back(
                rank.messenger.ireceive(rank.all, whole, peer, kTag + static_cast<int>(i)));
        }
    }
    if (sends) {
        std::byte* const bytes = stored(rank, test.source, out.address(), out.bytes());
        for (Bytes i = 0; i < matrix.columns; i += 2)
            for (Bytes byte = 0; byte < packed; ++byte)
                bytes[i * packed + byte] = value(i, byte);
        for (Bytes i = 0; i < matrix.columns; i += 2)
            started.push_back(rank.messenger.isend(rank.all, out.part(i * packed, packed), peer,
                                                   kTag + static_cast<int>(i),
                                                   p2p::SendMode::standard));
    }
    for (Result<p2p::Request*>& request : started) {
        // Not before something of it is under way.
        co_await rank.turn();
        if (receives)
            for (Bytes i = 1; i < matrix.columns; i += 2)
                for (Bytes row = 0; row < matrix.rows; ++row)
                    std::memset(gaps + (row * matrix.columns + i) * matrix.cell, 0xAB, matrix.cell);
        Received ended = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(ended.status);
    }
    if (!receives) co_return success();
    for (Bytes i = 0; i < matrix.columns; ++i)
        for (Bytes byte = 0; byte < packed; ++byte) {
            const Bytes row = byte / matrix.cell;
            const Bytes at = (row * matrix.columns + i) * matrix.cell + byte % matrix.cell;
            const std::byte right = i % 2 == 0 ? value(i, byte) : std::byte{0xAB};
            if (gaps[at] != right)
                co_return failure(MPI_ERR_OTHER, "column {}, row {}: {:#x}, not {:#x}", i, row,
                                  static_cast<int>(gaps[at]), static_cast<int>(right));
        }
    co_return success();
}

class Strided : public testing::TestWithParam<Way> {
  protected:
    void run(Case test, std::uint64_t seed) {
        const Way& way = GetParam();
        test.sink_gpu = way.sink_gpu;
        World world({.machine = way.machine,
                     .ranks_per_node = way.ranks_per_node,
                     .seed = seed,
                     .jitter = 2 * kMicrosecond});
        const Ending ending = world.run([&test](Rank& rank) { return columns(rank, test); });
        EXPECT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle()) << "something was left over";
    }
};

constexpr Matrix kMatrices[] = {{3, 4, 8}, {64, 6, 4}, {1000, 5, 24}, {6, 3, 70000}};

TEST_P(Strided, ColumnsThatArriveTogetherAndWhatIsBetweenThemStayApart) {
    std::uint64_t seed = 0;
    for (const Matrix& matrix : kMatrices)
        for (const Place source : {Place::device, Place::host})
            run({.matrix = matrix, .source = source}, ++seed);
}

// Kernels reach page-locked memory only.
TEST_P(Strided, SlotsThatStayPageableAreFilledByCopyEngines) {
    std::uint64_t seed = 0;
    for (const Matrix& matrix : kMatrices)
        run({.matrix = matrix, .refuse_pin = true}, ++seed);
}

TEST_P(Strided, ToOneselfFromAndToEveryMemory) {
    std::uint64_t seed = 0;
    for (const Matrix& matrix : kMatrices)
        for (const Place source : {Place::device, Place::host})
            for (const Place sink : {Place::device, Place::host})
                run({.matrix = matrix, .source = source, .sink = sink, .to_itself = true}, ++seed);
}

// --- blocks in any order ------------------------------------------------------------------------

struct Shape {
    Layout layout;
    std::uint64_t count;
};

std::vector<Shape> shapes() {
    return {{layout_of(48, {{32, 4}, {16, 4}, {0, 4}}), 3},  // blocks go down
            {layout_of(-16, {{0, 8}}), 5},                   // elements do
            {layout_of(-64, {{40, 8}, {0, 8}, {16, 8}}), 4},
            {layout_of(8, {{-24, 8}}), 6},
            {layout_of(400000, {{300000, 70000}, {100, 70001}}), 2}};
}

Task<Status> in_any_order(Rank& rank, const Shape& shape, Place source, Place sink, int sink_gpu) {
    const layout::Span span = layout::span_of(shape.layout, shape.count);
    const Place place = rank.number == 0 ? source : sink;
    Bytebuffer memory(rank, place, span.bytes(), rank.number == 0 ? 0 : sink_gpu);
    std::byte* const bytes = stored(rank, place, memory.address(), span.bytes());
    const p2p::Buffer whole{memory.address() - span.low, shape.count, &shape.layout};
    std::vector<std::byte> packed(whole.bytes());
    for (Bytes i = 0; i < packed.size(); ++i)
        packed[i] = value(1, i);
    std::vector<std::byte> right(span.bytes(), std::byte{0});
    layout::unpack(shape.layout, right.data() - span.low, 0, packed.size(), packed.data());
    std::memcpy(bytes, right.data(), right.size());
    if (rank.number == 0) {
        Status sent = co_await send(rank, whole, 1, kTag);
        co_return sent;
    }
    std::memset(bytes, 0, right.size());
    Received got = co_await receive(rank, whole, 0, kTag);
    GANTRY_CO_TRY(got.status);
    WORLD_CHECK(std::memcmp(bytes, right.data(), right.size()) == 0);
    co_return success();
}

TEST_P(Strided, BlocksMayStandInAnyOrder) {
    const Way& way = GetParam();
    for (const Shape& shape : shapes())
        for (const Place source : {Place::device, Place::host})
            for (const Place sink : {Place::device, Place::host}) {
                World world({.machine = way.machine, .ranks_per_node = way.ranks_per_node});
                const Ending ending = world.run([&](Rank& rank) {
                    return in_any_order(rank, shape, source, sink, way.sink_gpu);
                });
                EXPECT_TRUE(ending.good()) << ending;
                EXPECT_TRUE(world.settle()) << "something was left over";
            }
}

INSTANTIATE_TEST_SUITE_P(Every, Strided, testing::ValuesIn(kWays),
                         [](const auto& way) { return way.param.name; });

// --- what it costs ------------------------------------------------------------------------------

// Messages out of one matrix and into another, of which the last is counted.
Task<Status> repeated(Rank& rank, const Layout& layout, Bytes bytes, int gpu, int messages) {
    Bytebuffer memory(rank, Place::device, bytes, gpu);
    const p2p::Buffer whole{memory.address(), 1, &layout};
    memory.fill(3);
    for (int i = 0; i < messages; ++i) {
        rank.device.reset_counts();
        Status status;
        if (rank.number == 0) {
            status = co_await send(rank, whole, 1, kTag);
        } else {
            Received got = co_await receive(rank, whole, 0, kTag);
            status = got.status;
        }
        GANTRY_CO_TRY(status);
        // The sender learns what became of its message.
        Status met = co_await meet(rank, kTag + 1);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

// Of the last message, on each side.
std::vector<Cost> costs(const Matrix& matrix, const Layout& layout, bool one_gpu,
                        config::Config change = {}, int messages = 1) {
    World world(
        {.machine = "h200", .ranks_per_node = 2, .change_config = [&](config::Config& config) {
             config.kernels = change.kernels;
         }});
    const Ending ending = world.run([&](Rank& rank) {
        return repeated(rank, layout, matrix.bytes(), one_gpu ? 0 : rank.number, messages);
    });
    EXPECT_TRUE(ending.good()) << ending;
    std::vector<Cost> all;
    for (int rank = 0; rank < 2; ++rank) {
        const device::fake::Counts& counts = world.rank(rank).device.counts();
        Cost cost{counts.all_copies(), 0, counts.row_launches};
        for (const Bytes each : counts.bytes)
            cost.copied += each;
        all.push_back(cost);
    }
    return all;
}

constexpr Matrix kLarge{2000, 1000, 8};

TEST(StridedCost, AColumnOfALargeMatrixIsOneKernelOnEachSide) {
    EXPECT_THAT(costs(kLarge, kLarge.column(), false), testing::Each(Cost{0, 0, 1}));
}

TEST(StridedCost, WithoutKernelsItIsOneCopyOfItsOwnBytes) {
    config::Config off;
    off.kernels = false;
    EXPECT_THAT(costs(kLarge, kLarge.column(), false, off), testing::Each(Cost{1, 16000, 0}));
}

// A kernel would wait for its turn. The sender knows from the first answer on.
TEST(StridedCost, OnASharedGpuItIsOneCopyToo) {
    EXPECT_THAT(costs(kLarge, kLarge.column(), true),
                testing::ElementsAre(Cost{0, 0, 1}, Cost{1, 16000, 0}));
    EXPECT_THAT(costs(kLarge, kLarge.column(), true, {}, 2), testing::Each(Cost{1, 16000, 0}));
}

// Wide rows of a long message: pieces on their way, each one copy, nothing whole.
TEST(StridedCost, ALongMessageGoesInPieces) {
    const Matrix matrix{1024, 2, 4096};
    for (const bool one_gpu : {false, true}) {
        const std::vector<Cost> both = costs(matrix, matrix.column(), one_gpu, {}, 2);
        EXPECT_EQ(both[0], both[1]);
        EXPECT_GE(both[0].copies, 4u);
        EXPECT_LE(both[0].copies, 8u);
        EXPECT_EQ(both[0].copied, 1024u * 4096u);
    }
}

// Blocks in no order, two rows at most: as many as one launch takes, also where it waits for a turn.
TEST(StridedCost, BlocksInNoOrderShareLaunches) {
    const Matrix matrix{400, 300, 16};
    const Layout layout = matrix.column(16);
    for (const bool one_gpu : {false, true})
        EXPECT_THAT(costs(matrix, layout, one_gpu, {}, 2), testing::Each(Cost{0, 0, 1})) << one_gpu;
}

// The inside of a cube: planes of rows, as one kernel on each side and without a list.
TEST(StridedCost, ABoxIsOneKernelOnEachSide) {
    layout::FormBuilder builder;
    builder.add_run(0, 40);
    const layout::FormPtr rows = layout::repeated(builder.finish(), 30, 320);
    builder.add(8, rows, 20, 12800);
    const Layout box(builder.finish(), 1);
    EXPECT_THAT(costs({20, 1600, 8}, box, false), testing::Each(Cost{0, 0, 1}));
    config::Config off;
    off.kernels = false;
    // Out with what lies between, which is not much; in plane by plane.
    EXPECT_THAT(costs({20, 1600, 8}, box, false, off),
                testing::ElementsAre(Cost{1, 19 * 12800 + 29 * 320 + 40, 0}, Cost{20, 24000, 0}));
}

// --- inside one process --------------------------------------------------------------------------

struct Inside {
    Place source, sink;
    bool source_is_packed = false, sink_is_packed = false;
};

// Cells of no pattern, between buffers of this rank; what it costs.
Task<Status> to_itself(Rank& rank, const Inside& test, Bytes cells, Cost* cost) {
    const Matrix matrix{cells, 3, 16};
    const Layout list = matrix.column(8), packed = layout::contiguous_layout(cells * 16);
    Bytebuffer out(rank, test.source, matrix.bytes()), in(rank, test.sink, matrix.bytes());
    const auto bytes_of = [&rank, &matrix](Place place, Bytebuffer& buffer) {
        return stored(rank, place, buffer.address(), matrix.bytes());
    };
    out.fill(3);
    std::memset(bytes_of(test.sink, in), 0xAB, matrix.bytes());
    const Layout &from = test.source_is_packed ? packed : list,
                 &to = test.sink_is_packed ? packed : list;
    const p2p::Buffer sink{in.address(), 1, &to}, source{out.address(), 1, &from};
    rank.device.reset_counts();
    Result<p2p::Request*> receiving = rank.messenger.ireceive(rank.all, sink, rank.number, kTag);
    Status sent = co_await send(rank, source, rank.number, kTag);
    GANTRY_CO_TRY(sent);
    Received ended = co_await finish(rank.executor, rank, std::move(receiving));
    GANTRY_CO_TRY(ended.status);
    const device::fake::Counts& counts = rank.device.counts();
    *cost = {counts.all_copies(), 0, counts.row_launches};
    std::vector<std::byte> between(cells * 16), right(matrix.bytes(), std::byte{0xAB});
    layout::pack(from, bytes_of(test.source, out), 0, between.size(), between.data());
    layout::unpack(to, right.data(), 0, between.size(), between.data());
    WORLD_CHECK(std::memcmp(bytes_of(test.sink, in), right.data(), right.size()) == 0);
    co_return success();
}

Cost cost_inside(const Inside& test, Bytes cells) {
    World world({.machine = "h200", .ranks_per_node = 1});
    std::array<Cost, 2> both;
    const Ending ending = world.run([&](Rank& rank) {
        return to_itself(rank, test, cells, &both[static_cast<std::size_t>(rank.number)]);
    });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    EXPECT_EQ(both[0], both[1]);
    return both[0];
}

TEST(StridedInside, OneGpuCopiesAreLaunchesAndNothingGoesThroughTheHost) {
    for (const Bytes cells : {600, 4000}) {
        EXPECT_EQ(cost_inside({Place::device, Place::device}, cells), (Cost{0, 0, 2}));
        EXPECT_EQ(cost_inside({Place::device, Place::device, true}, cells), (Cost{0, 0, 1}));
        EXPECT_EQ(cost_inside({Place::device, Place::device, false, true}, cells), (Cost{0, 0, 1}));
    }
}

TEST(StridedInside, ToOrFromTheHostIsALaunchAndACopy) {
    for (const bool packed : {false, true}) {
        EXPECT_EQ(cost_inside({Place::device, Place::host, false, packed}, 4000), (Cost{1, 0, 1}));
        EXPECT_EQ(cost_inside({Place::host, Place::device, packed, false}, 4000), (Cost{1, 0, 1}));
    }
    // A small one is read with what lies between.
    EXPECT_EQ(cost_inside({Place::device, Place::host}, 600), (Cost{1, 0, 0}));
}

// --- several allocations ------------------------------------------------------------------------

// Absolute addresses: members of a structure that lie in device memory, the heap, device memory.
Task<Status> members_apart(Rank& rank) {
    constexpr Bytes kBytes = 4096;
    Bytebuffer first(rank, Place::device, kBytes), host(rank, Place::host, kBytes),
        last(rank, Place::device, kBytes);
    std::vector<layout::Block> blocks;
    for (Bytebuffer* each : {&last, &host, &first})
        blocks.push_back({reinterpret_cast<std::ptrdiff_t>(each->address()) + 8, kBytes - 8});
    const Layout layout = layout_of(0, blocks);
    const p2p::Buffer whole{nullptr, 1, &layout};
    std::uint64_t key = 0;
    for (Bytebuffer* each : {&first, &host, &last}) {
        each->clear();
        if (rank.number == 0) each->fill(++key);
    }
    if (rank.number == 0) {
        Status sent = co_await send(rank, whole, 1, kTag);
        co_return sent;
    }
    Received got = co_await receive(rank, whole, 0, kTag);
    GANTRY_CO_TRY(got.status);
    Bytebuffer right(rank, Place::host, kBytes);
    for (Bytebuffer* each : {&first, &host, &last}) {
        right.fill(++key);
        const Place place = each == &host ? Place::host : Place::device;
        std::byte* const bytes = stored(rank, place, each->address(), kBytes);
        WORLD_CHECK(std::memcmp(bytes + 8, right.address() + 8, kBytes - 8) == 0);
    }
    co_return success();
}

TEST(StridedMembers, MayLieInSeveralMemories) {
    for (const Way& way : kWays) {
        World world({.machine = way.machine, .ranks_per_node = way.ranks_per_node});
        const Ending ending = world.run([](Rank& rank) { return members_apart(rank); });
        EXPECT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle()) << "something was left over";
    }
}

}  // namespace
}  // namespace gantry::world
