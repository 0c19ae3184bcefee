// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory of our own: what is borrowed, kept, and lost with its context.
#include "cuda_fixture.hpp"

namespace gantry::device {
namespace {

using testing_support::address;
using testing_support::pointer;

struct CudaScratch : testing_support::CudaTest {
    static constexpr Bytes kBytes = Bytes{3} << 20;
    CUdeviceptr like = 0;

    void SetUp() override {
        CudaTest::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) like = allocate(kBytes);
    }
    void* borrow(Bytes bytes) { return cuda->borrow(pointer(like), bytes); }
    // After a reset: the first may find out that the context is another one now.
    void* borrow_again() {
        reset_context();
        like = allocate(kBytes);
        write(like, pattern(kBytes));
        if (void* const first = borrow(kBytes)) return first;
        EXPECT_TRUE(copy({pointer(like + kMiB), pointer(like), 64, 0, Engine::d2d}).ok());
        return borrow(kBytes);
    }
    // That it is memory of this GPU, which copies reach.
    void use(void* borrowed) {
        write(like, pattern(kBytes));
        const Location location = classify(borrowed, kBytes);
        EXPECT_TRUE(location.on_device());
        EXPECT_EQ(location.gpu, classify(pointer(like), kBytes).gpu);
        EXPECT_TRUE(copy({borrowed, pointer(like), kBytes, 0, Engine::d2d}).ok());
        EXPECT_EQ(read(address(borrowed), kBytes), pattern(kBytes));
    }
};

TEST_F(CudaScratch, IsLentOnceAtATimeAndKept) {
    void* const first = borrow(kBytes);
    ASSERT_NE(first, nullptr);
    use(first);
    void* const second = borrow(kBytes);
    ASSERT_NE(second, nullptr);
    EXPECT_NE(first, second);
    const std::uint64_t setups = cuda->calls().setups;
    cuda->give_back(first);
    EXPECT_EQ(borrow(kBytes - 1000), first) << "a smaller one fits, too";
    cuda->give_back(second);
    cuda->give_back(first);
    EXPECT_EQ(cuda->calls().setups, setups);
}

TEST_F(CudaScratch, IsNotMoreThanTheProgramAllows) {
    config.device_scratch = 8 * kMiB;
    make_device();
    void* const first = borrow(kBytes);  // of 4 MiB
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(borrow(5 * kMiB), nullptr);
    EXPECT_NE(borrow(kBytes), nullptr);
    EXPECT_EQ(borrow(8), nullptr);
    cuda->give_back(first);
    EXPECT_EQ(borrow(8), first) << "rather than none";
    config.device_scratch = 0;
    make_device();
    EXPECT_EQ(borrow(8), nullptr);
}

TEST_F(CudaScratch, ThatTheDriverRefusesIsNotThere) {
    if (gpu.simgpu_fault == nullptr) GTEST_SKIP() << "needs fault injection";
    ASSERT_EQ(gpu.simgpu_fault("cuMemAlloc_v2:1:2"), 0);
    EXPECT_EQ(borrow(kBytes), nullptr);
    gpu.simgpu_fault(nullptr);
    // Asking is dear, and goes on for a while without the driver.
    const std::uint64_t setups = cuda->calls().setups;
    void* later = nullptr;
    int times = 0;
    while (later == nullptr && ++times < 1000) {
        EXPECT_EQ(cuda->calls().setups, setups);
        later = borrow(kBytes);
    }
    ASSERT_NE(later, nullptr);
    EXPECT_GT(times, 10);
    use(later);
}

TEST_F(CudaScratch, OfHostMemoryThereIsNone) {
    std::vector<std::byte> host(64);
    EXPECT_EQ(cuda->borrow(host.data(), 64), nullptr);
}

TEST_F(CudaScratch, GoesWithItsContext) {
    void* const before = borrow(kBytes);
    ASSERT_NE(before, nullptr);
    use(before);
    cuda->give_back(before);
    void* const after = borrow_again();
    ASSERT_NE(after, nullptr);
    use(after);
}

// A block whose context went while it was lent is not lent again, nor the one that came to its address
// given back by its old user.
TEST_F(CudaScratch, ThatWentWhileItWasLentIsForgotten) {
    void* const before = borrow(kBytes);
    ASSERT_NE(before, nullptr);
    void* const after = borrow_again();
    ASSERT_NE(after, nullptr);
    cuda->give_back(before);
    EXPECT_NE(borrow(kBytes), after);
}

TEST_F(CudaScratch, IsFreedAtTheEnd) {
    void* const borrowed = borrow(kBytes);
    ASSERT_NE(borrowed, nullptr);
    cuda->give_back(borrowed);
    CUcontext owner = nullptr;
    ASSERT_EQ(gpu.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address(borrowed)),
              CUDA_SUCCESS);
    cuda.reset();
    EXPECT_NE(gpu.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address(borrowed)),
              CUDA_SUCCESS);
}

}  // namespace
}  // namespace gantry::device
