// SPDX-License-Identifier: BSD-3-Clause
//
// A class of messages is: peer, direction, kinds of memory, power of two of the size, protocol, who
// copies, and whether it went so to measure. Its entry keeps the plan of the largest message seen, the
// latest of them, which is the one that people ask about.
#include "plan/explain.hpp"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gantry::plan {
namespace {

constexpr int kUnknownKind = -1;
// Added to the class of a size: messages that went so to measure are classes of their own.
constexpr int kMeasuring = 64 + 1;

const char* kind_text(int kind) {
    switch (static_cast<device::MemoryKind>(kind)) {
        case device::MemoryKind::host: return "host";
        case device::MemoryKind::pinned: return "pinned";
        case device::MemoryKind::device: return "device";
        case device::MemoryKind::managed: return "managed";
    }
    return "unknown";
}

std::string how_text(const Plan& plan, Bytes bytes) {
    Plan without_reason = plan;
    without_reason.why = "";
    return describe(without_reason, bytes);
}

void replace(std::string& text, std::string_view mark, long value) {
    if (const auto at = text.find(mark); at != std::string::npos)
        text.replace(at, mark.size(), std::to_string(value));
}

}  // namespace

Bytes staged_bytes(const Plan& plan, Bytes bytes, bool received) {
    const Stage stage = received ? plan.sink_stage : plan.source_stage;
    const bool staged = plan.protocol == Protocol::pipeline || plan.protocol == Protocol::eager;
    return staged && stage == Stage::slot ? bytes : 0;
}

void Explain::add(const Question& question, const Choice& choice, int peer, bool received) {
    const int sink_kind = question.sink_known ? static_cast<int>(question.sink.kind) : kUnknownKind;
    const Key key{.peer = peer,
                  .received = received,
                  .source_kind = static_cast<int>(question.source.kind),
                  .sink_kind = sink_kind,
                  .size_class = static_cast<int>(std::bit_width(question.bytes)) +
                                (choice.measures ? kMeasuring : 0),
                  .protocol = choice.plan.protocol,
                  .executor = choice.plan.executor};
    Entry& entry = entries_[key];
    if (entry.messages == 0 || question.bytes >= entry.largest) {  // rates may have changed
        entry.choice = choice;
        entry.largest = question.bytes;
    }
    if (entry.messages == 0 || question.bytes < entry.smallest) entry.smallest = question.bytes;
    entry.sink_known = question.sink_known;
    entry.messages += 1;
    entry.bytes += question.bytes;
    entry.staged += staged_bytes(choice.plan, question.bytes, received);
}

std::string Explain::text_of(const Note& note) const {
    if (note.window == kNoWindow) return note.sentence;
    const auto named = window_names_.find(note.window);
    const bool is_named = named != window_names_.end() && !named->second.empty();
    return fmt::format("window {}{}: {}", note.window,
                       is_named ? fmt::format(" ({})", named->second) : "", note.sentence);
}

Record Explain::record_of(int rank) const {
    Record record{rank, {}, {}, collectives_.paths(), files_.paths()};
    for (const Note& note : notes_)
        record.notes.push_back(text_of(note));
    for (const auto& [key, entry] : entries_) {
        const Plan& plan = entry.choice.plan;
        Path path{.rank = rank,
                  .peer = key.peer,
                  .received = key.received,
                  .source = kind_text(key.source_kind),
                  .sink = kind_text(key.sink_kind),
                  .smallest = entry.smallest,
                  .largest = entry.largest,
                  .messages = entry.messages,
                  .bytes = entry.bytes,
                  .staged = entry.staged,
                  .protocol = std::string(name(plan.protocol)),
                  .executor = std::string(name(plan.executor)),
                  .how = how_text(plan, entry.largest),
                  .chunk = plan.chunk,
                  .depth = plan.depth,
                  .expected = plan.expected,
                  .opening = plan.opening,
                  .why = plan.why,
                  .losers = {}};
        for (int i = 0; i < entry.choice.rejected_count; ++i) {
            const Rejected& rejected = entry.choice.rejected[i];
            path.losers.push_back(
                {std::string(name(rejected.protocol)), rejected.expected, rejected.why});
        }
        record.paths.push_back(std::move(path));
    }
    return record;
}

std::string Explain::text(int rank) const {
    const Record record = record_of(rank);
    return fmt::format("gantry explain: rank {}\n", rank) + path_table(record.paths, Show::all) +
           coll_table(record.collectives) + io_table(record.files) + notes_text(record);
}

std::string Explain::json(int rank) const {
    return to_json(record_of(rank));
}

Status Explain::write(int rank, std::string file) const {
    if (entries_.empty() && collectives_.empty() && files_.empty()) return success();
    if (file.empty()) {
        // One write, so that the tables of several ranks do not mix line by line.
        const std::string table = text(rank);
        std::fwrite(table.data(), 1, table.size(), stderr);
        return success();
    }
    replace(file, "%r", rank);
    replace(file, "%p", static_cast<long>(getpid()));
    const std::string contents = file.ends_with(".json") ? json(rank) : text(rank);
    std::FILE* out = std::fopen(file.c_str(), "we");
    if (out == nullptr)
        return failure(MPI_ERR_IO, "writing the record of paths to {} (GANTRY_EXPLAIN_FILE): {}",
                       file, std::strerror(errno));
    const bool whole = std::fwrite(contents.data(), 1, contents.size(), out) == contents.size();
    if (std::fclose(out) != 0 || !whole)
        return failure(MPI_ERR_IO, "writing the record of paths to {} (GANTRY_EXPLAIN_FILE): {}",
                       file, std::strerror(errno));
    return success();
}

}  // namespace gantry::plan
