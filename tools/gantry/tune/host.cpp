// SPDX-License-Identifier: BSD-3-Clause
#include "base/streaming_copy.hpp"
#include "tune.hpp"

#include <cstring>

namespace gantry::tool {

void measure_host(model::Machine& machine, Progress& progress) {
    progress.step("copies by a processor");
    constexpr Bytes kMemory = 64 * kMiB;
    std::vector<std::byte> from(kMemory, std::byte{1}), to(kMemory, std::byte{2});
    // A small message copies the same slots again and again; a large one passes the cache.
    const auto rate = [&](Bytes bytes, Bytes span, auto copy) {
        Bytes at = 0;
        const auto one = [&] {
            copy(to.data() + at, from.data() + at, bytes);
            at = at + 2 * bytes <= span ? at + bytes : 0;
        };
        for (int warm = 0; warm < 4; ++warm)
            one();
        return static_cast<double>(bytes) / time_of(21, one) * 1e9;
    };
    const auto plain = [](std::byte* out, const std::byte* in, Bytes bytes) {
        std::memcpy(out, in, bytes);
    };
    machine.host.memcpy = model::Rate(
        std::vector<model::Rate::Point>{{256 * kKiB, rate(256 * kKiB, 256 * kKiB, plain)},
                                        {4 * kMiB, rate(4 * kMiB, kMemory, plain)}});
    machine.host.streaming = rate(4 * kMiB, kMemory, streaming_copy);
}

}  // namespace gantry::tool
