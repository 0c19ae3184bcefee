// SPDX-License-Identifier: BSD-3-Clause
//
// RingBackend: reads and writes are the kernel's, which tells of them in a ring; nobody of this process
// waits for them. Other calls, and transfers that plan/io_plan has for threads, are made by those.
//
//   start()     the transfer's call goes to the ring, or waits for a place there
//   progress()  what the kernel returned; the transfer's next call, or its end; who waits for a place
#pragma once

#include "base/intrusive_list.hpp"
#include "io/ring.hpp"
#include "io/thread_backend.hpp"

#include <memory>

namespace gantry::io {

class RingBackend final : public Backend {
  public:
    // The system outlives this.
    RingBackend(System& system, std::unique_ptr<Ring> ring, int threads)
        : Backend(system), ring_(std::move(ring)), threads_(system, threads) {}
    ~RingBackend() override;
    RingBackend(const RingBackend&) = delete;
    RingBackend& operator=(const RingBackend&) = delete;

    std::string name() const override { return "io_uring"; }
    void start(Transfer& transfer, Completion& done) override;
    void start(std::function<void(System&)> call, Completion& done) override {
        threads_.start(std::move(call), done);
    }
    int progress() override;
    bool idle() const override { return asked_ == 0 && waiting_.empty() && threads_.idle(); }

  private:
    struct Job : Link<Job> {
        explicit Job(Transfer& of) : transfer(of), steps(of) {}
        Transfer& transfer;
        Steps steps;
        Completion* done = nullptr;
    };
    // The next call of a job goes to the ring, or its end is told.
    bool go_on(Job& job);
    int take();

    const std::unique_ptr<Ring> ring_;
    ThreadBackend threads_;
    int asked_ = 0;               // of the ring
    IntrusiveList<Job> waiting_;  // owned, as those are that the ring knows by their tokens
};

}  // namespace gantry::io
