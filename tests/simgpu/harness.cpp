// SPDX-License-Identifier: BSD-3-Clause
#include "harness.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace {

template <class Function>
void find(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));  // an older driver lacks some
}

enum class Start { initialised, raw };

// Never returns.
[[noreturn]] void be_child(const std::string& settings, Start start,
                           const std::function<void()>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("SIMGPU", settings.c_str(), 1);
    if (start == Start::initialised) {
        CUcontext context = nullptr;
        EXPECT_EQ(cuda().cuInit(0), CUDA_SUCCESS);
        EXPECT_EQ(cuda().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        EXPECT_EQ(cuda().cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    }
    if (!testing::Test::HasFailure()) {
        body();
    }
    fflush(nullptr);
    // exit, not _exit: what happens at the end of a process is tested too.
    exit(testing::Test::HasFailure() ? 1 : 0);
}

std::string unique_run(const std::string& settings) {
    static int number = 0;
    return settings + (settings.empty() ? "" : ",") + "run=test" + std::to_string(getpid()) + "-" +
           std::to_string(++number);
}

pid_t spawn(const std::string& settings, Start start, const std::function<void()>& body) {
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        be_child(settings, start, body);
    }
    return child;
}

void expect_success(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "died of signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace

const Cuda& cuda() {
    static const Cuda functions = [] {
        Cuda found;
        const char* path = getenv("SIMGPU_LIBRARY_UNDER_TEST");
        void* library = dlopen(path != nullptr ? path : SIMGPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            fprintf(stderr, "%s\n", dlerror());
            abort();
        }
#define GANTRY_CUDA_FUNCTION(symbol, base, version, twin, args) \
    find(library, #symbol, &found.symbol);
#include "device/cuda/driver_functions.def"
#undef GANTRY_CUDA_FUNCTION
        find(library, "simgpu_calls", &found.simgpu_calls);
        find(library, "simgpu_reset_calls", &found.simgpu_reset_calls);
        find(library, "simgpu_now", &found.simgpu_now);
        find(library, "simgpu_fault", &found.simgpu_fault);
        find(library, "simgpu_operations", &found.simgpu_operations);
        find(library, "simgpu_clear_operations", &found.simgpu_clear_operations);
        find(library, "simgpu_take_census", &found.simgpu_take_census);
        find(library, "simgpu_peek", &found.simgpu_peek);
        return found;
    }();
    return functions;
}

bool is_simulator() {
    return cuda().simgpu_calls != nullptr;
}

#define SKIP_ON_A_REAL_DRIVER(settings) \
    if (!is_simulator() && !(settings).empty()) GTEST_SKIP() << "a real driver takes no settings"

void simulated(const std::string& settings, const std::function<void()>& body) {
    SKIP_ON_A_REAL_DRIVER(settings);
    expect_success(spawn(unique_run(settings), Start::initialised, body));
}

void simulated_raw(const std::string& settings, const std::function<void()>& body) {
    SKIP_ON_A_REAL_DRIVER(settings);
    expect_success(spawn(unique_run(settings), Start::raw, body));
}

void simulated_death(const std::string& settings, int signal, const std::function<void()>& body) {
    const pid_t child = spawn(unique_run(settings), Start::initialised, [&] {
        ::signal(signal, SIG_DFL);  // sanitizers turn the signal into an exit of their own
        body();
    });
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << "exited with " << WEXITSTATUS(status);
    EXPECT_EQ(WTERMSIG(status), signal);
}

static void run_pair(Start start, const std::string& settings,
                     const std::function<void(Channel&)>& first,
                     const std::function<void(Channel&)>& second) {
    SKIP_ON_A_REAL_DRIVER(settings);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const std::string run = unique_run(settings);
    const auto side = [&](int index, const std::function<void(Channel&)>& body) {
        return spawn(run, start, [&, index] {
            close(ends[1 - index]);
            Channel channel(ends[index]);
            body(channel);
        });
    };
    const pid_t one = side(0, first);
    const pid_t two = side(1, second);
    close(ends[0]);
    close(ends[1]);
    expect_success(one);
    expect_success(two);
}

void simulated_pair(const std::string& settings, const std::function<void(Channel&)>& first,
                    const std::function<void(Channel&)>& second) {
    run_pair(Start::initialised, settings, first, second);
}

void simulated_pair_raw(const std::string& settings, const std::function<void(Channel&)>& first,
                        const std::function<void(Channel&)>& second) {
    run_pair(Start::raw, settings, first, second);
}

void Channel::send_bytes(const void* data, std::size_t bytes) {
    if (::send(fd_, data, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) {
        ADD_FAILURE() << "the other process is gone";
        exit(1);
    }
}

void Channel::receive_bytes(void* data, std::size_t bytes) {
    if (recv(fd_, data, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) {
        ADD_FAILURE() << "the other process is gone";
        exit(1);
    }
}

void Channel::send_fd(int fd) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    ASSERT_EQ(sendmsg(fd_, &message, MSG_NOSIGNAL), 1);
}

int Channel::receive_fd() {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    int fd = -1;
    if (recvmsg(fd_, &message, 0) == 1) {
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    }
    return fd;
}

CUdeviceptr device_memory(std::size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuda().cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    return address;
}

char* pinned_memory(std::size_t bytes) {
    void* address = nullptr;
    EXPECT_EQ(cuda().cuMemHostAlloc(&address, bytes, 0), CUDA_SUCCESS);
    return static_cast<char*>(address);
}

CUstream new_stream(unsigned flags) {
    CUstream stream = nullptr;
    EXPECT_EQ(cuda().cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
}

CUevent new_event(unsigned flags) {
    CUevent event = nullptr;
    EXPECT_EQ(cuda().cuEventCreate(&event, flags), CUDA_SUCCESS);
    return event;
}

std::vector<char> pattern(std::size_t bytes, unsigned seed) {
    std::vector<char> data(bytes);
    unsigned state = seed * 2654435761u + 1;
    for (char& byte : data) {
        state = state * 1664525u + 1013904223u;
        byte = static_cast<char>(state >> 24);
    }
    return data;
}

std::vector<char> read_back(CUdeviceptr address, std::size_t bytes) {
    std::vector<char> data(bytes);
    EXPECT_EQ(cuda().cuMemcpyDtoH_v2(data.data(), address, bytes), CUDA_SUCCESS);
    return data;
}

Gate& gate() {
    static Gate one;
    return one;
}
