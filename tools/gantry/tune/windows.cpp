// SPDX-License-Identifier: BSD-3-Clause
//
// Windows on device memory, where GDRCopy is installed: opening one, and the processor's loads and
// stores of a small message and of a large one. Elsewhere the description keeps what it had.
#include "tune.hpp"

#include "device/cuda/gdr_library.hpp"

#include <array>

namespace gantry::tool {
namespace {

using device::cuda::GdrLibrary;

constexpr Bytes kSmall = 8;
// The largest messages that anybody would read or write so.
constexpr Bytes kLargeRead = 4 * kKiB, kLargeWrite = 64 * kKiB;

struct Line {  // time = fixed + bytes / rate
    double fixed_ns, bytes_per_second;
};

template <class Move>
Line line_of(Bytes large, const Move& move) {
    const auto time = [&](Bytes bytes) { return time_of(101, [&] { move(bytes); }); };
    time(large);  // warm
    const double small_ns = time(kSmall), large_ns = time(large);
    const double ns_per_byte =
        std::max(large_ns - small_ns, 1.0) / static_cast<double>(large - kSmall);
    return {std::max(small_ns - kSmall * ns_per_byte, 1.0), 1e9 / ns_per_byte};
}

void must(const Status& status) {
    if (!status.ok()) throw TuneFailure(std::string(status.text()));
}

}  // namespace

bool measure_windows(Cuda& cuda, model::Machine& machine, Progress& progress) {
    progress.step("windows on device memory (GDRCopy)");
    GdrLibrary library;
    if (!library.ready()) return false;
    const CUdeviceptr allocation = cuda.allocate(2 * kMiB);
    const CUdeviceptr memory = round_up(allocation, GdrLibrary::kPage);
    const auto open = [&] {
        Result<GdrLibrary::Mapping> window = library.map(memory, kLargeWrite);
        must(window.status());
        return *window;
    };
    const double opening_ns = typical_of(21, [&] {
        const double begin = now_ns();
        const GdrLibrary::Mapping window = open();
        const double took = now_ns() - begin;
        library.unmap(window);
        return took;
    });
    const GdrLibrary::Mapping window = open();
    std::array<std::byte, kLargeWrite> host{};
    const Line read = line_of(
        kLargeRead, [&](Bytes bytes) { must(library.read(window, memory, host.data(), bytes)); });
    const Line write = line_of(
        kLargeWrite, [&](Bytes bytes) { must(library.write(window, memory, host.data(), bytes)); });
    library.unmap(window);
    cuda.must(cuda.cuMemFree_v2(allocation), "cuMemFree");
    machine.gpu.window = {
        static_cast<Nanoseconds>(opening_ns), static_cast<Nanoseconds>(read.fixed_ns),
        static_cast<Nanoseconds>(write.fixed_ns), read.bytes_per_second, write.bytes_per_second};
    return true;
}

}  // namespace gantry::tool
