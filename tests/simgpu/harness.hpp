// SPDX-License-Identifier: BSD-3-Clause
// Tests of the simulated driver. Settings are read once per process, so every case runs in forked
// children; the test program itself never touches the driver. An expectation that fails in a child
// fails the case.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "device/cuda/driver_abi.h"
#include "simgpu.h"

// Every entry point by its symbol, and the hooks of simgpu.h.
struct Cuda {
#define GANTRY_CUDA_FUNCTION(symbol, base, version, twin, args) PFN_##symbol symbol = nullptr;
#include "device/cuda/driver_functions.def"
#undef GANTRY_CUDA_FUNCTION
    decltype(&::simgpu_calls) simgpu_calls = nullptr;
    decltype(&::simgpu_reset_calls) simgpu_reset_calls = nullptr;
    decltype(&::simgpu_now) simgpu_now = nullptr;
    decltype(&::simgpu_fault) simgpu_fault = nullptr;
    decltype(&::simgpu_operations) simgpu_operations = nullptr;
    decltype(&::simgpu_clear_operations) simgpu_clear_operations = nullptr;
    decltype(&::simgpu_take_census) simgpu_take_census = nullptr;
    decltype(&::simgpu_peek) simgpu_peek = nullptr;
};

// Loaded at the first use; not initialised. SIMGPU_LIBRARY_UNDER_TEST=libcuda.so.1 runs the cases
// on a real driver: what they say about the driver's behaviour must hold there as well.
const Cuda& cuda();
bool is_simulator();
// For cases about the simulator itself; those with settings skip by themselves.
#define NEEDS_SIMULATOR() \
    if (!is_simulator()) GTEST_SKIP() << "not about a real driver"

// Runs the body, if settings can be given, in a child where cuInit and a primary context of device
// 0 are there.
void simulated(const std::string& settings, const std::function<void()>& body);
// The same without cuInit.
void simulated_raw(const std::string& settings, const std::function<void()>& body);
// As simulated(), but the child must die of this signal.
void simulated_death(const std::string& settings, int signal, const std::function<void()>& body);

// Two children, connected. A barrier or a message waits for the other side.
class Channel {
  public:
    explicit Channel(int fd) : fd_(fd) {}
    template <class T>
    void send(const T& value) {
        send_bytes(&value, sizeof value);
    }
    template <class T>
    T receive() {
        T value{};
        receive_bytes(&value, sizeof value);
        return value;
    }
    void barrier() {
        send(char{1});
        receive<char>();
    }
    void send_fd(int fd);
    int receive_fd();

  private:
    void send_bytes(const void* data, std::size_t bytes);
    void receive_bytes(void* data, std::size_t bytes);
    int fd_;
};
void simulated_pair(const std::string& settings, const std::function<void(Channel&)>& first,
                    const std::function<void(Channel&)>& second);

// The same without cuInit.
void simulated_pair_raw(const std::string& settings, const std::function<void(Channel&)>& first,
                        const std::function<void(Channel&)>& second);

// Small helpers in a child.
#define OK(call) ASSERT_EQ((call), CUDA_SUCCESS)

CUdeviceptr device_memory(std::size_t bytes);
char* pinned_memory(std::size_t bytes);
CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent new_event(unsigned flags = CU_EVENT_DEFAULT);
// Bytes that differ everywhere, from a seed.
std::vector<char> pattern(std::size_t bytes, unsigned seed);
std::vector<char> read_back(CUdeviceptr address, std::size_t bytes);

// Work enqueued behind a closed gate starts together, however long the calls take.
struct Gate {
    unsigned* word = reinterpret_cast<unsigned*>(pinned_memory(sizeof(unsigned)));
    unsigned opened = 0;

    void close(CUstream stream) const {
        OK(cuda().cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(word), opened + 1,
                                         CU_STREAM_WAIT_VALUE_GEQ));
    }
    void open() { __atomic_store_n(word, ++opened, __ATOMIC_RELEASE); }
};
Gate& gate();  // one for the child
