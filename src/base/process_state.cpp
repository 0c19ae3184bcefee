// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_state.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gantry {
namespace {

// The state letter and start time in /proc/<pid>/stat; the program name before them may hold
// anything, so read from its end.
struct ProcessState {
    char letter = 'X';
    std::uint64_t start_time = 0;
};
ProcessState process_state(int process) {
    ProcessState state;
    std::FILE* file = std::fopen(fmt::format("/proc/{}/stat", process).c_str(), "re");
    if (file == nullptr) return state;
    char text[1024];
    const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    text[length] = '\0';
    const char* field = std::strrchr(text, ')');
    if (field == nullptr || field[1] == '\0') return state;
    state.letter = field[2];
    field += 2;
    constexpr int kFieldsToStartTime = 19;
    for (int i = 0; i < kFieldsToStartTime && field != nullptr; ++i) {
        field = std::strchr(field, ' ');
        if (field != nullptr) ++field;
    }
    if (field != nullptr) state.start_time = std::strtoull(field, nullptr, 10);
    return state;
}

// A program may end its main thread and go on in others: the process then looks dead except for its
// threads.
bool has_other_threads(int process) {
    DIR* threads = opendir(fmt::format("/proc/{}/task", process).c_str());
    if (threads == nullptr) return false;
    int entries = 0;
    while (readdir(threads) != nullptr)
        ++entries;
    closedir(threads);
    constexpr int kDotAndDotDot = 2;
    return entries > kDotAndDotDot + 1;
}

// A process that is ending gives up its memory, and with it its program, before its descriptors; it
// is a zombie only later.
bool has_no_program(int process) {
    char target[8];
    return readlink(fmt::format("/proc/{}/exe", process).c_str(), target, sizeof target) < 0 &&
           errno == ENOENT;
}

}  // namespace

bool main_thread_has_ended(int process) {
    const ProcessState state = process_state(process);
    return state.letter == 'Z' || state.letter == 'X' || has_no_program(process);
}

bool process_has_ended(int process) {
    const ProcessState state = process_state(process);
    if (has_other_threads(process)) return false;
    return state.letter == 'Z' || state.letter == 'X' || has_no_program(process);
}

std::uint64_t process_start_time(int process) {
    return process_state(process).start_time;
}

}  // namespace gantry
