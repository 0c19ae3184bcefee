// SPDX-License-Identifier: BSD-3-Clause
//
// Backend: who waits for the system, so that nobody who drives the engine does: a ring of the kernel
// (ring_backend.hpp) or threads (thread_backend.hpp). Transfers and other calls are given to it and told
// of when they have ended; many may be under way at once.
#pragma once

#include "base/task.hpp"
#include "io/transfer.hpp"

#include <functional>
#include <string>

namespace gantry::io {

class Backend {
  public:
    // The system outlives this.
    explicit Backend(System& system) : system_(system) {}
    virtual ~Backend() = default;
    // "io_uring" or "threads", and why, for who asks which way files go.
    virtual std::string name() const = 0;
    // Carried out when it returns, by the caller: for what is only a copy of memory.
    void carry_out_now(Transfer& transfer) { carry_out(system_, transfer); }
    // The same of a read, if the system has all of it in memory; false: nothing happened.
    bool read_now(Transfer& transfer) { return io::read_now(system_, transfer); }
    // The transfer, and `done`, stay until `done` is complete; how it ended stands in the transfer.
    virtual void start(Transfer& transfer, Completion& done) = 0;
    // Any other call that may take long, made once, by another thread.
    virtual void start(std::function<void(System&)> call, Completion& done) = 0;
    // Tells what has ended, and returns how much.
    virtual int progress() = 0;
    // Whether anything is under way.
    virtual bool idle() const = 0;

    // `Status s = co_await backend.run(executor, transfer, path);`
    Task<Status> run(Executor& executor, Transfer& transfer, std::string_view path);
    // One other system call; `returned` is what it returns, and stays until then.
    Task<Status> call(Executor& executor, std::function<std::int64_t(System&)> asked,
                      std::int64_t* returned);

  protected:
    System& system_;
};

}  // namespace gantry::io
