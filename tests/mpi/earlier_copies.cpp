// SPDX-License-Identifier: BSD-3-Clause
//
// The first call with an allocation: what the program has copied there before, plainly, is on its way in
// the default stream.
#include "gpu.hpp"
#include "test.hpp"

#include <atomic>
#include <thread>

using namespace mpi_tests;

namespace {

constexpr int kBytes = 4096, kLarge = 1 << 20;
constexpr Kind kKinds[] = {Kind::device, Kind::pool, Kind::shared_pool, Kind::vmm};

void wait_for(void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load())
        std::this_thread::yield();
}

}  // namespace

MPI_CASE(what_was_copied_before_the_first_call_is_sent, 2) {
    only_on_the_simulator("a real GPU does not say when it is asked");
    for (const Kind kind : kKinds) {
        about(name(kind));
        if (rank() == 1) {
            std::vector<std::byte> got(kBytes);
            OK(MPI_Recv(got.data(), kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (std::size_t i = 0; i < kBytes; ++i)
                if (got[i] != pattern(9, i)) {
                    fail(__FILE__, __LINE__, "old bytes were sent");
                    break;
                }
            continue;
        }
        Memory memory(kind, kBytes);
        memory.fill(1);
        std::vector<std::byte> pageable(kBytes);
        for (std::size_t i = 0; i < kBytes; ++i)
            pageable[i] = pattern(9, i);
        std::atomic<bool> goes_on{false};
        const auto launch = gpu().get<CUresult(CUstream, CUhostFn, void*)>("cuLaunchHostFunc");
        const auto copy =
            gpu().get<CUresult(CUdeviceptr, const void*, std::size_t)>("cuMemcpyHtoD_v2");
        CHECK_EQ(launch(nullptr, wait_for, &goes_on), CUDA_SUCCESS);
        CHECK_EQ(copy(reinterpret_cast<CUdeviceptr>(memory.data()), pageable.data(), kBytes),
                 CUDA_SUCCESS);
        reset_calls();
        // The default stream goes on when Gantry has told the driver of the allocation.
        std::thread watcher([&goes_on] {
            while (calls("cuPointerSetAttribute") == 0)
                std::this_thread::yield();
            goes_on = true;
        });
        OK(MPI_Send(memory.data(), kBytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        watcher.join();
        CHECK(calls("cuStreamSynchronize") >= 1);
        // Once.
        reset_calls();
        for (int i = 0; i < 3; ++i)
            OK(MPI_Sendrecv(memory.data(), 1, MPI_BYTE, 0, 2, pageable.data(), 1, MPI_BYTE, 0, 2,
                            MPI_COMM_SELF, MPI_STATUS_IGNORE));
        CHECK_EQ(calls("cuStreamIsCapturing"), 0);
    }
    about("");
}

// A capture of a stream that goes on while MPI is called.
class Capture {
  public:
    explicit Capture(unsigned flags) {
        CHECK_EQ(gpu().get<CUresult(CUstream*, unsigned)>("cuStreamCreate")(&stream_, flags),
                 CUDA_SUCCESS);
        CHECK_EQ(gpu().get<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2")(
                     stream_, CU_STREAM_CAPTURE_MODE_GLOBAL),
                 CUDA_SUCCESS);
    }
    void end() {
        CUgraph graph = nullptr;
        CHECK_EQ(gpu().get<CUresult(CUstream, CUgraph*)>("cuStreamEndCapture")(stream_, &graph),
                 CUDA_SUCCESS);
        if (graph != nullptr)
            CHECK_EQ(gpu().get<CUresult(CUgraph)>("cuGraphDestroy")(graph), CUDA_SUCCESS);
        CHECK_EQ(gpu().get<CUresult(CUstream)>("cuStreamDestroy_v2")(stream_), CUDA_SUCCESS);
    }

  private:
    CUstream stream_ = nullptr;
};

constexpr unsigned kStreams[] = {0, CU_STREAM_NON_BLOCKING};

MPI_CASE(a_capture_goes_on_through_the_first_call, 1) {
    (void)gpu();
    for (const Kind kind : kKinds) {
        about(name(kind));
        for (const unsigned flags : kStreams) {
            Memory memory(kind, kBytes);
            memory.fill(3);
            Capture capture(flags);
            std::vector<std::byte> got(kBytes);
            OK(MPI_Sendrecv(memory.data(), kBytes, MPI_BYTE, 0, 1, got.data(), kBytes, MPI_BYTE, 0,
                            1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
            capture.end();
            CHECK(got[17] == pattern(3, 17));
        }
    }
    about("");
}

// From the first one on, which sets everything up, to those that a persistent kernel may take.
MPI_CASE(a_capture_goes_on_through_the_messages_of_two_ranks, 2) {
    const int device = rank() % gpu().count;
    use_device(device);
    for (const Kind kind : kKinds) {
        about(name(kind));
        for (const unsigned flags : kStreams) {
            Memory mine(kind, kLarge, device), theirs(kind, kLarge, device);
            mine.fill(static_cast<unsigned>(rank()) + 1);
            Capture capture(flags);
            for (const int bytes : {8, kBytes, kLarge})
                for (int i = 0; i < 40; ++i)
                    OK(MPI_Sendrecv(mine.data(), bytes, MPI_BYTE, 1 - rank(), 0, theirs.data(),
                                    bytes, MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD,
                                    MPI_STATUS_IGNORE));
            MPI_Datatype column;
            OK(MPI_Type_vector(100, 1, 8, MPI_DOUBLE, &column));
            OK(MPI_Type_commit(&column));
            for (int i = 0; i < 40; ++i) {
                int at = 0;
                OK(MPI_Pack(mine.data(), 1, column, theirs.data(), kLarge, &at, MPI_COMM_WORLD));
            }
            OK(MPI_Type_free(&column));
            capture.end();
            // The column is what the pack left there; behind it lies what came.
            constexpr std::size_t kBehind = 100 * sizeof(double);
            std::vector<std::byte> got(kLarge);
            theirs.read(got.data(), got.size());
            for (std::size_t i = kBehind; i < got.size(); ++i)
                if (got[i] != pattern(2 - static_cast<unsigned>(rank()), i)) {
                    fail(__FILE__, __LINE__, "wrong bytes came");
                    break;
                }
        }
    }
    about("");
}
