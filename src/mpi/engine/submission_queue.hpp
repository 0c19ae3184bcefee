// SPDX-License-Identifier: BSD-3-Clause
//
// SubmissionQueue: sends and receives that the program leaves to the progress thread without coming into
// the engine (GANTRY_PROGRESS=thread, GANTRY_HAND_OVER). Starting a message touches a dozen cache
// lines that the thread wrote last, a microsecond in all; this takes a few stores.
//
//     program                          whoever holds the lock next
//     put() -> a request of the box    start()        its real request, in the order of posting
//     ended_well(), once it is over    <- the real request is complete; it is given back at once
//     give_back()
//
// The requests of the box are always the same ones. A slot belongs to the program's threads while
// it is free or ended, in between to the thread that holds the lock.
#pragma once

#include "base/executor.hpp"
#include "base/status.hpp"
#include "p2p/request.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gantry::mpi {

class Engine;

class SubmissionQueue {
  public:
    static constexpr std::size_t kSlots = 64;

    struct Post {
        p2p::RequestKind kind = p2p::RequestKind::send;
        p2p::SendMode mode = p2p::SendMode::standard;
        const p2p::Group* group = nullptr;
        p2p::Buffer buffer;
        int peer = 0;  // rank in the group
        int tag = 0;
    };

    explicit SubmissionQueue(Engine& engine) : engine_(engine) {}
    SubmissionQueue(const SubmissionQueue&) = delete;
    SubmissionQueue& operator=(const SubmissionQueue&) = delete;

    // --- the program's threads, without the lock or inside
    // A request for that operation, not started yet: it waits for post(). Null: they are in use.
    p2p::Request* put(const Post& post);
    void post(const p2p::Request& request);
    // The box's request of that handle, if it is over and ended well; else null, whatever the
    // handle is.
    p2p::Request* ended_well(MPI_Request handle) const;
    void note_taken() { ++taken_; }
    std::uint64_t taken() const { return taken_; }

    // --- the thread that holds the lock
    // Makes the slots; before the first put().
    Status open();
    bool has_posts() const { return posted_.load() != started_; }
    // Starts what was posted; returns how many.
    int start();
    // The program has no more use for it; ended (then also without the lock) or not.
    void give_back(p2p::Request& request);
    // Of those that were started, how many there have been.
    std::uint64_t count() const { return count_; }
    // The request that does the work of this one of the box; null: it is over.
    static p2p::Request* at_work(const p2p::Request& request);

  private:
    // They come free about in their order, so the next few tell whether there is one.
    static constexpr std::size_t kLooks = 4;
    enum class State : std::uint8_t { free, posted, ended };
    struct Slot : Resumable {
        SubmissionQueue* box = nullptr;
        p2p::Request* shown = nullptr;  // to the program
        p2p::Request* working = nullptr;
        Post post;
        bool abandoned = false;  // by the program, before its end
        std::atomic<State> state{State::free};
    };

    static Slot& slot_of(const p2p::Request& request) {
        return *static_cast<Slot*>(request.posted);
    }
    static void work_ended(Resumable& slot);
    void start(Slot& slot);
    void end(Slot& slot, Status status);

    Engine& engine_;
    bool open_ = false;
    std::array<Slot, kSlots> slots_;  // by the address of `shown`
    std::size_t cursor_ = 0;
    std::uint64_t taken_ = 0;
    std::array<Slot*, kSlots> order_{};  // of posting, a ring
    std::uint32_t started_ = 0;
    std::uint64_t count_ = 0;
    std::atomic<std::uint32_t> posted_{0};
};

}  // namespace gantry::mpi
