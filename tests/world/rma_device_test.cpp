// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates at device memory: made by kernels where it lies, with exact counts of launches and
// copies; the same bits as the processor's; one at a time, whoever they come from.
#include "world/harness/window_parts.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace gantry::world {
namespace {

using layout::Element;
using layout::Operation;
using rma::Verb;

Options on_nodes(int ranks, int ranks_per_node) {
    Options options;
    options.machine = "h200";
    options.ranks = ranks;
    options.ranks_per_node = ranks_per_node;
    // Under MPS nobody waits for time slices of the one GPU.
    options.change_machine = [](model::Machine& machine) { machine.gpu.turn = 0; };
    return options;
}

std::byte* stored(Rank& rank, std::byte* address, Bytes bytes) {
    std::byte* const behind = rank.device.behind(address, bytes);
    return behind != nullptr ? behind : address;
}

// Small numbers of any kind of item, none of which is zero.
void fill(std::byte* memory, Element element, Bytes bytes, unsigned seed) {
    const auto number = [seed](Bytes i) { return static_cast<int>((i * 7 + seed) % 5 + 1); };
    const auto all = [&]<class T>(T) {
        for (Bytes i = 0; i < bytes / sizeof(T); ++i) {
            const T value = static_cast<T>(number(i));
            std::memcpy(memory + i * sizeof value, &value, sizeof value);
        }
    };
    switch (element) {
        case Element::float32:
        case Element::complex64:
        case Element::real_real: return all(float{});
        case Element::float64:
        case Element::complex128:
        case Element::double_double: return all(double{});
        case Element::long_double:
        case Element::complex_long_double:
            std::memset(memory, 0, bytes);
            for (Bytes i = 0; i < bytes / sizeof(long double); ++i) {
                const long double value = number(i);
                std::memcpy(memory + i * sizeof value, &value, 10);
            }
            return;
        case Element::boolean:
            for (Bytes i = 0; i < bytes; ++i)
                memory[i] = static_cast<std::byte>(number(i) % 2);
            return;
        case Element::float_int:
            for (Bytes i = 0; i < bytes / 8; ++i) {
                const auto value = static_cast<float>(number(i));
                const int index = number(3 * i);
                std::memcpy(memory + 8 * i, &value, 4);
                std::memcpy(memory + 8 * i + 4, &index, 4);
            }
            return;
        default: return all(std::uint8_t{});
    }
}

struct Change {
    Verb verb = Verb::accumulate;
    Operation operation = Operation::sum;
    Element element = Element::float64;
    Bytes bytes = 8;
    Place operand = Place::device, result = Place::device;
    Bytes operand_at = 0;  // bytes from the beginning of its memory
};

struct Price {
    device::fake::Counts origin, target;
};

Result<rma::Side> side(Rank& rank, Bytebuffer& buffer, Bytes at, Bytes bytes) {
    rma::Side made;
    made.buffer = {buffer.address() + at, bytes, &bytes_layout(false)};
    Result<device::Location> location = rank.transfer.locate(made.buffer);
    GANTRY_TRY(location.status());
    made.location = *location;
    return made;
}

Status begin(Rank& rank, rma::Window& window, const Change& change, Bytebuffer& operand,
             Bytebuffer& result, int target) {
    rma::Access access;
    access.verb = change.verb;
    access.target = target;
    access.count = access.bytes = change.bytes;
    access.layout = &bytes_layout(false);
    access.operation = change.operation;
    access.items = rma::items_of(change.element);
    if (change.operation != Operation::no_op) {
        Result<rma::Side> from = side(rank, operand, change.operand_at, change.bytes);
        GANTRY_TRY(from.status());
        access.origin = *from;
    }
    if (change.verb == Verb::fetch) {
        Result<rma::Side> into = side(rank, result, 0, change.bytes);
        GANTRY_TRY(into.status());
        access.result = *into;
    }
    return window.begin(access, nullptr).status();
}

constexpr Bytes kRoom = 4 * kMiB;

// Rank 0 makes each of the changes at device memory of rank 1.
Task<Status> make_all(Rank& rank, const std::vector<Change>& changes, int gpu_of_target,
                      std::vector<Price>* prices) {
    Bytebuffer memory(rank, Place::device, kRoom, rank.number == 1 ? gpu_of_target : 0);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    prices->resize(changes.size());
    for (std::size_t number = 0; number < changes.size(); ++number) {
        const Change& change = changes[number];
        std::vector<std::byte> before(change.bytes), after(change.bytes);
        fill(before.data(), change.element, change.bytes, 2);
        Bytebuffer operand(rank, change.operand, change.bytes + change.operand_at),
            result(rank, change.result, change.bytes);
        std::byte* const mine =
            stored(rank, operand.address(), operand.bytes()) + change.operand_at;
        fill(mine, change.element, change.bytes, 3);
        after = before;
        if (change.operation == Operation::replace) {
            std::memcpy(after.data(), mine, change.bytes);
        } else if (change.operation != Operation::no_op) {
            // The host twin reads whole elements, and the operand may lie between two of them.
            const std::vector<std::byte> aligned(mine, mine + change.bytes);
            layout::reduction(change.operation, change.element)(
                aligned.data(), after.data(), change.bytes / rma::items_of(change.element).size);
        }
        if (rank.number == 1)
            std::memcpy(stored(rank, memory.address(), kRoom), before.data(), before.size());
        status = co_await meet(rank, 100 + 2 * static_cast<int>(number));
        GANTRY_CO_TRY(status);
        rank.device.reset_counts();
        if (rank.number == 0) {
            status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
            GANTRY_CO_TRY(status);
            GANTRY_CO_TRY(begin(rank, *window, change, operand, result, 1));
            status = co_await window->unlock(rank.executor, 1);
            GANTRY_CO_TRY(status);
            if (change.verb == Verb::fetch)
                WORLD_CHECK(std::memcmp(stored(rank, result.address(), change.bytes), before.data(),
                                        change.bytes) == 0);
        }
        status = co_await meet(rank, 101 + 2 * static_cast<int>(number));
        GANTRY_CO_TRY(status);
        (rank.number == 0 ? (*prices)[number].origin : (*prices)[number].target) =
            rank.device.counts();
        if (rank.number == 1 &&
            std::memcmp(stored(rank, memory.address(), kRoom), after.data(), after.size()) != 0)
            co_return failure(MPI_ERR_OTHER, "wrong: {} of element {}, {} bytes, case {}",
                              layout::name(change.operation), static_cast<int>(change.element),
                              change.bytes, number);
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

std::vector<Price> priced(Options options, const std::vector<Change>& changes,
                          int gpu_of_target = 0) {
    std::vector<Price> prices;
    World world(std::move(options));
    const Ending ending =
        world.run([&](Rank& rank) { return make_all(rank, changes, gpu_of_target, &prices); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    return prices;
}

std::uint64_t copies(const device::fake::Counts& counts, model::Operation operation) {
    return counts.copies[static_cast<int>(operation)];
}

TEST(RmaDevice, AnAccumulateInsideANodeIsOneKernelAndNoCopy) {
    for (const Bytes bytes : {Bytes{8}, 64 * kKiB, 4 * kMiB}) {
        const std::vector<Price> prices =
            priced(on_nodes(2, 2), {{.bytes = bytes}, {.verb = Verb::fetch, .bytes = bytes}});
        for (const Price& price : prices) {
            EXPECT_EQ(price.origin.reductions, 1u) << bytes;
            EXPECT_EQ(price.origin.reduced, bytes);
            EXPECT_EQ(price.target.reductions + price.target.all_copies(), 0u) << bytes;
        }
        EXPECT_EQ(prices[0].origin.all_copies(), 0u) << bytes;
        EXPECT_EQ(prices[1].origin.all_copies(), 1u) << bytes << ": what was there";
        EXPECT_EQ(copies(prices[1].origin, model::Operation::d2d), 1u) << bytes;
    }
}

TEST(RmaDevice, AnOperandFromElsewhereComesToTheGpuOfTheTargetFirst) {
    constexpr Bytes kBytes = 64 * kKiB;
    const Change from_host{.bytes = kBytes, .operand = Place::host};
    const Change odd{.bytes = kBytes, .operand_at = 4};
    const std::vector<Price> near = priced(on_nodes(2, 2), {from_host, odd});
    for (const Price& price : near) {
        EXPECT_EQ(price.origin.reductions, 1u);
        EXPECT_EQ(price.origin.all_copies(), 1u);
    }
}

// Each rank's own GPU reaches the memory of the other one.
TEST(RmaDevice, AnAccumulateAtAnotherGpuIsOneKernelOfTheOriginsGpu) {
    constexpr Bytes kBytes = 64 * kKiB;
    const std::vector<Price> far = priced(on_nodes(2, 2), {{.bytes = kBytes}}, 1);
    EXPECT_EQ(far[0].origin.reductions, 1u);
    EXPECT_EQ(far[0].origin.all_copies(), 0u);
    EXPECT_EQ(far[0].target.reductions + far[0].target.all_copies(), 0u);
}

TEST(RmaDevice, ReplacingAndReadingAreCopiesOfTheDevice) {
    for (const Bytes bytes : {Bytes{8}, kMiB}) {
        const std::vector<Price> prices = priced(
            on_nodes(2, 2), {{.operation = Operation::replace, .bytes = bytes},
                             {.verb = Verb::fetch, .operation = Operation::no_op, .bytes = bytes},
                             {.verb = Verb::fetch, .operation = Operation::replace, .bytes = bytes},
                             {.verb = Verb::fetch,
                              .operation = Operation::no_op,
                              .bytes = bytes,
                              .result = Place::host}});
        const std::uint64_t expected[] = {1, 1, 2, 1};
        for (std::size_t i = 0; i < prices.size(); ++i) {
            EXPECT_EQ(prices[i].origin.reductions, 0u) << i;
            EXPECT_EQ(prices[i].origin.all_copies(), expected[i]) << i;
        }
    }
}

TEST(RmaDevice, WhatComesByMessageIsReducedByTheGpuOfTheTarget) {
    constexpr Bytes kBytes = 8 * kKiB;  // one message
    const std::vector<Price> prices = priced(
        on_nodes(2, 1),
        {{.bytes = kBytes, .operand = Place::host},
         {.verb = Verb::fetch, .bytes = kBytes, .operand = Place::host, .result = Place::host}});
    for (const Price& price : prices) {
        EXPECT_EQ(price.target.reductions, 1u);
        EXPECT_EQ(price.target.reduced, kBytes);
        EXPECT_EQ(price.origin.reductions, 0u);
    }
    EXPECT_EQ(prices[0].target.all_copies(), 1u) << "the operand";
    EXPECT_EQ(prices[1].target.all_copies(), 2u) << "and what was there";
}

std::vector<Change> every_operation(Bytes bytes) {
    std::vector<Change> changes;
    for (int operation = 0; operation < layout::kOperations; ++operation)
        for (int element = 1; element < layout::kElements; ++element) {
            const Change change{.operation = static_cast<Operation>(operation),
                                .element = static_cast<Element>(element),
                                .bytes = bytes};
            const rma::Items items = rma::items_of(change.element);
            const bool moves = change.operation == Operation::replace;
            // The bytes of a long double that hold no bits of its number may be any.
            const bool any_bytes = change.element == Element::complex_long_double ||
                                   change.element == Element::long_double;
            if (change.operation == Operation::no_op || items.padded() || any_bytes ||
                change.element == Element::float128 || change.element == Element::complex256)
                continue;
            if (moves || layout::reduction(change.operation, change.element) != nullptr)
                changes.push_back(change);
        }
    return changes;
}

TEST(RmaDevice, EveryOperationOnEveryTypeHasTheBitsOfTheProcessor) {
    const std::vector<Change> changes = every_operation(96);
    std::uint64_t kernels = 0;
    for (const Price& price : priced(on_nodes(2, 2), changes))
        kernels += price.origin.reductions;
    EXPECT_GT(kernels, 100u);
    EXPECT_LT(kernels, changes.size());
    kernels = 0;
    for (const Price& price : priced(on_nodes(2, 1), changes))
        kernels += price.target.reductions;
    EXPECT_GT(kernels, 100u);
}

TEST(RmaDevice, WithoutKernelsOrWhereTheUserSaysSoTheProcessorDoesIt) {
    for (const bool kernels : {false, true}) {
        Options options = on_nodes(2, 2);
        options.change_config = [kernels](config::Config& config) {
            config.kernels = kernels;
            if (kernels) config.reduce_on = "host";
        };
        for (const Price& price :
             priced(std::move(options), {{.bytes = 8}, {.verb = Verb::fetch, .bytes = kMiB}})) {
            EXPECT_EQ(price.origin.reductions, 0u);
            EXPECT_GT(price.origin.all_copies(), 2u);
        }
    }
}

// All add to the numbers of rank 0, each some times by what it has on its own device or host, and read
// a counter as they add one to it.
Task<Status> add_all_together(Rank& rank, std::vector<std::uint64_t>* tickets, bool fails) {
    constexpr Bytes kBytes = 512 * sizeof(std::uint64_t);
    constexpr int kTimes = 6;
    Bytebuffer memory(rank, Place::device, 2 * kBytes),
        ones(rank, rank.number % 2 == 0 ? Place::device : Place::host, kBytes),
        result(rank, Place::device, kBytes);
    std::memset(stored(rank, memory.address(), memory.bytes()), 0, memory.bytes());
    for (Bytes at = 0; at < kBytes; at += 8) {
        const std::uint64_t one = 1;
        std::memcpy(stored(rank, ones.address(), kBytes) + at, &one, sizeof one);
    }
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    status = co_await window->lock_all(rank.executor, rma::Lock::shared);
    GANTRY_CO_TRY(status);
    const Change add{.element = Element::uint64, .bytes = kBytes};
    if (fails && rank.number == 1) {
        rank.device.faults.fail_reduction = 1;
        status = begin(rank, *window, add, ones, result, 0);
        GANTRY_CO_TRY(status);
        status = co_await window->flush(rank.executor, 0);
        WORLD_CHECK(!status.ok());
    }
    for (int time = 0; time < kTimes; ++time) {
        GANTRY_CO_TRY(begin(rank, *window, add, ones, result, 0));
        Change draw{.verb = Verb::fetch, .element = Element::uint64, .bytes = kBytes};
        GANTRY_CO_TRY(begin(rank, *window, draw, ones, result, 0));
        status = co_await window->flush(rank.executor, 0);
        GANTRY_CO_TRY(status);
        std::uint64_t first = 0, each = 0;
        std::memcpy(&first, stored(rank, result.address(), kBytes), 8);
        tickets->push_back(first);
        for (Bytes at = 0; at < kBytes; at += 8) {
            std::memcpy(&each, stored(rank, result.address(), kBytes) + at, 8);
            WORLD_CHECK(each == first);
        }
    }
    status = co_await window->unlock_all(rank.executor);
    GANTRY_CO_TRY(status);
    status = co_await meet(rank, 900);
    GANTRY_CO_TRY(status);
    if (rank.number == 0)
        for (Bytes at = 0; at < kBytes; at += 8) {
            std::uint64_t sum = 0;
            std::memcpy(&sum, stored(rank, memory.address(), 2 * kBytes) + at, 8);
            if (sum != static_cast<std::uint64_t>(2 * kTimes * rank.all.size()))
                co_return failure(MPI_ERR_OTHER, "the sum at byte {} is {}", at, sum);
        }
    status = co_await window->close(rank.executor);
    co_return status;
}

void expect_each_ticket_once(int ranks_per_node, std::uint64_t seed, bool fails) {
    std::vector<std::uint64_t> tickets;
    Options options = on_nodes(4, ranks_per_node);
    options.seed = seed;
    options.jitter = 5 * kMicrosecond;
    World world(std::move(options));
    const Ending ending =
        world.run([&](Rank& rank) { return add_all_together(rank, &tickets, fails); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "seed " << seed;
    std::sort(tickets.begin(), tickets.end());
    EXPECT_EQ(std::adjacent_find(tickets.begin(), tickets.end()), tickets.end())
        << "two found the same number, seed " << seed;
}

TEST(RmaDevice, AccumulatesOfManyRanksAreOneBehindTheOther) {
    for (const int ranks_per_node : {1, 2, 4})
        for (std::uint64_t seed = 1; seed <= 3; ++seed)
            expect_each_ticket_once(ranks_per_node, seed, false);
}

TEST(RmaDevice, AKernelThatFailsIsAnErrorAtItsOriginAndHoldsNobodyUp) {
    expect_each_ticket_once(4, 1, true);
}

TEST(RmaDevice, ExplainSaysThatKernelsMakeAccumulates) {
    World world(on_nodes(2, 2));
    std::vector<Price> prices;
    const std::vector<Change> none;
    const Ending ending = world.run([&](Rank& rank) { return make_all(rank, none, 0, &prices); });
    ASSERT_TRUE(ending.good()) << ending;
    const std::string text = world.rank(0).explain.text(0);
    EXPECT_NE(text.find("accumulates kernels of its GPU"), std::string::npos) << text;
}

}  // namespace
}  // namespace gantry::world
