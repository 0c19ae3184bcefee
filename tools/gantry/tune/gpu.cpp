// SPDX-License-Identifier: BSD-3-Clause
#include "tune.hpp"

#include <sched.h>

#include <array>
#include <cmath>
#include <functional>

namespace gantry::tool {

namespace {

constexpr Bytes kLargest = 64 * kMiB;
constexpr double kLongestCopy = 60e6;  // ns; larger copies are left out
constexpr int kInARow = 8;

using Start = std::function<void(Bytes)>;

Nanoseconds whole(double ns) {
    return static_cast<Nanoseconds>(std::llround(std::max(ns, 0.0)));
}

struct Lane {
    Cuda& cuda;
    CUstream stream;
    double query;  // what one look costs: half of one is in every time
    double once(const Start& start, Bytes bytes) const {
        const double begin = now_ns();
        start(bytes);
        cuda.wait(stream);
        return now_ns() - begin - query / 2;
    }
};

// Latency, price of one more, and the rates from where the bytes count.
model::CopyCost measure_copy(const Lane& lane, const Start& start, const std::string& name,
                             std::vector<CopyCurve>& curves) {
    CopyCurve curve{name, {}};
    model::CopyCost cost;
    const auto time = [&](Bytes bytes, int samples) {
        return typical_of(samples, [&] { return lane.once(start, bytes); });
    };
    for (int warm = 0; warm < 8; ++warm)
        lane.once(start, kMiB);
    const double latency = time(8, 41);
    cost.latency = whole(latency);
    const double row = typical_of(31, [&] {
        const double begin = now_ns();
        for (int i = 0; i < kInARow; ++i)
            start(8);
        lane.cuda.wait(lane.stream);
        return now_ns() - begin;
    });
    cost.gap = std::min(whole((row - latency) / (kInARow - 1)), cost.latency);
    std::vector<model::Rate::Point> points;
    curve.time_ns.push_back({8, latency});
    for (Bytes bytes = 4 * kKiB; bytes <= kLargest; bytes *= 4) {
        for (int warm = 0; warm < 2; ++warm)
            lane.once(start, bytes);
        const double took = time(bytes, bytes >= 16 * kMiB ? 5 : 11);
        curve.time_ns.push_back({bytes, took});
        // Below, the bytes are lost in the latency's noise.
        if (took - latency > latency / 2)
            points.push_back({bytes, static_cast<double>(bytes) / (took - latency) * 1e9});
        if (took > kLongestCopy) break;
    }
    // A copy of the planner's size lies between two points: keep those that say something new.
    std::vector<model::Rate::Point> kept;
    for (const model::Rate::Point& point : points)
        if (kept.empty() ||
            std::abs(point.bytes_per_second / kept.back().bytes_per_second - 1) > 0.05)
            kept.push_back(point);
    cost.rate = model::Rate(std::move(kept));
    curves.push_back(std::move(curve));
    return cost;
}

CUDA_MEMCPY2D two_rows(CUdeviceptr to, const std::byte* from, Bytes bytes) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = to;
    copy.WidthInBytes = copy.srcPitch = copy.dstPitch = std::max<Bytes>(bytes / 2, 1);
    copy.Height = 2;
    return copy;
}

// Narrow rows between device memory and packed host memory.
CUDA_MEMCPY2D narrow_rows(CUdeviceptr device, std::byte* packed, bool out, Bytes bytes) {
    constexpr Bytes kWidth = 8;
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = out ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy.dstMemoryType = out ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = copy.dstDevice = device;
    copy.srcHost = copy.dstHost = packed;
    copy.srcPitch = out ? 2 * kWidth : kWidth;
    copy.dstPitch = out ? kWidth : 2 * kWidth;
    copy.WidthInBytes = kWidth;
    copy.Height = bytes / kWidth;
    return copy;
}

// What each row adds to the time of a copy of so many bytes.
double price_of_row(const Lane& lane, CUdeviceptr device, std::byte* packed, bool out,
                    const Start& plain) {
    constexpr Bytes kBytes = 128 * kKiB;
    const CUDA_MEMCPY2D rows = narrow_rows(device, packed, out, kBytes);
    const Start by_rows = [&](Bytes) {
        lane.cuda.must(lane.cuda.cuMemcpy2DAsync_v2(&rows, lane.stream), "cuMemcpy2DAsync");
    };
    const auto time = [&](const Start& start) {
        lane.once(start, kBytes);
        return typical_of(11, [&] { return lane.once(start, kBytes); });
    };
    const double more = time(by_rows) - time(plain);
    return std::max(more, 0.0) / static_cast<double>(rows.Height);
}

// What a piece of a staged message costs beyond its bytes, where the copies out of a device and into
// one overlap, each with an event that says when it has ended: two to four times what a copy costs
// that is one of many in a row (H100: 4.9 us, 1.5 in a row).
Nanoseconds price_of_piece(Cuda& cuda, CUdeviceptr memory, std::byte* pinned,
                           const model::Gpu& described) {
    constexpr Bytes kPiece = 256 * kKiB;
    constexpr std::size_t kFew = 4, kMany = 12;
    CUstream out = cuda.stream(), in = cuda.stream();
    std::vector<CUevent> events(kMany);
    for (CUevent& event : events)
        cuda.must(cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    const auto time_of_pieces = [&](std::size_t pieces) {
        return typical_of(31, [&] {
            const double begin = now_ns();
            for (std::size_t i = 0; i < pieces; ++i) {
                cuda.cuMemcpyDtoHAsync_v2(pinned + i * kPiece, memory, kPiece, out);
                cuda.cuEventRecord(events[i], out);
            }
            for (std::size_t i = 0; i < pieces; ++i) {
                while (cuda.cuEventQuery(events[i]) == CUDA_ERROR_NOT_READY) {
                }
                cuda.cuMemcpyHtoDAsync_v2(memory + kLargest / 2, pinned + i * kPiece, kPiece, in);
                cuda.cuEventRecord(events[i], in);
            }
            cuda.wait(in);
            return now_ns() - begin;
        });
    };
    time_of_pieces(kMany);
    const double each =
        (time_of_pieces(kMany) - time_of_pieces(kFew)) / static_cast<double>(kMany - kFew);
    for (CUevent event : events)
        cuda.cuEventDestroy_v2(event);
    const Nanoseconds bytes =
        std::max(described.d2h.rate.time(kPiece), described.h2d.rate.time(kPiece));
    return std::clamp(whole(each) - bytes, described.d2h.gap, described.d2h.latency);
}

// Looks all the time, and lets others run when it lasts: a simulated device is a thread beside us.
void wait_for(const volatile std::uint32_t* flag, std::uint32_t value) {
    constexpr double kPatience = 20e3;
    const double begin = now_ns();
    while (*flag != value)
        if (now_ns() - begin > kPatience) sched_yield();
}

// How the end of a copy of 8 bytes is seen: by a flag that the stream writes behind it, or by asking
// for its event.
class Ends {
  public:
    Ends(Cuda& cuda, CUstream stream, CUevent event, std::byte* flag)
        : cuda_(cuda),
          stream_(stream),
          event_(event),
          flag_(reinterpret_cast<volatile std::uint32_t*>(flag)) {
        *flag_ = 0;
        until_flag([] {});
    }
    Nanoseconds write_value() {
        return whole(typical_of(21, [&] { return until_flag([] {}); }));
    }
    // What asking for the event takes, on the scale of what a flag does: that, and how much later
    // than by the flag an end is seen. Never 0, which is "not known".
    Nanoseconds event_seen(Nanoseconds write_value, const std::function<void()>& copy) {
        const auto typical = [&](bool by_event) {
            return typical_of(41, [&] {
                const double took = by_event ? until_event(copy) : until_flag(copy);
                cuda_.wait(stream_);
                return took;
            });
        };
        const double by_event = typical(true), by_flag = typical(false);
        return std::max<Nanoseconds>(whole(static_cast<double>(write_value) + by_event - by_flag),
                                     1);
    }

  private:
    double until_flag(const std::function<void()>& copy) {
        ++value_;
        const double begin = now_ns();
        copy();
        cuda_.cuStreamWriteValue32_v2(
            stream_, static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(flag_)), value_, 0);
        wait_for(flag_, value_);
        return now_ns() - begin;
    }
    double until_event(const std::function<void()>& copy) {
        const double begin = now_ns();
        copy();
        cuda_.cuEventRecord(event_, stream_);
        while (cuda_.cuEventQuery(event_) == CUDA_ERROR_NOT_READY) {
        }
        return now_ns() - begin;
    }

    Cuda& cuda_;
    CUstream stream_;
    CUevent event_;
    volatile std::uint32_t* flag_;
    std::uint32_t value_ = 0;
};

void measure_calls(Cuda& cuda, CUstream stream, CUdeviceptr memory, std::byte* pinned,
                   model::CallCost& calls) {
    CUevent event = nullptr;
    cuda.must(cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    const auto each = [&](const std::function<void()>& action) {
        return whole(typical_of(21, [&] {
            const double took = time_of(1, action);
            cuda.wait(stream);
            return took;
        }));
    };
    calls.copy = each([&] { cuda.cuMemcpyDtoHAsync_v2(pinned, memory, 8, stream); });
    calls.event_record = each([&] { cuda.cuEventRecord(event, stream); });
    calls.event_query = each([&] { cuda.cuEventQuery(event); });
    cuda.cuMemcpyDtoHAsync_v2(pinned, memory, kLargest, stream);
    cuda.cuEventRecord(event, stream);
    calls.event_query_vain = whole(time_of(21, [&] { cuda.cuEventQuery(event); }));
    cuda.wait(stream);
    Ends ends(cuda, stream, event, pinned + kMiB);
    calls.write_value = ends.write_value();
    calls.host_event_seen = ends.event_seen(
        calls.write_value, [&] { cuda.cuMemcpyDtoHAsync_v2(pinned, memory, 8, stream); });
    calls.d2d_event_seen = ends.event_seen(
        calls.write_value, [&] { cuda.cuMemcpyDtoDAsync_v2(memory + kMiB, memory, 8, stream); });
    unsigned long long id = 0;
    const auto ask = [&](std::uintptr_t address) {
        cuda.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                   static_cast<CUdeviceptr>(address));
    };
    calls.classify_device = each([&] { ask(memory); });
    static int host_variable;
    calls.classify_host = each([&] { ask(reinterpret_cast<std::uintptr_t>(&host_variable)); });
    calls.allocate = whole(typical_of(9, [&] {
        CUdeviceptr fresh = 0;
        const double took = time_of(1, [&] { fresh = cuda.allocate(4 * kMiB); });
        cuda.cuMemFree_v2(fresh);
        return took;
    }));
    std::vector<std::byte> host(4 * kMiB);
    calls.register_host = whole(typical_of(9, [&] {
        const double took =
            time_of(1, [&] { cuda.cuMemHostRegister_v2(host.data(), host.size(), 0); });
        cuda.cuMemHostUnregister(host.data());
        return took;
    }));
    CUipcMemHandle handle{};
    calls.ipc_export = each([&] { cuda.cuIpcGetMemHandle(&handle, memory); });
}

// What each copy behind the first of one call adds; as it was where the driver makes no such call.
Nanoseconds further_copy(const Lane& lane, CUdeviceptr to, CUdeviceptr from,
                         Nanoseconds otherwise) {
    constexpr std::size_t kCopies = 9, kBytes = 8;
    if (lane.cuda.cuMemcpyBatchAsync == nullptr) return otherwise;
    std::array<CUdeviceptr, kCopies> targets{}, sources{};
    std::array<std::size_t, kCopies> bytes{};
    for (std::size_t i = 0; i < kCopies; ++i) {
        targets[i] = to + i * 4 * kKiB;
        sources[i] = from + i * 4 * kKiB;
        bytes[i] = kBytes;
    }
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    bool refused = false;
    const auto together = [&](std::size_t copies) {
        return typical_of(31, [&] {
            return lane.once(
                [&](Bytes) {
                    std::size_t of_all = 0, failed = 0;
                    if (lane.cuda.cuMemcpyBatchAsync(targets.data(), sources.data(), bytes.data(),
                                                     copies, &attributes, &of_all, 1, &failed,
                                                     lane.stream) != CUDA_SUCCESS)
                        refused = true;
                },
                0);
        });
    };
    const double one = together(1), all = together(kCopies);
    return refused ? otherwise : whole((all - one) / (kCopies - 1));
}

}  // namespace

void measure_gpu(Cuda& cuda, int gpu, int other_gpu, model::Machine& machine,
                 std::vector<CopyCurve>& curves, Progress& progress) {
    model::Gpu& described = machine.gpu;
    cuda.use(gpu);
    CUstream stream = cuda.stream();
    const CUdeviceptr memory = cuda.allocate(kLargest), second = cuda.allocate(kLargest);
    std::byte* pinned = cuda.allocate_host(kLargest);
    std::vector<std::byte> pageable(kLargest);
    std::fill(pageable.begin(), pageable.end(), std::byte{1});
    cuda.wait(stream);
    const double query = time_of(101, [&] { cuda.cuStreamQuery(stream); });
    Lane lane{cuda, stream, query};

    progress.step("driver calls");
    measure_calls(cuda, stream, memory, pinned, described.calls);
    const auto copy = [&](const char* name, const Start& start) {
        progress.step(name);
        return measure_copy(lane, start, name, curves);
    };
    const Start d2h = [&](Bytes bytes) {
        cuda.must(cuda.cuMemcpyDtoHAsync_v2(pinned, memory, bytes, stream), "cuMemcpyDtoHAsync");
    };
    described.d2h = copy("device to host", d2h);
    described.d2h.row = price_of_row(lane, memory, pinned, true, d2h);
    described.h2d = copy("host to device", [&](Bytes bytes) {
        cuda.must(cuda.cuMemcpyHtoDAsync_v2(memory, pinned, bytes, stream), "cuMemcpyHtoDAsync");
    });
    progress.step("pieces out and in");
    described.d2h.gap = price_of_piece(cuda, memory, pinned, described);
    const Start h2d_2d = [&](Bytes bytes) {
        const CUDA_MEMCPY2D rows = two_rows(memory, pinned, bytes);
        cuda.must(cuda.cuMemcpy2DAsync_v2(&rows, stream), "cuMemcpy2DAsync");
    };
    described.h2d_2d = copy("host to device, two rows", h2d_2d);
    described.h2d.row = described.h2d_2d.row = price_of_row(lane, memory, pinned, false, h2d_2d);
    described.d2d = copy("inside the device", [&](Bytes bytes) {
        cuda.must(cuda.cuMemcpyDtoDAsync_v2(second, memory, bytes, stream), "cuMemcpyDtoDAsync");
    });
    described.d2d.turn_below = model::kAlwaysTurn;
    described.pageable_d2h = copy("device to pageable host", [&](Bytes bytes) {
        cuda.must(cuda.cuMemcpyDtoHAsync_v2(pageable.data(), memory, bytes, stream),
                  "cuMemcpyDtoHAsync");
    });
    described.pageable_h2d = copy("pageable host to device", [&](Bytes bytes) {
        cuda.must(cuda.cuMemcpyHtoDAsync_v2(memory, pageable.data(), bytes, stream),
                  "cuMemcpyHtoDAsync");
    });
    described.fill = copy("fill", [&](Bytes bytes) {
        cuda.must(cuda.cuMemsetD8Async(memory, 0, bytes, stream), "cuMemsetD8Async");
    });
    described.fill.turn_below = model::kAlwaysTurn;

    progress.step("kernel");
    CUfunction kernel = cuda.kernel();
    const bool runs = kernel != nullptr && cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream,
                                                               nullptr, nullptr) == CUDA_SUCCESS;
    cuda.wait(stream);
    if (runs) {
        described.calls.launch = whole(typical_of(21, [&] {
            const double took = time_of(1, [&] {
                cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr);
            });
            cuda.wait(stream);
            return took;
        }));
        described.kernel.latency = whole(typical_of(21, [&] {
            return lane.once(
                [&](Bytes) {
                    cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr);
                },
                0);
        }));
    }
    measure_resident(cuda, stream, second, memory, pinned, described.kernel);

    int reaches = 0;
    if (other_gpu >= 0) cuda.cuDeviceCanAccessPeer(&reaches, gpu, other_gpu);
    if (other_gpu >= 0) machine.peer_access = reaches != 0;
    if (reaches == 0) return;
    CUcontext here = nullptr, there = nullptr;
    cuda.must(cuda.cuDevicePrimaryCtxRetain(&here, gpu), "cuDevicePrimaryCtxRetain");
    cuda.use(other_gpu);
    cuda.must(cuda.cuDevicePrimaryCtxRetain(&there, other_gpu), "cuDevicePrimaryCtxRetain");
    cuda.cuCtxEnablePeerAccess(here, 0);
    const CUdeviceptr far = cuda.allocate(kLargest);
    CUstream far_stream = cuda.stream();
    cuda.use(gpu);
    cuda.cuCtxEnablePeerAccess(there, 0);
    described.peer = copy("to the other device (put)", [&](Bytes bytes) {
        cuda.must(cuda.cuMemcpyPeerAsync(far, there, memory, here, bytes, stream),
                  "cuMemcpyPeerAsync");
    });
    described.calls.further_copy = further_copy(lane, far, memory, described.calls.further_copy);
    CUevent event = nullptr;
    cuda.must(cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    Ends ends(cuda, stream, event, pinned + kMiB);
    described.calls.event_seen = ends.event_seen(described.calls.write_value, [&] {
        cuda.cuMemcpyPeerAsync(far, there, memory, here, 8, stream);
    });
    cuda.cuEventDestroy_v2(event);
    cuda.use(other_gpu);
    lane.stream = far_stream;
    described.peer_get = copy("from the other device (get)", [&](Bytes bytes) {
        cuda.must(cuda.cuMemcpyPeerAsync(far, there, memory, here, bytes, far_stream),
                  "cuMemcpyPeerAsync");
    });
    cuda.use(gpu);
}

}  // namespace gantry::tool
