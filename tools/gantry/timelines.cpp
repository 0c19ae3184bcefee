// SPDX-License-Identifier: BSD-3-Clause
#include "timelines.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>

namespace gantry::tool {
namespace {

// Which message: sender, receiver, sequence number.
using Name = std::tuple<int, int, std::uint32_t>;

Name name_of(int rank, const TimelineEvent& event) {
    return event.kind == "sent" ? Name{rank, event.peer, event.sequence}
                                : Name{event.peer, rank, event.sequence};
}

using Hosts = std::map<std::string, Nanoseconds>;

// For each pair of hosts (from, to) the smallest time that a message seems to have taken.
std::map<std::pair<std::string, std::string>, Nanoseconds> smallest_times(
    const std::vector<RankTimeline>& ranks, const Hosts& offset) {
    std::map<Name, std::pair<std::string, Nanoseconds>> sent;
    for (const RankTimeline& rank : ranks)
        for (const TimelineEvent& event : rank.events)
            if (event.kind == "sent")
                sent[name_of(rank.rank, event)] = {rank.host, event.begin + offset.at(rank.host)};
    std::map<std::pair<std::string, std::string>, Nanoseconds> smallest;
    for (const RankTimeline& rank : ranks)
        for (const TimelineEvent& event : rank.events) {
            if (event.kind != "received") continue;
            const auto from = sent.find(name_of(rank.rank, event));
            if (from == sent.end() || from->second.first == rank.host) continue;
            const Nanoseconds took = event.begin + offset.at(rank.host) - from->second.second;
            const auto [known, is_new] =
                smallest.try_emplace({from->second.first, rank.host}, took);
            if (!is_new) known->second = std::min(known->second, took);
        }
    return smallest;
}

// Spans of one track must not overlap: each goes to the first of several that is free.
class Tracks {
  public:
    int track_for(Nanoseconds begin, Nanoseconds end) {
        for (std::size_t i = 0; i < free_from_.size(); ++i)
            if (free_from_[i] <= begin) {
                free_from_[i] = end;
                return static_cast<int>(i);
            }
        free_from_.push_back(end);
        return static_cast<int>(free_from_.size()) - 1;
    }

  private:
    std::vector<Nanoseconds> free_from_;
};

// An arrow belongs to a span that it begins or ends inside of.
constexpr Nanoseconds kShortest = 100;

double microseconds(Nanoseconds time) {
    return static_cast<double>(time) / 1000.0;
}

class Writer {
  public:
    std::string take() {
        return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + all_ + "\n]}\n";
    }
    void add(const std::string& event) { all_ += all_.empty() ? event : ",\n" + event; }
    void name(const char* what, int rank, int track, const std::string& text) {
        add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                        rank, track, nlohmann::json(text).dump()));
    }

  private:
    std::string all_;
};

// One rank: groups of tracks, each with numbers of its own.
class RankWriter {
  public:
    RankWriter(Writer& writer, int rank) : writer_(writer), rank_(rank) {}

    void span(const std::string& group, const TimelineEvent& event, const std::string& title,
              const std::string& arguments, const char* arrow) {
        const Nanoseconds end = std::max(event.end, event.begin + kShortest);
        Group& of =
            groups_.try_emplace(group, Group{kTracks * static_cast<int>(groups_.size()), {}, 0})
                .first->second;
        const int number = of.tracks.track_for(event.begin, end);
        const int track = of.first + number;
        if (number >= of.named) {
            of.named = number + 1;
            writer_.name("thread_name", rank_, track, group);
        }
        writer_.add(fmt::format(
            R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
            nlohmann::json(title).dump(), rank_, track, microseconds(event.begin),
            microseconds(end - event.begin), arguments));
        if (arrow == nullptr) return;
        const auto [from, to, sequence] = name_of(rank_, event);
        const bool begins = event.kind == "sent";
        writer_.add(fmt::format(
            R"({{"ph":"{}","name":"message","cat":"message","id":"{}.{}.{}","pid":{},"tid":{},"ts":{:.3f}{}}})",
            begins ? "s" : "f", from, to, sequence, rank_, track,
            microseconds(begins ? event.begin : end - 1), begins ? "" : R"(,"bp":"e")"));
    }

  private:
    static constexpr int kTracks = 10'000;
    struct Group {
        int first;
        Tracks tracks;
        int named;
    };
    Writer& writer_;
    int rank_;
    std::map<std::string, Group> groups_;
};

std::string size_text(Bytes bytes) {
    if (bytes >= kMiB && bytes % kMiB == 0) return fmt::format("{} MiB", bytes / kMiB);
    if (bytes >= kKiB && bytes % kKiB == 0) return fmt::format("{} KiB", bytes / kKiB);
    return fmt::format("{} B", bytes);
}

void write_event(RankWriter& writer, const TimelineEvent& event,
                 const std::map<int, int>& threads) {
    const std::string size = size_text(event.bytes);
    if (event.kind == "call") {
        const int thread = threads.at(event.number);
        const std::string group =
            thread == 0 ? "MPI calls" : fmt::format("MPI calls of thread {}", thread);
        writer.span(group, event, event.what, "", nullptr);
    } else if (event.kind == "access" || event.kind == "with_file") {
        writer.span(event.kind == "access" ? "reads and writes of files" : "with the file system",
                    event, event.what, fmt::format(R"("bytes":{})", event.bytes), nullptr);
    } else if (event.kind == "piece") {
        const std::string group =
            event.number < 0 ? "network" : fmt::format("copies of GPU {}", event.number);
        writer.span(group, event, event.what, fmt::format(R"("bytes":{})", event.bytes), nullptr);
    } else {
        const bool sent = event.kind == "sent";
        writer.span(sent ? "messages sent" : "messages received", event,
                    sent ? fmt::format("{} to rank {}", size, event.peer)
                         : fmt::format("{} from rank {}", size, event.peer),
                    fmt::format(R"("bytes":{},"tag":{},"sequence":{},"path":{})", event.bytes,
                                event.number, event.sequence, nlohmann::json(event.what).dump()),
                    "message");
    }
}

}  // namespace

Result<RankTimeline> timeline_from(const std::string& text) {
    std::istringstream lines(text);
    RankTimeline rank;
    int number = 0;
    for (std::string line; std::getline(lines, line); ++number) {
        const nlohmann::json read = nlohmann::json::parse(line, nullptr, false);
        if (number == 0) {
            if (!read.is_object() || read.value("gantry_timeline", 0) != 1)
                return failure(MPI_ERR_IO, "line 1 is not the beginning of a timeline");
            rank.rank = read.value("rank", 0);
            rank.host = read.value("host", "");
            rank.to_wall_clock = read.value("to_wall_clock", Nanoseconds{0});
            rank.left_out = read.value("left_out", std::uint64_t{0});
            continue;
        }
        const bool right = read.is_array() && read.size() == 8 && read[0].is_string() &&
                           read[1].is_string() &&
                           std::all_of(read.begin() + 2, read.end(),
                                       [](const auto& item) { return item.is_number_integer(); });
        if (!right) return failure(MPI_ERR_IO, "line {} is not an event", number + 1);
        rank.events.push_back(
            {read[0], read[1], read[2], read[3], read[4], read[5], read[6], read[7]});
    }
    if (number == 0) return failure(MPI_ERR_IO, "the file is empty");
    return rank;
}

void align_clocks(std::vector<RankTimeline>& ranks) {
    if (ranks.empty()) return;
    const std::string first = ranks.front().host;
    Hosts offset;
    for (const RankTimeline& rank : ranks)
        offset.try_emplace(rank.host, rank.to_wall_clock - ranks.front().to_wall_clock);
    const auto smallest = smallest_times(ranks, offset);
    for (auto& [host, by_time_of_day] : offset) {
        const auto there = smallest.find({first, host}), back = smallest.find({host, first});
        if (there != smallest.end() && back != smallest.end())
            by_time_of_day -= (there->second - back->second) / 2;
    }
    Nanoseconds begin = std::numeric_limits<Nanoseconds>::max();
    for (const RankTimeline& rank : ranks)
        for (const TimelineEvent& event : rank.events)
            begin = std::min(begin, event.begin + offset.at(rank.host));
    for (RankTimeline& rank : ranks)
        for (TimelineEvent& event : rank.events) {
            event.begin += offset.at(rank.host) - begin;
            event.end += offset.at(rank.host) - begin;
        }
}

std::string to_trace_format(const std::vector<RankTimeline>& ranks) {
    Writer writer;
    for (const RankTimeline& rank : ranks) {
        writer.name("process_name", rank.rank, 0,
                    fmt::format("rank {} on {}", rank.rank, rank.host));
        std::vector<const TimelineEvent*> in_order;
        std::map<int, int> threads;
        for (const TimelineEvent& event : rank.events) {
            in_order.push_back(&event);
            if (event.kind == "call")
                threads.try_emplace(event.number, static_cast<int>(threads.size()));
        }
        std::ranges::stable_sort(in_order, {},
                                 [](const TimelineEvent* event) { return event->begin; });
        RankWriter of_rank(writer, rank.rank);
        for (const TimelineEvent* event : in_order)
            write_event(of_rank, *event, threads);
    }
    return writer.take();
}

}  // namespace gantry::tool
