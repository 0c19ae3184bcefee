// SPDX-License-Identifier: BSD-3-Clause
//
// Where vectors of device memory are reduced: short ones on the host, long ones on their GPU.
#include "plan/reduce_place.hpp"

#include "device/machine_facts.hpp"
#include "model/machine.hpp"

#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

device::GpuFacts facts(const char* machine) {
    Result<model::Machine> loaded = model::load(machine);
    EXPECT_TRUE(loaded.ok());
    return device::gpu_facts(*loaded);
}

ReduceQuestion both_on_device(Bytes bytes, bool direct = true) {
    return {bytes, 1, true, true, direct, false};
}

// The first power of two that is reduced on the GPU; 0: none up to 1 GiB.
Bytes first_on_gpu(const device::GpuFacts& gpu, ReduceQuestion question) {
    for (question.bytes = 8; question.bytes <= kGiB; question.bytes *= 2)
        if (reduce_place(gpu, question) == ReducePlace::gpu) return question.bytes;
    return 0;
}

TEST(ReducePlace, ShortVectorsGoToTheHostAndLongOnesStay) {
    for (const char* machine : {"h200", "c2050-qdr"}) {
        const device::GpuFacts gpu = facts(machine);
        for (const bool direct : {true, false}) {
            const Bytes first = first_on_gpu(gpu, both_on_device(0, direct));
            EXPECT_GT(first, 4 * kKiB) << machine << (direct ? ", direct" : ", by slots");
            EXPECT_LE(first, 4 * kMiB) << machine << (direct ? ", direct" : ", by slots");
            for (Bytes bytes = first; bytes != 0 && bytes <= kGiB; bytes *= 2)
                EXPECT_EQ(reduce_place(gpu, both_on_device(bytes, direct)), ReducePlace::gpu)
                    << machine << ", " << bytes << " bytes";
        }
    }
}

TEST(ReducePlace, ATimeSliceMakesTheGpuDearer) {
    const device::GpuFacts gpu = facts("h200");
    ReduceQuestion alone = both_on_device(0), shared = alone;
    shared.time_sliced = true;
    EXPECT_GT(first_on_gpu(gpu, shared), first_on_gpu(gpu, alone));
}

TEST(ReducePlace, TheUserMayFixIt) {
    const device::GpuFacts gpu = facts("h200");
    EXPECT_EQ(reduce_place(gpu, both_on_device(8), "gpu"), ReducePlace::gpu);
    EXPECT_EQ(reduce_place(gpu, both_on_device(kGiB), "host"), ReducePlace::host);
}

}  // namespace
}  // namespace gantry::plan
