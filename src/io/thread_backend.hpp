// SPDX-License-Identifier: BSD-3-Clause
//
// ThreadBackend: a few threads that make blocking system calls. They start at the first need and end
// with the backend.
//
//   engine   start(): queue, wake a thread             progress(): take what ended, complete it
//   thread            take the oldest, carry it out, put it among the ended
//
// One lock guards both lists. A look at nothing costs one relaxed load (`ended_count_`); its pair is
// the lock, under which the list is read.
#pragma once

#include "base/intrusive_list.hpp"
#include "io/backend.hpp"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace gantry::io {

class ThreadBackend final : public Backend {
  public:
    // The system outlives this; `why` there is no ring of the kernel, in words, if somebody asks.
    ThreadBackend(System& system, int threads, std::string why = {})
        : Backend(system), most_threads_(threads), why_(std::move(why)) {}
    ~ThreadBackend() override;
    ThreadBackend(const ThreadBackend&) = delete;
    ThreadBackend& operator=(const ThreadBackend&) = delete;

    std::string name() const override;
    void start(Transfer& transfer, Completion& done) override;
    void start(std::function<void(System&)> call, Completion& done) override;
    // start() where somebody else has said why it is threads that do it.
    void give(Transfer& transfer, Completion& done);
    int progress() override;
    bool idle() const override { return under_way_ == 0; }

  private:
    struct Job : Link<Job> {
        Transfer* transfer = nullptr;
        std::function<void(System&)> call;
        Completion* done = nullptr;
    };
    void queue(std::unique_ptr<Job> job);
    void add_thread();
    void work();
    void carry_out(Job& job);
    void carry_out_oldest();

    const int most_threads_;
    const std::string why_;
    int under_way_ = 0;  // the engine's: given, and not told of
    std::mutex lock_;
    std::condition_variable more_;
    IntrusiveList<Job> waiting_, ended_;  // owned
    std::atomic<int> ended_count_{0};
    int waiting_count_ = 0, idle_threads_ = 0;
    bool stopping_ = false;
    std::vector<pthread_t> threads_;
};

}  // namespace gantry::io
