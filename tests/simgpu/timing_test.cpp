// SPDX-License-Identifier: BSD-3-Clause
// What the model promises, asserted in modelled time: it holds on a loaded machine too. The scale
// keeps the modelled rates below what one core copies.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "harness.hpp"

namespace {

constexpr double kScale = 32;
constexpr const char* kTimed = "machine=h200,scale=32";
constexpr std::size_t kBytes = 4u << 20;
constexpr double kTurn = 135e3 * kScale;  // nanoseconds, as in machines/h200.json

std::vector<simgpu_operation> copies() {
    std::vector<simgpu_operation> all(4096);
    all.resize(std::min(all.size(), cuda().simgpu_operations(all.data(), all.size())));
    std::erase_if(all, [](const simgpu_operation& op) { return op.kind != SIMGPU_COPY; });
    return all;
}

double duration(const simgpu_operation& op) {
    return static_cast<double>(op.end - op.start);
}
double from_call(const simgpu_operation& op) {
    return static_cast<double>(op.end - op.enqueued);
}

struct Span {
    std::int64_t start, end;
    double length() const { return static_cast<double>(end - start); }
};
Span span_of(const std::vector<simgpu_operation>& operations) {
    Span span{operations.front().start, operations.front().end};
    for (const simgpu_operation& op : operations) {
        span = {std::min(span.start, op.start), std::max(span.end, op.end)};
    }
    return span;
}

struct Buffers {
    CUdeviceptr device = device_memory(kBytes);
    char* host = pinned_memory(kBytes);
    CUstream stream = new_stream();

    void d2h() const { OK(cuda().cuMemcpyDtoHAsync_v2(host, device, kBytes, stream)); }
    void h2d() const { OK(cuda().cuMemcpyHtoDAsync_v2(device, host, kBytes, stream)); }
};

Span run(const std::vector<CUstream>& streams, const std::function<void()>& work) {
    cuda().simgpu_clear_operations();
    for (const CUstream stream : streams) {
        gate().close(stream);
    }
    work();
    gate().open();
    EXPECT_EQ(cuda().cuCtxSynchronize(), CUDA_SUCCESS);
    return span_of(copies());
}

thread_local int given_away = 0;

}  // namespace

// The driver's, too: this program's symbols come first.
extern "C" int sched_yield() noexcept {
    ++given_away;
    return static_cast<int>(syscall(SYS_sched_yield));
}

TEST(Timing, ShortCallsKeepTheProcessor) {
    const auto queries = [] {
        CUevent event = nullptr;
        OK(cuda().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        given_away = 0;
        for (int i = 0; i < 100; ++i) {
            OK(cuda().cuEventQuery(event));
        }
    };
    simulated("machine=h200", [&] {
        queries();
        EXPECT_EQ(given_away, 0);
    });
    simulated("machine=h200,scale=100", [&] {
        queries();
        EXPECT_GT(given_away, 0);
    });
}

TEST(Timing, ACopyTakesGapPlusBytesOverRate) {
    simulated(kTimed, [] {
        const Buffers a;
        run({}, [&] { a.d2h(); });
        const double expected = (3500.0 + static_cast<double>(kBytes) / 55.8) * kScale;
        EXPECT_NEAR(duration(copies()[0]) / expected, 1.0, 0.001);
        EXPECT_GE(from_call(copies()[0]), expected + 3700.0 * kScale);  // launch: latency - gap
    });
}

TEST(Timing, OppositeDirectionsOverlapAndEqualOnesDoNot) {
    simulated(kTimed, [] {
        const Buffers a, b;
        const double serial = run({a.stream}, [&] { a.d2h(), a.h2d(); }).length();
        const double opposite = run({a.stream, b.stream}, [&] { a.d2h(), b.h2d(); }).length();
        const double equal = run({a.stream, b.stream}, [&] { a.d2h(), b.d2h(); }).length();
        EXPECT_NEAR(opposite / serial, 0.5, 0.02);
        EXPECT_NEAR(equal / serial, 1.0, 0.02);
    });
}

TEST(Timing, EventsMeasureModelledTimeIndependentOfTheScale) {
    for (const char* settings : {"machine=h200,scale=16", "machine=h200,scale=64"}) {
        simulated(settings, [] {
            const Buffers a;
            const CUevent start = new_event(), end = new_event();
            gate().close(a.stream);
            a.d2h();
            OK(cuda().cuEventRecord(start, a.stream));
            for (int copy = 0; copy < 4; ++copy) {
                a.d2h();
            }
            OK(cuda().cuEventRecord(end, a.stream));
            gate().open();
            OK(cuda().cuEventSynchronize(end));
            float milliseconds = 0;
            OK(cuda().cuEventElapsedTime(&milliseconds, start, end));
            const double expected = 4 * (3500.0 + static_cast<double>(kBytes) / 55.8) / 1e6;
            EXPECT_NEAR(milliseconds / expected, 1.0, 0.02);
        });
    }
}

TEST(Timing, ChunksPayTheirGapEach) {
    simulated(kTimed, [] {
        const Buffers a;
        const auto in_chunks = [&](std::size_t chunk) {
            return run({a.stream},
                       [&] {
                           for (std::size_t at = 0; at < kBytes; at += chunk) {
                               OK(cuda().cuMemcpyDtoHAsync_v2(a.host + at, a.device + at, chunk,
                                                              a.stream));
                           }
                       })
                .length();
        };
        const double whole = in_chunks(kBytes);
        const double parts = in_chunks(kBytes / 64);
        EXPECT_GE(parts - whole, 63 * 3500.0 * kScale * 0.999);
        EXPECT_LE(parts - whole, 63 * 3500.0 * kScale * 1.05);
    });
}

TEST(Timing, TwoProcessesShareTheEnginesOfADevice) {
    const auto body = [](Channel& other) {
        const Buffers a;
        other.barrier();
        const Span mine = run({}, [&] {
            for (int copy = 0; copy < 8; ++copy) {
                a.d2h();
            }
        });
        other.send(mine);
        const Span theirs = other.receive<Span>();
        const double alone = 8 * duration(copies()[0]);
        const double both = static_cast<double>(std::max(mine.end, theirs.end) -
                                                std::min(mine.start, theirs.start));
        EXPECT_GE(both / alone, 1.99);
    };
    simulated_pair("machine=h200,scale=128", body, body);
}

TEST(Turns, AreFreeForOneProcess) {
    simulated(kTimed, [] {
        const Buffers a, b;
        run({}, [&] {
            for (int copy = 0; copy < 3; ++copy) {
                OK(cuda().cuMemcpyDtoDAsync_v2(a.device, b.device, 64, a.stream));
            }
        });
        for (const simgpu_operation& op : copies()) {
            EXPECT_LT(op.end - op.start, static_cast<std::int64_t>(kTurn / 10));
        }
    });
}

TEST(Turns, ArePaidByOperationsOfTheComputeQueueWhenTheProcessChanges) {
    // One process and then the other copies 8 B on the device; then what needs no turn.
    struct Waited {
        double d2d, small_h2d, large_h2d, two_rows, d2h;
    };
    const auto measure = [](Channel& other, bool first) {
        const Buffers a, b;
        const auto my_turn = [&](const std::function<void()>& work) {
            double waited = 0;
            for (int side = 0; side < 2; ++side) {
                if ((side == 0) == first) {
                    run({}, work);
                    waited = from_call(copies()[0]);
                }
                other.barrier();
            }
            return waited;
        };
        const auto d2d = [&] { OK(cuda().cuMemcpyDtoDAsync_v2(a.device, b.device, 8, a.stream)); };
        my_turn(d2d);
        Waited waited{};
        waited.d2d = my_turn(d2d);
        waited.small_h2d =
            my_turn([&] { OK(cuda().cuMemcpyHtoDAsync_v2(a.device, a.host, 8, a.stream)); });
        waited.large_h2d =
            my_turn([&] { OK(cuda().cuMemcpyHtoDAsync_v2(a.device, a.host, 32768, a.stream)); });
        CUDA_MEMCPY2D rows{};
        rows.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
        rows.srcDevice = reinterpret_cast<CUdeviceptr>(a.host);
        rows.srcPitch = 4;
        rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        rows.dstDevice = a.device;
        rows.dstPitch = 4;
        rows.WidthInBytes = 4;
        rows.Height = 2;
        waited.two_rows = my_turn([&] { OK(cuda().cuMemcpy2DAsync_v2(&rows, a.stream)); });
        waited.d2h =
            my_turn([&] { OK(cuda().cuMemcpyDtoHAsync_v2(a.host, a.device, 8, a.stream)); });
        EXPECT_GE(waited.d2d, kTurn);
        EXPECT_GE(waited.small_h2d, kTurn);
        EXPECT_LT(waited.large_h2d, kTurn / 2);
        EXPECT_LT(waited.two_rows, kTurn / 2);
        EXPECT_LT(waited.d2h, kTurn / 2);
    };
    simulated_pair(
        kTimed, [&](Channel& other) { measure(other, true); },
        [&](Channel& other) { measure(other, false); });
}

TEST(Timing, QueriesCostTheirCaller) {
    simulated("machine=h200,scale=100", [] {
        const CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
        const std::int64_t before = cuda().simgpu_now();
        for (int call = 0; call < 10; ++call) {
            OK(cuda().cuEventQuery(event));
        }
        EXPECT_GE(cuda().simgpu_now() - before, 10 * 135'000);
    });
}

TEST(Timing, TheFunctionalModeTakesNoModelledTime) {
    simulated("machine=h200,scale=0", [] {
        const Buffers a;
        const std::int64_t before = cuda().simgpu_now();
        run({}, [&] {
            for (int copy = 0; copy < 1000; ++copy) {
                OK(cuda().cuMemcpyDtoHAsync_v2(a.host, a.device, 8, a.stream));
            }
        });
        // 1000 copies of 7 us would be 7 ms even if nothing else cost anything.
        EXPECT_EQ(copies().size(), 1000u);
        EXPECT_LT(cuda().simgpu_now() - before, 2'000'000'000);
    });
}
