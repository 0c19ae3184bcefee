// SPDX-License-Identifier: BSD-3-Clause
//
// Rank 0's part in a rendezvous: one thread that accepts the ranks, welcomes them when all have
// come, serves PMI-1 to them and passes on an abort. It owns its sockets; the destructor
// waits until every rank has finalized or gone, as a launcher stays until its ranks have ended. Only an
// owner that has not finalized itself waits for a bounded time: the others may wait for it.
#pragma once

#include "job/pmi_server.hpp"
#include "job/rendezvous.hpp"
#include "job/tcp.hpp"

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace gantry::job {

class RendezvousServer {
  public:
    static Result<std::unique_ptr<RendezvousServer>> start(const Meeting& meeting);
    RendezvousServer(const RendezvousServer&) = delete;
    RendezvousServer& operator=(const RendezvousServer&) = delete;
    // In a forked child it only forgets: the thread is not there.
    ~RendezvousServer();

  private:
    using Clock = std::chrono::steady_clock;
    // A connection whose first line has not come.
    struct Guest {
        Socket socket;
        std::string received;
    };
    RendezvousServer(const Meeting& meeting, Socket listener);
    void run();
    bool is_over() const;
    void accept_guest();
    void read_guest(Guest& guest);
    void seat(Guest& guest, std::string_view line);
    void welcome_everybody();
    void give_up();
    void serve(int rank);
    void pass_on_abort();
    void rank_left(int rank);
    std::string abort_line() const;
    int present() const;
    bool others_have_left() const;
    void begin_to_leave();

    const Meeting meeting_;
    const int owner_process_;
    const Clock::time_point deadline_;
    Socket listener_;
    Socket wake_;  // an eventfd: the owner wants to leave
    PmiServer pmi_;
    std::vector<Guest> guests_;
    std::vector<int> seats_;  // the ranks' sockets; -1: not come, or gone
    std::vector<Socket> lifelines_;
    bool welcomed_ = false;
    bool gave_up_ = false;
    bool passed_on_ = false;                     // an abort, to everybody
    bool leaving_ = false;                       // the owner wants to
    std::optional<Clock::time_point> leave_at_;  // and waits no longer than this
    std::thread thread_;
};

}  // namespace gantry::job
