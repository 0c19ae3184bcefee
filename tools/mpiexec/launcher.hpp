// SPDX-License-Identifier: BSD-3-Clause
//
// A job and those that its ranks spawn: starts their ranks, then runs one loop over their output, their
// PMI sockets, signals and time until all have ended.
//
//   running --(a rank dies, MPI_Abort, Ctrl-C, timeout)--> ending (asked to end) --(2 s)--> killing
//
// A rank that has ended stays a zombie until its job is over, so that its process id, which names
// its group, is not reused. What ends one of the jobs ends all.
#pragma once

#include "binding.hpp"
#include "guard.hpp"
#include "job/pmi_server.hpp"
#include "options.hpp"
#include "output.hpp"
#include "process.hpp"

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace gantry::mpiexec {

class Launcher {
  public:
    Launcher(Options options, Binding binding, GpuBinding gpus);
    ~Launcher();
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    // Returns the exit code of mpiexec.
    int run();

  private:
    using Clock = std::chrono::steady_clock;
    using Membership = job::Membership;
    enum class Phase { running, ending, killing };
    struct Rank {
        Process process;
        const App* app = nullptr;
        int job = 0;
        int number = 0;  // in its job
        bool ended = false;
        bool lost = false;    // it has died, and the others go on
        bool buried = false;  // waited for, with all of its job: the process id may be another's
        int exit_code = 0;    // when it has ended by itself
    };
    // Job 0 is that of the command line, the others were spawned.
    struct Job {
        Job(std::string name, std::vector<App> its_apps, int its_size);
        std::vector<App> apps;  // at an address that stays
        int size;
        job::PmiServer pmi;
        int running = 0;        // ranks
        std::size_t first = 0;  // its place in `ranks_`, where its ranks follow each other
    };
    // A job that ends by itself says why behind what its ranks still have to say.
    enum class Tell { at_once, at_the_end };
    // What a descriptor of the loop's poll belongs to.
    enum class Source { signals, input, pmi, guest, forwarder, sink };
    struct Watched {
        Source source;
        std::size_t index;
    };

    void open_signals();
    bool start_ranks();
    void turn();
    void watch_everything();
    void watch(int descriptor, short events, Source source, std::size_t index);
    int milliseconds_to_next_deadline() const;
    void handle(const Watched& watched);

    void read_signals();
    void handle_signal(int number);
    void stop_and_continue();
    void collect_ended();
    void rank_ended(std::size_t index, const siginfo_t& how);
    bool others_go_on(std::size_t index, const siginfo_t& how);
    int code_of_the_lost() const;
    void look_at_pmi(std::size_t index);
    void look_at_guest();
    void heed(Job& job);
    // Jobs that ranks ask for.
    void spawn_what_is_wanted(Job& asking);
    std::string spawn(const job::SpawnRequest& request);
    std::string start_spawned(Job& job, int number);
    void adopt(const Started& started, const App& app, int job, int number,
               const std::string& prefix);
    void bury(Job& job);
    bool guest_is_here() const;
    void consider_abort();
    void check_membership();
    void check_sinks();
    std::string why_left(const Rank& rank) const;
    Membership membership(const Rank& rank) const;
    void check_deadlines();
    void pump_input();

    // Ends the job; the first reason counts, and is told on standard error.
    void end_job(int exit_code, const std::string& why, Tell when = Tell::at_the_end,
                 int signal_number = SIGTERM);
    void signal_ranks(int number);
    void finish_output();
    int still_running() const;
    // Who gets standard input, if anybody does.
    Rank& reader() { return ranks_[static_cast<std::size_t>(options_.input_rank)]; }
    // The first of the two forwarders of the rank that may prompt: who reads standard input.
    std::size_t prompting() const {
        return options_.input_rank > 0 ? 2 * static_cast<std::size_t>(options_.input_rank) : 0;
    }
    std::string name(const Rank& rank) const;
    void say(const std::string& sentence);

    Options options_;
    Binding binding_;
    GpuBinding gpus_;
    rlimit descriptors_{};
    int signals_ = -1;
    bool forward_terminal_ = false;
    std::string typed_;  // terminal input on its way to its reader
    Sink standard_output_;
    Sink standard_error_;
    std::string name_;
    job::Names names_;  // that ranks have published
    std::deque<Job> jobs_;
    Guard guard_;
    std::vector<Rank> ranks_;
    std::deque<Forwarder> forwarders_;
    std::vector<pollfd> polled_;
    std::vector<Watched> watched_;
    Phase phase_ = Phase::running;
    std::string reason_;                         // to be told at the end
    std::optional<int> exit_code_;               // the first that is not 0
    int lost_code_ = 0;                          // of the first rank that the others go on without
    std::optional<Clock::time_point> deadline_;  // of --timeout
    std::optional<Clock::time_point>
        abort_deadline_;  // until when an abort waits for news of a death
    std::optional<Clock::time_point> kill_deadline_;  // after the job was asked to end
};

// "signal 9 (SIGKILL, Killed)"
std::string signal_name(int number);

}  // namespace gantry::mpiexec
