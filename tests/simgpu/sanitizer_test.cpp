// SPDX-License-Identifier: BSD-3-Clause
// Under ThreadSanitizer the simulator shows races of host code with the device's work, under
// AddressSanitizer copies that leave a host buffer. These cases exist only in such builds.
#include <stdlib.h>
#include <sys/wait.h>

#include "harness.hpp"

#ifdef __SANITIZE_ADDRESS__

TEST(Bounds, ACopyBeyondAHostBufferIsReported) {
    EXPECT_EXIT(
        {
            setenv("SIMGPU", "", 1);
            CUcontext context = nullptr;
            cuda().cuInit(0);
            cuda().cuDevicePrimaryCtxRetain(&context, 0);
            cuda().cuCtxPushCurrent_v2(context);
            auto* host = new char[64];
            cuda().cuMemcpyDtoH_v2(host, device_memory(128), 65);
            exit(0);
        },
        [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) != 0; },
        "heap-buffer-overflow");
}

#endif

#ifdef __SANITIZE_THREAD__

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// The exit status of a child that runs `body` with a wide window between start and end of every
// copy: 0, or what the sanitizer's options say when it reported something.
int status_of(const std::function<void(char* host, CUdeviceptr device, CUstream stream)>& body) {
    const pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", 1), 2);  // the report is expected
        setenv("SIMGPU", "machine=h200,scale=2000,help=0", 1);
        CUcontext context = nullptr;
        cuda().cuInit(0);
        cuda().cuDevicePrimaryCtxRetain(&context, 0);
        cuda().cuCtxPushCurrent_v2(context);
        body(pinned_memory(64), device_memory(64), new_stream());
        exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

volatile char g_sink;

}  // namespace

TEST(Races, WaitingForTheEventIsClean) {
    EXPECT_EQ(status_of([](char* host, CUdeviceptr device, CUstream stream) {
                  const CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
                  host[0] = 1;
                  cuda().cuMemcpyHtoDAsync_v2(device, host, 64, stream);
                  cuda().cuMemcpyDtoHAsync_v2(host, device, 64, stream);
                  cuda().cuEventRecord(event, stream);
                  while (cuda().cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
                  }
                  g_sink = host[0];
                  host[0] = 2;
              }),
              0);
}

TEST(Races, PollingAWrittenFlagWithAcquireIsClean) {
    EXPECT_EQ(status_of([](char* host, CUdeviceptr device, CUstream stream) {
                  auto* flag = reinterpret_cast<unsigned*>(pinned_memory(64));
                  cuda().cuMemcpyDtoHAsync_v2(host, device, 64, stream);
                  cuda().cuStreamWriteValue32_v2(stream, reinterpret_cast<CUdeviceptr>(flag), 1, 0);
                  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 1) {
                  }
                  g_sink = host[0];
              }),
              0);
}

TEST(Races, ReadingTheTargetBeforeTheCopyIsDoneIsReported) {
    EXPECT_NE(status_of([](char* host, CUdeviceptr device, CUstream stream) {
                  cuda().cuMemcpyDtoHAsync_v2(host, device, 64, stream);
                  g_sink = host[0];
                  cuda().cuStreamSynchronize(stream);
              }),
              0);
}

TEST(Races, OverwritingTheSourceTooEarlyIsReported) {
    EXPECT_NE(status_of([](char* host, CUdeviceptr device, CUstream stream) {
                  cuda().cuMemcpyHtoDAsync_v2(device, host, 64, stream);
                  host[5] = 1;
                  cuda().cuStreamSynchronize(stream);
              }),
              0);
}

#endif
