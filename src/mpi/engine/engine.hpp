// SPDX-License-Identifier: BSD-3-Clause
//
// Engine: everything that one MPI process consists of. The product makes one, from the
// launcher's job, the CUDA device and the real transports; tests make many in one process, also
// from fakes. Starting and stopping communicate, so they are Tasks.
#pragma once

#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/counters.hpp"
#include "base/executor.hpp"
#include "base/engine_lock.hpp"
#include "base/patience.hpp"
#include "base/timeline.hpp"
#include "coll/planner.hpp"
#include "coll/team.hpp"
#include "device/device.hpp"
#include "faults/agreement.hpp"
#include "faults/contacts.hpp"
#include "faults/revocations.hpp"
#include "job/job.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/dynamic/outsiders.hpp"
#include "mpi/engine/death_watch.hpp"
#include "mpi/engine/submission_queue.hpp"
#include "mpi/partitioned/send.hpp"
#include "mpi/request/requests.hpp"
#include "p2p/messenger.hpp"
#include "transfer/context.hpp"
#include "plan/explain.hpp"
#include "transport/transport.hpp"

#include <memory>
#include <vector>

namespace gantry::rma {
class Windows;
}
namespace gantry::io {
class Files;
}

namespace gantry::mpi {

// How processes of other jobs are reached, when they come.
class WaysToOthers {
  public:
    virtual ~WaysToOthers() = default;
    // What the engine has to have as one of its own transports before the first one to others; null: it
    // has all.
    virtual std::unique_ptr<transport::Transport> missing() = 0;
    // To processes of several jobs: what this one calls each of them (-1: it is reached another way).
    virtual std::unique_ptr<transport::Transport> to(std::vector<int> peers) = 0;
};

class Ports;

// Contexts that exist without agreement.
inline constexpr std::uint32_t kWorldContext = 1;
inline constexpr std::uint32_t kSelfContext = 2;
inline constexpr std::uint32_t kEngineContext = 3;
inline constexpr std::uint32_t kAloneContext = 4;
inline constexpr std::uint64_t kFirstContext = 16;
// Those of communicators with members of several jobs.
inline constexpr std::uint32_t kFirstSharedContext = 0x1000'0000u;

// What an engine is made of.
struct Parts {
    // By address, since the parts below may refer to them.
    std::unique_ptr<config::Config> config;
    std::unique_ptr<Clock> clock;
    std::unique_ptr<Executor> executor;
    std::unique_ptr<job::Job> job;
    std::unique_ptr<device::Device> device;
    std::vector<std::unique_ptr<transport::Transport>> transports;  // in order of preference
    std::unique_ptr<WaysToOthers> others;                           // null: there are none
};

class Engine {
  public:
    explicit Engine(Parts parts);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Wires up with every rank: publish, fence, open.
    Task<Status> start(Executor& executor);
    // Ends together with every rank: what was sent has left, nobody needs us any more.
    Task<Status> stop(Executor& executor);
    // The same without waiting for others, when it is known that nobody will send to us.
    Task<Status> leave(Executor& executor);
    // One turn of everything; returns how much happened.
    int progress();
    // One turn between two calls of the program, by the progress thread: what only the program's
    // own threads may do (its functions, handles) is left to its next call.
    int progress_in_background();
    // Whether such a turn may be of use.
    bool pending() const;
    // For somebody who waits: a turn, and when it brought nothing a closer look at the network.
    int progress_waiting() {
        const int events = progress();
        return events == 0 && started_ ? messenger_->look_again() : events;
    }
    // Lets go of messages that transports hold back for company.
    void flush() {
        for (transport::Transport* transport : holding_back_)
            transport->flush();
    }
    // Called after each poll of somebody who waits: after many empty ones it lets other processes
    // run, at once when ranks outnumber processors. `others`: what it opens meanwhile, for threads of
    // this one.
    void rest_unless(bool something_happened, EngineLock* others = nullptr);
    // Whether whoever waits offers its processor at once.
    bool is_crowded() const { return patience_.limit() == 0; }
    // Processors that the node has for this process beside one.
    int spare_processors() const;
    // Started, by whoever comes first.
    Task<Status> need_start(Executor& executor);
    bool started() const { return started_; }
    bool stopped() const { return stopped_; }

    int rank() const { return parts_.job->rank(); }
    int size() const { return parts_.job->size(); }
    const config::Config& config() const { return *parts_.config; }
    // Changes one of the parameters that may change while the engine runs.
    Status set_parameter(std::string_view name, std::string_view value);
    // What was counted; all but the phase, which is the process's.
    Counters counters() const;
    void begin_peaks_anew();
    const Clock& clock() const { return *parts_.clock; }
    bool explains() const { return explain_.on(); }
    Timeline* timeline() { return timeline_.get(); }
    Executor& executor() { return *parts_.executor; }
    job::Job& job() { return *parts_.job; }
    device::Device& device() { return *parts_.device; }
    transfer::Context& transfer() { return *transfer_; }
    p2p::Messenger& messenger() { return *messenger_; }
    coll::Common& collectives() { return collectives_; }
    // Of communicators with outsiders: what every job knows alike.
    coll::Common& collectives_between_jobs();
    Outsiders& outsiders() { return outsiders_; }
    Ports& ports() { return *ports_; }
    // The same for all of the job, and no other job has it.
    std::uint64_t job_identity() const { return job_identity_; }
    // A transport to outsiders, not published yet.
    Task<Status> make_way(Executor& executor, std::vector<int> peers,
                          std::unique_ptr<transport::Transport>* made);
    faults::Agreements& agreements() { return *agreements_; }
    faults::Revocations& revocations() { return *revocations_; }
    rma::Windows& windows() { return *windows_; }
    io::Files& files() { return *files_; }
    Requests& requests() { return requests_; }
    SubmissionQueue& submission_queue() { return submission_queue_; }
    Checks& checks() { return checks_; }
    HeldPartitions& held_partitions() { return held_partitions_; }
    // The value of the attribute MPI_UNIVERSE_SIZE, at an address that stays.
    const int* universe_size() const { return &universe_size_; }
    // The same of MPI_APPNUM; null: the launcher does not say.
    const int* app_number() const { return app_number_ >= 0 ? &app_number_ : nullptr; }

    // This rank alone, for copies between buffers of any kind: messages to itself, each under a tag
    // of its own.
    coll::Team alone();

    // A context id that no other rank of the job has or will have (context.cpp).
    Result<std::uint32_t> new_context();
    // Of a communicator with outsiders, whose members must find one that is free for all of them: one that
    // is free here, larger than all before; and takes that one. False: it is not free here.
    std::uint32_t propose_shared_context() const { return next_shared_context_; }
    bool take_shared_context(std::uint32_t context);

  private:
    void write_explanation();
    void write_timeline();
    Status learn_job_wide();
    void on_death(const job::Death& death);
    Task<Status> meet_at_the_end(Executor& executor);

    Parts parts_;
    plan::Explain explain_;
    std::unique_ptr<Timeline> timeline_;  // null: nobody traces
    Checks checks_;
    coll::Common collectives_;
    coll::Planner planner_;                        // of collectives of the engine itself
    std::unique_ptr<transfer::Context> transfer_;  // what moves the bytes of messages and windows
    std::unique_ptr<p2p::Messenger> messenger_;
    std::unique_ptr<faults::Agreements> agreements_;
    std::unique_ptr<faults::Revocations> revocations_;
    std::unique_ptr<faults::Contacts> contacts_;
    std::unique_ptr<rma::Windows> windows_;
    std::unique_ptr<io::Files> files_;
    std::vector<transport::Transport*> holding_back_;  // while started: most jobs have none
    std::unique_ptr<coll::Common> between_jobs_;
    Outsiders outsiders_;
    DeathWatch death_watch_;
    std::unique_ptr<Ports> ports_;
    std::uint64_t job_identity_ = 0;
    std::uint32_t next_shared_context_ = kFirstSharedContext;
    SubmissionQueue
        submission_queue_;  // outlives the requests: those that end give their slots back
    HeldPartitions held_partitions_;
    Requests requests_;
    p2p::Group everybody_;  // the engine's own group of all ranks, for its end
    p2p::Group alone_;
    std::uint32_t copies_ = 0;
    std::uint64_t contexts_taken_ = 0;
    int universe_size_ = 0;
    int app_number_ = -1;
    Patience patience_;
    bool starting_ = false;
    bool started_ = false;
    bool stopped_ = false;
};

// Whether a parameter may change while an engine runs; all others are read as it starts.
bool may_change(std::string_view parameter);

// Sees to it that the process has its engine: its launcher, its GPUs, its ways to the other ranks.
// MPI_Finalize makes it leave the job, or, when sessions use it, the end of the process.
Status need_engine();

}  // namespace gantry::mpi
