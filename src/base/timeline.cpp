// SPDX-License-Identifier: BSD-3-Clause
#include "base/timeline.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace gantry {
namespace {

constexpr std::array<const char*, 6> kKinds{"call",  "sent",   "received",
                                            "piece", "access", "with_file"};

void replace(std::string& text, std::string_view mark, long value) {
    if (const auto at = text.find(mark); at != std::string::npos)
        text.replace(at, mark.size(), std::to_string(value));
}

Nanoseconds wall_clock() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "?";
    return name.data();
}

}  // namespace

Timeline::Event* Timeline::add(Event event) {
    if (events_.size() >= most_) {
        ++left_out_;
        return nullptr;
    }
    return &events_.emplace_back(event);
}

void Timeline::call(const char* function, Nanoseconds begin) {
    add({.kind = Kind::call,
         .what = function,
         .begin = begin,
         .end = now(),
         .number = static_cast<int>(syscall(SYS_gettid))});
}

void Timeline::sent(const void* send, int peer, int tag, std::uint32_t sequence, Bytes bytes) {
    const Nanoseconds begin = now();
    Event* const event = add({.kind = Kind::sent,
                              .begin = begin,
                              .end = begin,
                              .peer = peer,
                              .number = tag,
                              .sequence = sequence,
                              .bytes = bytes});
    if (send != nullptr && event != nullptr) under_way_[send] = event;
}

void Timeline::matched(const void* receive, int peer, int tag, std::uint32_t sequence,
                       Bytes bytes) {
    const Nanoseconds begin = now();
    Event* const event = add({.kind = Kind::received,
                              .begin = begin,
                              .end = begin,
                              .peer = peer,
                              .number = tag,
                              .sequence = sequence,
                              .bytes = bytes});
    if (event != nullptr) under_way_[receive] = event;
}

void Timeline::came(const void* receive, const char* path) {
    if (const auto found = under_way_.find(receive); found != under_way_.end())
        found->second->what = path;
}

void Timeline::ended(const void* request) {
    const auto found = under_way_.find(request);
    if (found == under_way_.end()) return;
    found->second->end = now();
    under_way_.erase(found);
}

void Timeline::piece(const char* what, Nanoseconds begin, int gpu, Bytes bytes) {
    add({.kind = Kind::piece,
         .what = what,
         .begin = begin,
         .end = now(),
         .number = gpu,
         .bytes = bytes});
}

void Timeline::access(const char* way, Nanoseconds begin, Bytes bytes) {
    add({.kind = Kind::access, .what = way, .begin = begin, .end = now(), .bytes = bytes});
}

void Timeline::with_file(const char* what, Nanoseconds begin, Bytes bytes) {
    add({.kind = Kind::with_file, .what = what, .begin = begin, .end = now(), .bytes = bytes});
}

Status Timeline::write(int rank, std::string file) {
    replace(file, "%r", rank);
    replace(file, "%p", static_cast<long>(getpid()));
    for (const auto& [request, event] : under_way_)
        event->end = now();
    under_way_.clear();
    std::FILE* const out = std::fopen(file.c_str(), "we");
    if (out == nullptr)
        return failure(MPI_ERR_IO, "writing the timeline to {} (GANTRY_TRACE_FILE): {}", file,
                       std::strerror(errno));
    const auto print = [out](const std::string& line) {
        return std::fwrite(line.data(), 1, line.size(), out) == line.size();
    };
    bool whole =
        print(fmt::format("{{\"gantry_timeline\":1,\"rank\":{},\"host\":\"{}\",\"pid\":{},"
                          "\"to_wall_clock\":{},\"left_out\":{}}}\n",
                          rank, host_name(), getpid(), wall_clock() - now(), left_out_));
    for (const Event& event : events_)
        whole = whole && print(fmt::format("[\"{}\",\"{}\",{},{},{},{},{},{}]\n",
                                           kKinds[static_cast<std::size_t>(event.kind)], event.what,
                                           event.begin, event.end, event.peer, event.number,
                                           event.sequence, event.bytes));
    if (std::fclose(out) != 0 || !whole)
        return failure(MPI_ERR_IO, "writing the timeline to {} (GANTRY_TRACE_FILE): {}", file,
                       std::strerror(errno));
    return success();
}

}  // namespace gantry
