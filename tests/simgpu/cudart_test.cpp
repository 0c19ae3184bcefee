// SPDX-License-Identifier: BSD-3-Clause
// The CUDA runtime over the simulated driver, as programs load it: both releases.
#include <dlfcn.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "harness.hpp"

namespace {

enum Direction { host_to_device = 1, device_to_host = 2, device_to_device = 3, by_address = 4 };

struct Size {
    unsigned x, y, z;
};

class CudaRuntime : public testing::TestWithParam<int> {
  protected:
    void SetUp() override { NEEDS_SIMULATOR(); }
};

// Functions of a runtime by name.
class Runtime {
  public:
    explicit Runtime(int release) {
        const std::string library = SIMGPU_LIBRARY;
        const std::string path =
            library.substr(0, library.rfind('/')) + "/libcudart.so." + std::to_string(release);
        library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library_ == nullptr) ADD_FAILURE() << dlerror();
        version_ = "libcudart.so." + std::to_string(release);
    }
    template <class... Arguments>
    int operator()(const char* name, Arguments... arguments) const {
        auto* function = reinterpret_cast<int (*)(Arguments...)>(find(name));
        if (function == nullptr) {
            ADD_FAILURE() << "no function " << name << " of version " << version_;
            return -1;
        }
        return function(arguments...);
    }
    // Under the version that linked programs ask for.
    void* find(const char* name) const { return dlvsym(library_, name, version_.c_str()); }

  private:
    void* library_ = nullptr;
    std::string version_;
};

void* device_ints(const Runtime& run, int count) {
    void* memory = nullptr;
    EXPECT_EQ(run("cudaMalloc", &memory, sizeof(int) * static_cast<std::size_t>(count)), 0);
    return memory;
}

TEST_P(CudaRuntime, StartsWithoutAnyCallOfTheDriver) {
    simulated_raw("dev=2", [] {
        const Runtime run(GetParam());
        int count = 0, device = -1, version = 0;
        EXPECT_EQ(run("cudaGetDeviceCount", &count), 0);
        EXPECT_EQ(count, 2);
        EXPECT_EQ(run("cudaGetDevice", &device), 0);
        EXPECT_EQ(device, 0);
        EXPECT_EQ(run("cudaSetDevice", 1), 0);
        EXPECT_EQ(run("cudaGetDevice", &device), 0);
        EXPECT_EQ(device, 1);
        EXPECT_EQ(run("cudaRuntimeGetVersion", &version), 0);
        EXPECT_EQ(version / 1000, GetParam());
    });
}

TEST_P(CudaRuntime, HasNoDevicesWhereThereAreNone) {
    simulated_raw("dev=0", [] {
        const Runtime run(GetParam());
        int count = -1;
        EXPECT_EQ(run("cudaGetDeviceCount", &count), CUDA_ERROR_NO_DEVICE);
        EXPECT_EQ(count, 0);
    });
}

TEST_P(CudaRuntime, PropertiesLieWhereProgramsLookForThem) {
    simulated_raw("dev=1", [] {
        const Runtime run(GetParam());
        std::vector<unsigned char> room(2048, 0xEE);
        const std::size_t size = GetParam() == 12 ? 1032 : 1008;
        const char* name =
            GetParam() == 12 ? "cudaGetDeviceProperties_v2" : "cudaGetDeviceProperties";
        EXPECT_EQ(run(name, static_cast<void*>(room.data()), 0), 0);
        EXPECT_NE(std::strlen(reinterpret_cast<char*>(room.data())), 0u);
        std::size_t memory = 0;
        std::memcpy(&memory, room.data() + 288, sizeof memory);  // totalGlobalMem
        EXPECT_EQ(memory, std::size_t{8} << 30);
        EXPECT_EQ(room[size], 0xEE);
        EXPECT_EQ(room[size - 1], 0);
    });
}

TEST_P(CudaRuntime, CopiesTheWaysThatTheirDirectionSays) {
    simulated_raw("dev=1", [] {
        const Runtime run(GetParam());
        std::vector<int> from(64), to(64, -1);
        std::iota(from.begin(), from.end(), 0);
        const std::size_t bytes = sizeof(int) * from.size();
        void *first = device_ints(run, 64), *second = device_ints(run, 64);
        EXPECT_EQ(run("cudaMemcpy", first, static_cast<const void*>(from.data()), bytes,
                      int{host_to_device}),
                  0);
        EXPECT_EQ(run("cudaMemcpy", second, static_cast<const void*>(first), bytes,
                      int{device_to_device}),
                  0);
        EXPECT_EQ(run("cudaMemcpy", static_cast<void*>(to.data()), static_cast<const void*>(second),
                      bytes, int{device_to_host}),
                  0);
        EXPECT_EQ(to, from);
        EXPECT_EQ(run("cudaMemset", second, 0, bytes), 0);
        EXPECT_EQ(run("cudaMemcpy", static_cast<void*>(to.data()), static_cast<const void*>(second),
                      bytes, int{by_address}),
                  0);
        EXPECT_EQ(to, std::vector<int>(64, 0));
        // Wrong directions, and what the thread remembers of them.
        EXPECT_EQ(run("cudaMemcpy", first, static_cast<const void*>(from.data()), bytes, 5), 21);
        EXPECT_EQ(run("cudaPeekAtLastError"), 21);
        EXPECT_EQ(run("cudaGetLastError"), 21);
        EXPECT_EQ(run("cudaGetLastError"), 0);
        EXPECT_EQ(run("cudaFree", first), 0);
        EXPECT_EQ(run("cudaFree", second), 0);
        EXPECT_EQ(run("cudaFree", static_cast<void*>(nullptr)), 0);
        EXPECT_EQ(run("cudaFree", first), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST_P(CudaRuntime, CopiesRowsAndBoxes) {
    simulated_raw("dev=1", [] {
        const Runtime run(GetParam());
        std::vector<int> host(4 * 8);
        std::iota(host.begin(), host.end(), 0);
        void* device = device_ints(run, 64);
        EXPECT_EQ(run("cudaMemset", device, 0, std::size_t{256}), 0);
        // Columns 0 and 1 of 4 rows.
        EXPECT_EQ(run("cudaMemcpy2D", device, std::size_t{8}, static_cast<const void*>(host.data()),
                      std::size_t{32}, std::size_t{8}, std::size_t{4}, int{host_to_device}),
                  0);
        std::vector<int> columns(8);
        EXPECT_EQ(run("cudaMemcpy", static_cast<void*>(columns.data()),
                      static_cast<const void*>(device), std::size_t{32}, int{device_to_host}),
                  0);
        EXPECT_EQ(columns, (std::vector<int>{0, 1, 8, 9, 16, 17, 24, 25}));
        // A box of 1 x 2 x 2 ints at (1, 0, 0) of 2 x 2 x 2.
        struct {
            void* source_array;
            std::size_t source_at[3];
            void* source;
            std::size_t source_pitch, source_width, source_height;
            void* target_array;
            std::size_t target_at[3];
            void* target;
            std::size_t target_pitch, target_width, target_height;
            std::size_t extent[3];
            int direction;
        } box{nullptr,   {4, 0, 0},      device, 8, 2, 2,         nullptr,
              {0, 0, 0}, columns.data(), 4,      1, 2, {4, 2, 2}, device_to_host};
        columns.assign(8, -1);
        EXPECT_EQ(run("cudaMemcpy3D", static_cast<const void*>(&box)), 0);
        EXPECT_EQ(columns, (std::vector<int>{1, 9, 17, 25, -1, -1, -1, -1}));
    });
}

TEST_P(CudaRuntime, TellsWhatAPointerIs) {
    simulated_raw("dev=1", [] {
        const Runtime run(GetParam());
        void *memory[4] = {}, *ordinary = std::calloc(1, 4096);
        EXPECT_EQ(run("cudaMalloc", &memory[0], std::size_t{4096}), 0);
        EXPECT_EQ(run("cudaMallocHost", &memory[1], std::size_t{4096}), 0);
        EXPECT_EQ(run("cudaMallocManaged", &memory[2], std::size_t{4096}, 1u), 0);
        memory[3] = ordinary;
        const int expected[] = {2, 1, 3, 0};
        for (int i = 0; i < 4; ++i) {
            struct {
                int type, device;
                void *on_device, *on_host;
                long reserved[8];
            } is{};
            EXPECT_EQ(run("cudaPointerGetAttributes", static_cast<void*>(&is),
                          static_cast<const void*>(memory[i])),
                      0);
            EXPECT_EQ(is.type, expected[i]) << i;
        }
        EXPECT_EQ(run("cudaHostRegister", ordinary, std::size_t{4096}, 0u), 0);
        EXPECT_EQ(run("cudaHostUnregister", ordinary), 0);
        EXPECT_EQ(run("cudaHostUnregister", ordinary), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        EXPECT_EQ(run("cudaFreeHost", memory[1]), 0);
        EXPECT_EQ(run("cudaFree", memory[2]), 0);
        std::free(ordinary);
    });
}

TEST_P(CudaRuntime, StreamsEventsAndPoolsAreTheDrivers) {
    simulated_raw("dev=1", [] {
        const Runtime run(GetParam());
        CUstream stream = nullptr;
        CUevent event = nullptr;
        void* memory = nullptr;
        EXPECT_EQ(run("cudaStreamCreateWithFlags", &stream, 1u), 0);
        EXPECT_EQ(run("cudaEventCreateWithFlags", &event, 2u), 0);
        EXPECT_EQ(run("cudaMallocAsync", &memory, std::size_t{1 << 20}, stream), 0);
        EXPECT_EQ(run("cudaMemsetAsync", memory, 7, std::size_t{1 << 20}, stream), 0);
        EXPECT_EQ(run("cudaEventRecord", event, stream), 0);
        EXPECT_EQ(run("cudaStreamWaitEvent", static_cast<CUstream>(nullptr), event, 0u), 0);
        EXPECT_EQ(run("cudaEventSynchronize", event), 0);
        EXPECT_EQ(run("cudaStreamQuery", stream), 0);
        char byte = 0;
        EXPECT_EQ(
            run("cudaMemcpyAsync", static_cast<void*>(&byte), static_cast<const void*>(memory),
                std::size_t{1}, int{device_to_host}, stream),
            0);
        EXPECT_EQ(run("cudaStreamSynchronize", stream), 0);
        EXPECT_EQ(byte, 7);
        EXPECT_EQ(run("cudaFreeAsync", memory, stream), 0);
        EXPECT_EQ(run("cudaEventDestroy", event), 0);
        EXPECT_EQ(run("cudaStreamDestroy", stream), 0);
        EXPECT_EQ(run("cudaDeviceSynchronize"), 0);
    });
}

// What nvcc makes of add<<<2, 32>>>(data, 5, 64) with --no-compress and code=compute_XX.
constexpr char kAdd[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(\n.param .u64 add_param_0,\n.param .u32 add_param_1,\n"
    ".param .u64 add_param_2\n)\n{\nret;\n}\n";

std::vector<char> fat_binary(const char* text) {
    std::vector<char> all(16 + 64 + std::strlen(text) + 1, 0);
    const auto put = [&all](std::size_t at, auto value) {
        std::memcpy(all.data() + at, &value, sizeof value);
    };
    put(0, std::uint32_t{0xba55ed50});
    put(4, std::uint16_t{1});
    put(6, std::uint16_t{16});
    put(8, std::uint64_t{all.size() - 16});
    put(16, std::uint16_t{1});
    put(20, std::uint32_t{64});
    put(24, std::uint64_t{std::strlen(text) + 1});
    std::strcpy(all.data() + 80, text);
    return all;
}

TEST_P(CudaRuntime, LaunchesKernelsThatHaveATwin) {
    simulated_raw("dev=1", [] {
        setenv("SIMGPU_KERNELS", SIMGPU_TEST_TWINS, 1);
        const Runtime run(GetParam());
        const std::vector<char> fat = fat_binary(kAdd);
        const struct {
            std::uint32_t magic = 0x466243b1, version = 1;
            const void* fat;
            void* file = nullptr;
        } wrapper{.fat = fat.data()};
        auto* open = reinterpret_cast<void** (*)(const void*)>(run.find("__cudaRegisterFatBinary"));
        ASSERT_NE(open, nullptr);
        void** module = open(&wrapper);
        static const char host_function = 0, another = 0;
        run("__cudaRegisterFunction", module, &host_function, static_cast<char*>(nullptr), "add",
            -1, static_cast<void*>(nullptr), static_cast<void*>(nullptr),
            static_cast<void*>(nullptr), static_cast<void*>(nullptr), static_cast<int*>(nullptr));
        void* data = device_ints(run, 64);
        EXPECT_EQ(run("cudaMemset", data, 0, std::size_t{256}), 0);
        int value = 5;
        unsigned long long count = 64;
        void* arguments[] = {&data, &value, &count};
        Size grid{2, 1, 1}, block{32, 1, 1};
        std::size_t shared = 99;
        CUstream stream = nullptr;
        EXPECT_EQ(run("__cudaPushCallConfiguration", grid, block, std::size_t{0}, stream), 0);
        EXPECT_EQ(run("__cudaPopCallConfiguration", &grid, &block, &shared, &stream), 0);
        EXPECT_EQ(shared, 0u);
        const void* kernel = &host_function;
        EXPECT_EQ(run("cudaLaunchKernel", kernel, grid, block, static_cast<void**>(arguments),
                      shared, stream),
                  0);
        std::vector<int> seen(64);
        EXPECT_EQ(run("cudaMemcpy", static_cast<void*>(seen.data()), static_cast<const void*>(data),
                      std::size_t{256}, int{device_to_host}),
                  0);
        EXPECT_EQ(seen, std::vector<int>(64, 5));
        kernel = &another;
        EXPECT_EQ(run("cudaLaunchKernel", kernel, grid, block, static_cast<void**>(arguments),
                      shared, stream),
                  98);
        run("__cudaUnregisterFatBinary", module);
    });
}

TEST_P(CudaRuntime, OpensMemoryOfAnotherProcess) {
    simulated_pair(
        "dev=1",
        [](Channel& peer) {
            const Runtime run(GetParam());
            void* memory = device_ints(run, 16);
            CUipcMemHandle handle{};
            EXPECT_EQ(run("cudaMemset", memory, 3, std::size_t{64}), 0);
            EXPECT_EQ(run("cudaDeviceSynchronize"), 0);
            EXPECT_EQ(run("cudaIpcGetMemHandle", &handle, memory), 0);
            peer.send(handle);
            peer.barrier();
        },
        [](Channel& peer) {
            const Runtime run(GetParam());
            const auto handle = peer.receive<CUipcMemHandle>();
            void* memory = nullptr;
            int value = 0;
            EXPECT_EQ(run("cudaIpcOpenMemHandle", &memory, handle, 1u), 0);
            EXPECT_EQ(run("cudaMemcpy", static_cast<void*>(&value),
                          static_cast<const void*>(memory), sizeof value, int{device_to_host}),
                      0);
            EXPECT_EQ(value, 0x03030303);
            EXPECT_EQ(run("cudaIpcCloseMemHandle", memory), 0);
            peer.barrier();
        });
}

INSTANTIATE_TEST_SUITE_P(Releases, CudaRuntime, testing::Values(12, 13));

}  // namespace
