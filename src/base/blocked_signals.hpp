// SPDX-License-Identifier: BSD-3-Clause
//
// BlockedSignals: while it lives, the calling thread takes no signal, and neither does a thread that begins meanwhile, as long
// as that one lives. Signals are the program's business, in the program's own threads: one that a thread of ours or of a library
// took would never reach a signalfd or a sigwait of the program.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace gantry {

class BlockedSignals {
  public:
    BlockedSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

  private:
    sigset_t before_;
};

}  // namespace gantry
