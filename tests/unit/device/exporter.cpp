// SPDX-License-Identifier: BSD-3-Clause
#include "exporter.hpp"

#include "cuda_fixture.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace gantry::device::testing_support {

namespace {

constexpr int kCommands = 100;  // descriptors in the child
constexpr int kAnswers = 101;

template <class T>
bool receive(int descriptor, T& message) {
    return ::read(descriptor, &message, sizeof(message)) == static_cast<ssize_t>(sizeof(message));
}
template <class T>
bool transmit(int descriptor, const T& message) {
    return ::write(descriptor, &message, sizeof(message)) == static_cast<ssize_t>(sizeof(message));
}

// The child's side.
struct DISABLED_Exporter : CudaTest {
    IpcHandle exported(CUdeviceptr memory, Bytes bytes) {
        Result<IpcHandle> handle = cuda->export_memory(classify(pointer(memory), bytes));
        return handle.ok() ? *handle : IpcHandle{};
    }
    Exporter::Answer answer(const Exporter::Command& command) {
        const CUdeviceptr memory = command.handle.base;
        switch (command.verb) {
            case Exporter::Verb::allocate: {
                const CUdeviceptr fresh = allocate(command.handle.kind, command.bytes);
                write(fresh, std::vector<std::uint8_t>(command.bytes, command.value));
                return {true, exported(fresh, command.bytes)};
            }
            case Exporter::Verb::holds: {
                const auto data = read(memory, command.handle.size);
                return {data == std::vector<std::uint8_t>(data.size(), command.value), {}};
            }
            case Exporter::Verb::free: free(memory); return {true, {}};
            case Exporter::Verb::send_descriptor:
                return {cuda->send_descriptor(command.handle, command.inbox).ok(), {}};
            case Exporter::Verb::inject: return {gpu.simgpu_fault(command.text) == 0, {}};
            case Exporter::Verb::count_descriptors: return {true, {}, count_open_descriptors()};
            case Exporter::Verb::still_valid: return {cuda->still_valid(command.handle), {}};
            case Exporter::Verb::quit: break;
        }
        return {true, {}};
    }
};

TEST_F(DISABLED_Exporter, Serves) {
    Exporter::Command command{};
    while (receive(kCommands, command) && command.verb != Exporter::Verb::quit)
        ASSERT_TRUE(transmit(kAnswers, answer(command)));
}

}  // namespace

int count_open_descriptors() {
    DIR* folder = opendir("/proc/self/fd");
    int count = -1;  // its own
    while (readdir(folder) != nullptr)
        ++count;
    closedir(folder);
    return count;
}

Exporter::Exporter() {
    int down[2];
    int up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) return;
    child_ = fork();
    if (child_ == 0) {
        dup2(down[0], kCommands);
        dup2(up[1], kAnswers);
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDOUT_FILENO);
        execl("/proc/self/exe", "exporter", "--gtest_filter=DISABLED_Exporter.Serves",
              "--gtest_also_run_disabled_tests", static_cast<char*>(nullptr));
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    to_child_ = down[1];
    from_child_ = up[0];
}

Exporter::~Exporter() {
    if (child_ < 0) return;
    transmit(to_child_, Command{Verb::quit, 0, 0, {}});
    close(to_child_);
    close(from_child_);
    int status = 0;
    waitpid(child_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the exporter failed";
}

Exporter::Answer Exporter::ask(const Command& command) {
    Answer answer{};
    EXPECT_TRUE(transmit(to_child_, command));
    EXPECT_TRUE(receive(from_child_, answer)) << "the exporter is gone";
    return answer;
}

IpcHandle Exporter::allocate(Bytes bytes, std::uint8_t value, IpcKind kind) {
    Command command{Verb::allocate, value, bytes, {}};
    command.handle.kind = kind;
    const IpcHandle handle = ask(command).handle;
    EXPECT_EQ(handle.kind, kind);
    return handle;
}

bool Exporter::send_descriptor(const IpcHandle& handle, std::uint32_t inbox) {
    return ask({Verb::send_descriptor, 0, 0, handle, inbox}).yes;
}

void Exporter::inject(const char* fault) {
    Command command{Verb::inject, 0, 0, {}};
    std::strncpy(command.text, fault, sizeof command.text - 1);
    EXPECT_TRUE(ask(command).yes);
}

int Exporter::open_descriptors() {
    return ask({Verb::count_descriptors, 0, 0, {}}).count;
}

bool Exporter::holds(const IpcHandle& handle, std::uint8_t value) {
    return ask({Verb::holds, value, 0, handle}).yes;
}

void Exporter::free(const IpcHandle& handle) {
    EXPECT_TRUE(ask({Verb::free, 0, 0, handle}).yes);
}

bool Exporter::still_valid(const IpcHandle& handle) {
    return ask({Verb::still_valid, 0, 0, handle}).yes;
}

}  // namespace gantry::device::testing_support
