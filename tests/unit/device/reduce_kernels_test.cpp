// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions by kernels: which there are, and the bits of layout/reduce.hpp for every operation and
// element that has one, of random values, NaNs, zeros of both signs and values that overflow.
#include "cuda_fixture.hpp"
#include "device/reduce_kernels.hpp"

#include <mpi.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace gantry::device {
namespace {

using layout::Element;
using layout::Operation;
using testing_support::CudaTest;
using testing_support::pointer;

struct Pair {
    Operation operation;
    Element element;
    std::string text() const {
        return std::string(layout::name(operation)) + " of element " +
               std::to_string(static_cast<int>(element));
    }
};

std::vector<Pair> legal() {
    std::vector<Pair> all;
    for (int operation = 0; operation < layout::kOperations; ++operation)
        for (int element = 0; element < layout::kElements; ++element) {
            const Pair pair{static_cast<Operation>(operation), static_cast<Element>(element)};
            if (layout::reduction(pair.operation, pair.element) != nullptr) all.push_back(pair);
        }
    return all;
}

std::vector<Pair> of_kernels() {
    std::vector<Pair> all = legal();
    std::erase_if(all,
                  [](const Pair& pair) { return !reduce_kernel(pair.operation, pair.element); });
    return all;
}

TEST(ReduceKernel, ExistsForAllButWideAndShortFloatsAndMoves) {
    for (const Pair& pair : legal()) {
        const bool moves =
            pair.operation == Operation::replace || pair.operation == Operation::no_op;
        const bool wide =
            pair.element == Element::long_double || pair.element == Element::float128 ||
            pair.element == Element::complex_long_double || pair.element == Element::complex256 ||
            pair.element == Element::long_double_int || pair.element == Element::float16;
        EXPECT_EQ(reduce_kernel(pair.operation, pair.element).has_value(), !moves && !wide)
            << pair.text();
    }
}

TEST(ReduceKernel, DoesNotExistForWhatIsNotLegal) {
    EXPECT_FALSE(reduce_kernel(Operation::band, Element::float64));
    EXPECT_FALSE(reduce_kernel(Operation::sum, Element::byte));
    EXPECT_FALSE(reduce_kernel(Operation::max, Element::complex64));
    EXPECT_FALSE(reduce_kernel(Operation::sum, Element::none));
}

// --- values --------------------------------------------------------------------------------------

using Bytes8 = std::vector<std::uint8_t>;

template <class T>
void put(Bytes8& bytes, std::size_t at, T value) {
    std::memcpy(&bytes[at], &value, sizeof value);
}

template <class F, class Word>
F any_float(std::mt19937& dice) {
    using Limits = std::numeric_limits<F>;
    const F special[] = {F{0},
                         -F{0},
                         Limits::quiet_NaN(),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::denorm_min(),
                         Limits::max(),
                         Limits::min(),
                         F{1},
                         F{-3},
                         F{2}};
    const auto which = static_cast<unsigned>(dice() % 20);
    if (which < std::size(special)) return special[which];
    if (which == 11)
        return std::bit_cast<F>(static_cast<Word>(std::bit_cast<Word>(special[2]) | 5));
    if (which < 15) return static_cast<F>(dice()) / F{65536} - F{30000};
    const Word bits = static_cast<Word>(static_cast<std::uint64_t>(dice()) << 32 | dice());
    const F any = std::bit_cast<F>(bits);
    return std::isnan(any) ? special[2] : any;  // no signalling ones
}

enum class Content { bytes, float32, float64 };
Content content(Element element) {
    switch (element) {
        case Element::float32:
        case Element::complex64: return Content::float32;
        case Element::float64:
        case Element::complex128: return Content::float64;
        default: return Content::bytes;
    }
}

Bytes8 values(const Pair& pair, std::size_t count, std::mt19937& dice) {
    const Bytes element = reduce_kernel(pair.operation, pair.element)->element;
    Bytes8 bytes(count * element);
    for (std::size_t at = 0; at < bytes.size(); ++at)
        // Zeros are common, so that logical operations have something to tell.
        bytes[at] = dice() % 3 == 0 ? 0 : static_cast<std::uint8_t>(dice());
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * element;
        if (dice() % 4 == 0) std::memset(&bytes[at], 0, element);
        const auto few = static_cast<int>(dice() % 3) - 1;
        const auto index = static_cast<int>(dice() % 5) - 2;
        switch (pair.element) {
            case Element::float32:
            case Element::complex64:
                for (std::size_t part = 0; part < element; part += 4)
                    put(bytes, at + part, any_float<float, std::uint32_t>(dice));
                break;
            case Element::float64:
            case Element::complex128:
                for (std::size_t part = 0; part < element; part += 8)
                    put(bytes, at + part, any_float<double, std::uint64_t>(dice));
                break;
            case Element::float_int:
                put(bytes, at,
                    dice() % 2 ? static_cast<float>(few) : any_float<float, std::uint32_t>(dice));
                put(bytes, at + 4, index);
                break;
            case Element::double_int:
                put(bytes, at,
                    dice() % 2 ? static_cast<double>(few) : any_float<double, std::uint64_t>(dice));
                put(bytes, at + 8, index);
                break;
            case Element::long_int:
                put(bytes, at, static_cast<long>(few));
                put(bytes, at + 8, index);
                break;
            case Element::int_int:
            case Element::integer_integer:
                put(bytes, at, few);
                put(bytes, at + 4, index);
                break;
            case Element::short_int:
                put(bytes, at, static_cast<short>(few));
                put(bytes, at + 4, index);
                break;
            case Element::real_real:
                put(bytes, at, any_float<float, std::uint32_t>(dice));
                put(bytes, at + 4, static_cast<float>(index));
                break;
            case Element::double_double:
                put(bytes, at, any_float<double, std::uint64_t>(dice));
                put(bytes, at + 8, static_cast<double>(index));
                break;
            default: break;
        }
    }
    return bytes;
}

// Of a NaN that arithmetic makes, the payload is the processor's business.
template <class F>
std::ptrdiff_t first_difference(const Bytes8& a, const Bytes8& b) {
    for (std::size_t at = 0; at < a.size(); at += sizeof(F)) {
        F x, y;
        std::memcpy(&x, &a[at], sizeof x);
        std::memcpy(&y, &b[at], sizeof y);
        if (std::memcmp(&x, &y, sizeof x) != 0 && !(std::isnan(x) && std::isnan(y)))
            return static_cast<std::ptrdiff_t>(at);
    }
    return -1;
}
std::ptrdiff_t first_difference(const Pair& pair, const Bytes8& a, const Bytes8& b) {
    const bool arithmetic = pair.operation == Operation::sum || pair.operation == Operation::prod;
    if (arithmetic && content(pair.element) == Content::float32)
        return first_difference<float>(a, b);
    if (arithmetic && content(pair.element) == Content::float64)
        return first_difference<double>(a, b);
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin());
    return differ.first == a.end() ? -1 : differ.first - a.begin();
}

// --- on the device -------------------------------------------------------------------------------

struct CudaReduce : CudaTest {
    static constexpr Bytes kRoom = Bytes{1} << 20;
    static constexpr int kVectors = 6;

    void SetUp() override {
        CudaTest::SetUp();
        if (IsSkipped()) return;
        for (CUdeviceptr& vector : vectors) {
            vector = allocate(kRoom);
            classify(pointer(vector), kRoom);
        }
    }
    void TearDown() override {
        if (primary != nullptr)
            for (const CUdeviceptr vector : vectors)
                gpu.cuMemFree_v2(vector);
        CudaTest::TearDown();
    }

    Status reduce(const Pair& pair, std::vector<const void*> sources, void* destination,
                  std::uint64_t count, std::vector<void*> also = {}) {
        Reduce order;
        order.operation = pair.operation;
        order.element = pair.element;
        order.sources = sources;
        order.destination = destination;
        order.also = also;
        order.count = count;
        Completion done(executor);
        cuda->reduce(order, done);
        finish(done);
        return done.status();
    }

    // `operands` vectors that begin so many bytes into theirs, into the last one or into another.
    void check(const Pair& pair, int operands, std::size_t count, Bytes shift, bool in_place,
               unsigned seed) {
        std::mt19937 dice(seed);
        std::vector<Bytes8> sources;
        std::vector<const void*> at;
        for (int i = 0; i < operands; ++i) {
            sources.push_back(values(pair, count, dice));
            write(vectors[i] + shift, sources.back());
            at.push_back(pointer(vectors[i] + shift));
        }
        const CUdeviceptr destination = (in_place ? vectors[operands - 1] : vectors[5]) + shift;
        Bytes8 expected = sources.back();
        if (!in_place) {
            // Padding stays what it was.
            expected = values(pair, count, dice);
            write(destination, expected);
        }
        const layout::Reduction combine = layout::reduction(pair.operation, pair.element);
        Bytes8 all = sources.front();
        for (int i = 1; i < operands; ++i) {
            Bytes8 next =
                i + 1 == operands && in_place ? expected : sources[static_cast<std::size_t>(i)];
            combine(all.data(), next.data(), count);
            all = next;
        }
        if (in_place)
            expected = all;
        else
            layout::reduction(Operation::replace, pair.element)(all.data(), expected.data(), count);
        const Bytes8 at_first = read(destination, expected.size());
        const std::uint64_t before = cuda->calls().launches;
        const auto reducing = [&] { return reduce(pair, at, pointer(destination), count); };
        if (by_a_persistent_kernel) {
            ASSERT_TRUE(reduce_until_taken(destination, at_first, reducing));
        } else {
            const Status status = reducing();
            ASSERT_TRUE(status.ok()) << status.text();
            EXPECT_EQ(cuda->calls().launches, before + 1);
        }
        EXPECT_EQ(first_difference(pair, read(destination, expected.size()), expected), -1)
            << pair.text() << ", " << operands << " operands, " << count << " elements, shift "
            << shift << (in_place ? ", in place" : "") << ", seed " << seed;
        for (int i = 0; i < operands - (in_place ? 1 : 0); ++i)
            EXPECT_TRUE(read(vectors[i] + shift, sources[static_cast<std::size_t>(i)].size()) ==
                        sources[static_cast<std::size_t>(i)]);
    }

    // By a kernel that stays, which comes when enough were reduced close to each other. On a busy machine
    // it may go again before it takes this one: only the time limit of the test ends this.
    template <class Reducing>
    bool reduce_until_taken(CUdeviceptr destination, const Bytes8& at_first, Reducing reducing) {
        std::uint64_t launches = 0;
        void* const spare = pointer(vectors[5] + kRoom - 8);
        do {
            do {
                launches = cuda->calls().launches;
                if (!reduce({Operation::sum, Element::int32}, {spare}, spare, 1).ok()) return false;
            } while (cuda->calls().launches != launches);
            // Not by the program's stream, which waits until no kernel runs.
            if (!copy({pointer(destination), at_first.data(), at_first.size(), 0, Engine::h2d})
                     .ok())
                return false;
            if (!reducing().ok()) return false;
        } while (cuda->calls().launches != launches);
        return true;
    }

    CUdeviceptr vectors[kVectors] = {};
    bool by_a_persistent_kernel = false;
};

TEST_F(CudaReduce, EveryPairHasTheBitsOfTheHost) {
    unsigned seed = 1;
    for (const Pair& pair : of_kernels()) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{1000}})
            check(pair, 2, count, 0, true, seed++);
        const Bytes alignment = reduce_kernel(pair.operation, pair.element)->alignment;
        check(pair, 2, 333, alignment, true, seed++);
        check(pair, 2, 333, 0, false, seed++);
        check(pair, 5, 129, alignment, false, seed++);
    }
}

// More elements than the threads of a launch.
TEST_F(CudaReduce, ALongVectorIsReducedToItsEnd) {
    check({Operation::sum, Element::int8}, 2, kRoom - 5, 0, true, 1);
    check({Operation::bxor, Element::byte}, 3, kRoom - 4, 1, true, 2);
    check({Operation::sum, Element::float64}, 2, kRoom / 8, 0, true, 3);
    check({Operation::prod, Element::complex128}, 2, kRoom / 16 - 1, 8, true, 4);
    check({Operation::maxloc, Element::short_int}, 2, kRoom / 8, 0, true, 5);
}

// One launch writes the result into several vectors, of which sources may be some.
TEST_F(CudaReduce, SeveralDestinationsGetTheSame) {
    unsigned seed = 1;
    for (const Pair& pair :
         {Pair{Operation::sum, Element::float32}, Pair{Operation::bxor, Element::byte},
          Pair{Operation::maxloc, Element::double_int}, Pair{Operation::prod, Element::int8}})
        for (const std::size_t count : {std::size_t{1}, std::size_t{1001}})
            for (const Bytes shift : {Bytes{0}, Bytes{8}}) {
                std::mt19937 dice(seed++);
                const Bytes8 first = values(pair, count, dice), second = values(pair, count, dice);
                write(vectors[0] + shift, first);
                write(vectors[1] + shift, second);
                write(vectors[2] + shift, second);  // its padding is kept
                const std::uint64_t before = cuda->calls().launches;
                const auto at = [&](int i) { return pointer(vectors[i] + shift); };
                const Status status = reduce(pair, {at(0), at(1)}, at(1), count, {at(2)});
                ASSERT_TRUE(status.ok()) << status.text();
                EXPECT_EQ(cuda->calls().launches, before + 1);
                Bytes8 expected = second;
                layout::reduction(pair.operation, pair.element)(first.data(), expected.data(),
                                                                count);
                for (const int i : {1, 2})
                    EXPECT_EQ(
                        first_difference(pair, read(vectors[i] + shift, expected.size()), expected),
                        -1)
                        << pair.text() << ", vector " << i << ", " << count << " elements, shift "
                        << shift << ", seed " << seed - 1;
            }
}

// Short vectors of the most common elements cost no launch while a kernel stays.
struct CudaResidentReduce : CudaReduce {
    void SetUp() override {
        CudaReduce::SetUp();
        if (IsSkipped()) return;
        config.idle_timeout = 20 * kMillisecond;
        config.machine = "h200";
        make_device();
        by_a_persistent_kernel = true;
    }
};

TEST_F(CudaResidentReduce, EveryPairHasTheBitsOfTheHost) {
    unsigned seed = 1;
    for (const Pair& pair : of_kernels()) {
        const bool common = pair.element == Element::int32 || pair.element == Element::uint64 ||
                            pair.element == Element::float32 || pair.element == Element::float64;
        const bool bits = pair.operation == Operation::band || pair.operation == Operation::bor ||
                          pair.operation == Operation::bxor;
        if (!common || bits) continue;
        const Bytes alignment = reduce_kernel(pair.operation, pair.element)->alignment;
        if (seed % 2 == 0)
            check(pair, 2, seed % 4 == 0 ? 1024 : 257, alignment, true, seed);
        else
            check(pair, 1 + static_cast<int>(seed % 5), 2000 - seed, 0, false, seed);
        ++seed;
    }
}

TEST_F(CudaResidentReduce, SeveralDestinationsGetTheSame) {
    const Pair pair{Operation::sum, Element::float64};
    const auto at = [&](int i) { return pointer(vectors[i]); };
    for (const std::size_t count : {1, 255, 1000}) {
        std::mt19937 dice(static_cast<unsigned>(count));
        const Bytes8 first = values(pair, count, dice), second = values(pair, count, dice);
        Bytes8 expected = second;
        layout::reduction(pair.operation, pair.element)(first.data(), expected.data(), count);
        write(vectors[0], first);
        ASSERT_TRUE(reduce_until_taken(vectors[1], second, [&] {
            return reduce(pair, {at(0), at(1)}, at(1), count, {at(2), at(3), at(4), at(5)});
        }));
        for (int i = 1; i < kVectors; ++i)
            EXPECT_EQ(first_difference(pair, read(vectors[i], expected.size()), expected), -1)
                << "vector " << i << ", " << count << " elements";
    }
}

TEST_F(CudaReduce, RefusesWhatNoGpuReads) {
    std::vector<std::uint8_t> host(64);
    const std::uint64_t before = cuda->calls().launches;
    const auto refused = [&](const Pair& pair, std::vector<const void*> sources, CUdeviceptr to) {
        const Status status = reduce(pair, std::move(sources), pointer(to), 4);
        EXPECT_EQ(status.error_class(), MPI_ERR_UNSUPPORTED_OPERATION) << status.text();
    };
    const Pair sum{Operation::sum, Element::float64};
    refused(sum, {pointer(vectors[0] + 4), pointer(vectors[1])}, vectors[1]);
    refused(sum, {pointer(vectors[0]), pointer(vectors[1])}, vectors[1] + 1);
    refused(sum, {host.data(), pointer(vectors[1])}, vectors[1]);
    refused(sum, {}, vectors[1]);
    refused(sum, std::vector<const void*>(kMostReduced + 1, pointer(vectors[0])), vectors[1]);
    refused({Operation::sum, Element::long_double}, {pointer(vectors[0]), pointer(vectors[1])},
            vectors[1]);
    refused({Operation::replace, Element::int32}, {pointer(vectors[0]), pointer(vectors[1])},
            vectors[1]);
    EXPECT_EQ(cuda->calls().launches, before);
}

TEST_F(CudaReduce, DoesNothingToNoElements) {
    const std::uint64_t before = cuda->calls().launches;
    EXPECT_TRUE(reduce({Operation::sum, Element::int32}, {pointer(vectors[0]), pointer(vectors[1])},
                       pointer(vectors[1]), 0)
                    .ok());
    EXPECT_EQ(cuda->calls().launches, before);
}

TEST_F(CudaReduce, IsRefusedWhereKernelsAreOff) {
    config.kernels = false;
    make_device();
    const Status status =
        reduce({Operation::sum, Element::int32}, {pointer(vectors[0]), pointer(vectors[1])},
               pointer(vectors[1]), 4);
    EXPECT_EQ(status.error_class(), MPI_ERR_UNSUPPORTED_OPERATION) << status.text();
}

// Copies inside the GPU and reductions run in the order of their calls.
TEST_F(CudaReduce, RunsBehindTheCopyBeforeIt) {
    constexpr std::size_t kCount = 20000;
    const Pair pair{Operation::sum, Element::int32};
    std::mt19937 dice(5);
    const Bytes8 from = values(pair, kCount, dice), inout = values(pair, kCount, dice);
    write(vectors[0], from);
    write(vectors[2], inout);
    Copy move;
    move.destination = pointer(vectors[1]);
    move.source = pointer(vectors[0]);
    move.bytes = from.size();
    move.engine = Engine::d2d;
    Completion moved(executor), reduced(executor);
    cuda->copy(move, moved);
    const void* const sources[] = {pointer(vectors[1]), pointer(vectors[2])};
    Reduce order;
    order.operation = pair.operation;
    order.element = pair.element;
    order.sources = sources;
    order.destination = pointer(vectors[2]);
    order.count = kCount;
    cuda->reduce(order, reduced);
    finish(moved);
    finish(reduced);
    EXPECT_TRUE(reduced.status().ok()) << reduced.status().text();
    Bytes8 expected = inout;
    layout::reduction(pair.operation, pair.element)(from.data(), expected.data(), kCount);
    EXPECT_TRUE(read(vectors[2], expected.size()) == expected);
}

TEST_F(CudaReduce, FailsWithTheContextThatItsVectorsWentWith) {
    const Pair pair{Operation::sum, Element::int32};
    ASSERT_TRUE(
        reduce(pair, {pointer(vectors[0]), pointer(vectors[1])}, pointer(vectors[1]), 4).ok());
    reset_context();
    const Status status =
        reduce(pair, {pointer(vectors[0]), pointer(vectors[1])}, pointer(vectors[1]), 4);
    EXPECT_FALSE(status.ok());
    for (CUdeviceptr& vector : vectors)
        vector = 0;
}

}  // namespace
}  // namespace gantry::device
