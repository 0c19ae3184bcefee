// SPDX-License-Identifier: BSD-3-Clause
//
// The path ledger behind `gantry explain`: for each class of messages (memory kinds,
// size class, peer) the path, the chunk, staged bytes, why, and what it beat. Recording is off unless
// GANTRY_EXPLAIN=1 and costs one branch then.
#pragma once

#include "base/status.hpp"
#include "plan/io_table.hpp"
#include "plan/path_table.hpp"
#include "plan/plan.hpp"
#include "plan/selection_cache.hpp"

#include <map>
#include <string>
#include <tuple>

namespace gantry::plan {

// Of a message of so many bytes that went so: those that its receiver, or its sender, moved into or out
// of staging slots.
Bytes staged_bytes(const Plan& plan, Bytes bytes, bool received);

class Explain {
  public:
    explicit Explain(bool on = false) : on_(on) {}
    bool on() const { return on_; }
    void turn(bool on) { on_ = on; }

    // One message that this rank sent (or received: `received`), as it finally went.
    void record(const Question& question, const Choice& choice, int peer, bool received) {
        if (on_) [[unlikely]]
            add(question, choice, peer, received);
    }
    void record(const Selection& selection, int peer, bool received) {
        record(selection.question, selection.choice, peer, received);
    }
    // The ledger, for messages that are sent without a question; null: nobody keeps one.
    Explain* ledger() { return on_ ? this : nullptr; }

    // One collective of this rank.
    void collective(const CollQuestion& question, const CollChoice& choice) {
        if (on_) collectives_.add(question, choice);
    }

    // One read or write of a file. Asked behind on(): the row takes memory.
    void file(const IoPath& path) { files_.add(path); }

    // A sentence about what no message of its own tells.
    void note(std::string sentence) { notes_.push_back({kNoWindow, std::move(sentence)}); }
    // One about a window. Windows have numbers in the order in which this process made them, from 1 on.
    void note_of_window(int window, std::string sentence) {
        notes_.push_back({window, std::move(sentence)});
    }
    // What the program calls it, from now on and in what was said before.
    void name_window(int window, std::string name) {
        if (on_) window_names_[window] = std::move(name);
    }

    // A table for people, and the same as JSON (docs/user/explain.md).
    std::string text(int rank) const;
    std::string json(int rank) const;
    // At the end of the job: to GANTRY_EXPLAIN_FILE (%r is the rank, %p the process id; a name
    // ending in .json gets JSON), or to standard error when that is empty. Writes nothing when
    // nothing was recorded.
    Status write(int rank, std::string file) const;

  private:
    void add(const Question& question, const Choice& choice, int peer, bool received);
    Record record_of(int rank) const;

    static constexpr int kNoWindow = 0;
    struct Note {
        int window;
        std::string sentence;
    };
    std::string text_of(const Note& note) const;

    struct Key {
        int peer;
        bool received;
        int source_kind, sink_kind, size_class;
        Protocol protocol;
        Executor executor;
        auto operator<=>(const Key&) const = default;
    };
    struct Entry {
        Choice choice;
        bool sink_known = false;
        std::uint64_t messages = 0;
        Bytes bytes = 0, staged = 0, smallest = 0, largest = 0;
    };
    bool on_;
    std::map<Key, Entry> entries_;
    std::vector<Note> notes_;
    std::map<int, std::string> window_names_;
    CollRecord collectives_;
    IoRecord files_;
};

}  // namespace gantry::plan
