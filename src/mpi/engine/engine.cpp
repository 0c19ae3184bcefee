// SPDX-License-Identifier: BSD-3-Clause
//
// Starting, driving and ending an engine.
#include "mpi/engine/engine.hpp"

#include "base/log.hpp"
#include "base/yield.hpp"
#include "coll/barrier.hpp"
#include "faults/wire.hpp"
#include "io/file.hpp"
#include "job/node_map.hpp"
#include "mpi/dynamic/ports.hpp"
#include "mpi/engine/job_costs.hpp"
#include "mpi/faults/faults.hpp"
#include "rma/windows.hpp"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace gantry::mpi {
namespace {

// Of the whole node: a launcher may bind each rank to a processor of its own, and the mask of one
// says nothing about how many share it. Who shares one after all learns it (base/patience.hpp).
bool crowded(int local_ranks) {
    return local_ranks > sysconf(_SC_NPROCESSORS_ONLN);
}

std::vector<transport::Transport*> addresses(
    const std::vector<std::unique_ptr<transport::Transport>>& owned) {
    std::vector<transport::Transport*> list;
    for (const auto& transport : owned)
        list.push_back(transport.get());
    return list;
}

// What the ranks must know alike, as rank 0 has it. Plain data: it travels as bytes.
constexpr std::string_view kJobWide = "job";
struct JobWide {
    coll::JobWide collectives;
    std::uint64_t identity = 0;
    bool checks = false;  // else some would wait for what others say before a collective
};

std::string_view bytes_of(const JobWide& job) {
    static_assert(std::is_trivially_copyable_v<JobWide>);
    return {reinterpret_cast<const char*>(&job), sizeof job};
}

// No two jobs have the same, whoever started them.
std::uint64_t draw_identity(const job::Job& job) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    const std::string told = fmt::format("{} {} {} {} {}", job.id(), getpid(), now.tv_sec,
                                         now.tv_nsec, job::host_mark());
    for (const char each : told)
        hash = (hash ^ static_cast<unsigned char>(each)) * 1099511628211u;
    return hash | 1;
}

}  // namespace

Status Engine::learn_job_wide() {
    collectives_.nodes = parts_.job->nodes();
    if (rank() == 0) return success();
    Result<std::string> told = parts_.job->get(0, kJobWide);
    GANTRY_TRY(told.status());
    JobWide job;
    if (told->size() != sizeof job)
        return failure(MPI_ERR_OTHER,
                       "rank 0 tells {} bytes about the job where this rank expects {}: the ranks "
                       "of a job must run the same version of Gantry",
                       told->size(), sizeof job);
    std::memcpy(&job, told->data(), told->size());
    collectives_.job = job.collectives;
    job_identity_ = job.identity;
    checks_.turn(job.checks);
    return success();
}

Engine::Engine(Parts parts)
    : parts_(std::move(parts)),
      explain_(parts_.config->explain || !parts_.config->explain_file.empty()),
      timeline_(parts_.config->trace_file.empty()
                    ? nullptr
                    : std::make_unique<Timeline>(
                          *parts_.clock, static_cast<std::uint64_t>(parts_.config->trace_events))),
      checks_(parts_.config->check),
      collectives_(*parts_.config, &explain_),
      planner_(&collectives_),
      outsiders_(*this),
      ports_(std::make_unique<Ports>()),
      submission_queue_(*this),
      requests_(*this),
      universe_size_(parts_.job->size()),
      app_number_(parts_.job->app_number()),
      patience_(crowded(parts_.job->local_size()) ? 0 : parts_.config->spin) {
    everybody_.context = kEngineContext | p2p::kCollectiveContext;
    everybody_.rank = rank();
    for (int peer = 0; peer < size(); ++peer)
        everybody_.peers.push_back(peer);
    alone_.context = kAloneContext | p2p::kCollectiveContext;
    alone_.peers = {rank()};
}

Engine::~Engine() = default;

coll::Team Engine::alone() {
    const int tag = static_cast<int>(copies_++ & 0x3fff'ffff);
    return {messenger_.get(), transfer_.get(), &alone_, tag, 0, -1, 0, &planner_};
}

Task<Status> Engine::start(Executor& executor) {
    for (const auto& transport : parts_.transports) {
        Status published = transport->publish(*parts_.job);
        GANTRY_CO_TRY(published);
    }
    if (rank() == 0) {
        collectives_.job.facts = job_costs(parts_);
        job_identity_ = draw_identity(*parts_.job);
        const JobWide job{collectives_.job, job_identity_, checks_.on()};
        Status told = parts_.job->put(kJobWide, bytes_of(job));
        GANTRY_CO_TRY(told);
    }
    Status fenced = co_await parts_.job->fence(executor);
    GANTRY_CO_TRY(fenced);
    // Transports deliver to it; whom they reach is asked when they are open.
    transfer_ = std::make_unique<transfer::Context>(*parts_.executor, *parts_.device,
                                                    addresses(parts_.transports), rank(), size(),
                                                    *parts_.config, explain_, timeline_.get());
    for (const auto& transport : parts_.transports) {
        Status opened = transport->open(*parts_.job, transfer_->messages);
        GANTRY_CO_TRY(opened);
    }
    messenger_ = std::make_unique<p2p::Messenger>(*transfer_);
    agreements_ = std::make_unique<faults::Agreements>(*transfer_, *messenger_);
    contacts_ = std::make_unique<faults::Contacts>(*transfer_);
    revocations_ = std::make_unique<faults::Revocations>(
        *transfer_, *messenger_, [this](std::uint32_t context) {
            std::vector<int> members = end_revoked(context);
            return members.empty() ? files_->members_of(context) : members;
        });
    Status learned = learn_job_wide();
    GANTRY_CO_TRY(learned);
    if (checks_.on()) messenger_->carry_signatures(checks_);
    windows_ = std::make_unique<rma::Windows>(*transfer_, *messenger_);
    files_ = std::make_unique<io::Files>(*transfer_, *messenger_, *windows_, collectives_);
    files_->give_up_by([this](std::uint32_t context) {
        revocations_->revoke(context, faults::wire::RevokedBy::death);
        return !revocations_->is_by_program(context);
    });
    for (const auto& transport : parts_.transports)
        if (transport->holds_back()) holding_back_.push_back(transport.get());
    started_ = true;
    death_watch_.begin(*parts_.job, job_identity_);
    co_return success();
}

// The launcher says so.
void Engine::on_death(const job::Death& death) {
    const bool is_ours = death.job == job_identity_;
    const int peer = is_ours ? death.rank : outsiders_.find({death.job, death.rank});
    if (peer >= 0 && peer != rank() && (!is_ours || peer < size())) {
        transfer::Endpoint& endpoint = transfer_->endpoints.to(peer);
        const Status why =
            failure(MPI_ERR_PROC_ABORTED,
                    "rank {} has ended without leaving MPI: the launcher says so", peer);
        if (endpoint.lost.ok() && endpoint.transport != nullptr)
            endpoint.transport->peer_died(peer, why);
        if (endpoint.lost.ok()) transfer_->messages.on_peer_lost(peer, why);
    }
    // It may have been the rank that told of the others.
    if (!parts_.job->watch_deaths(job_identity_)) contacts_->make(everybody_.peers);
}

coll::Common& Engine::collectives_between_jobs() {
    if (between_jobs_ == nullptr) {
        between_jobs_ = std::make_unique<coll::Common>(config(), &explain_);
        // What the other job's processes were told of collectives is not known here.
        between_jobs_->job = {};
    }
    return *between_jobs_;
}

Task<Status> Engine::make_way(Executor& executor, std::vector<int> peers,
                              std::unique_ptr<transport::Transport>* made) {
    if (parts_.others == nullptr)
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                          "this engine has no way to processes of other jobs");
    if (std::unique_ptr<transport::Transport> missing = parts_.others->missing()) {
        Status opened = missing->publish(*parts_.job);
        GANTRY_CO_TRY(opened);
        opened = missing->open(*parts_.job, transfer_->messages);
        GANTRY_CO_TRY(opened);
        // Slots that nobody else saw are given up for those that others see.
        while (!transfer_->pools.drop_private_slots())
            co_await Yield(executor);
        transfer_->add_transport(*missing);
        parts_.transports.push_back(std::move(missing));
    }
    *made = parts_.others->to(std::move(peers));
    co_return success();
}

Task<Status> Engine::need_start(Executor& executor) {
    while (starting_)
        co_await Yield(executor);
    if (started_) co_return success();
    starting_ = true;
    Status result = co_await start(executor);
    starting_ = false;
    co_return result;
}

Task<Status> Engine::stop(Executor& executor) {
    Status drained = co_await messenger_->drain(executor);
    GANTRY_CO_TRY(drained);
    Status met = co_await meet_at_the_end(executor);
    GANTRY_CO_TRY(met);
    if (rank() == 0) transfer_->arbiter.say_what_stood_idle();
    Status left = co_await leave(executor);
    co_return left;
}

// Behind it nobody waits for a message of ours any more. Where a rank has died, those that live meet; whoever
// met before that has left.
Task<Status> Engine::meet_at_the_end(Executor& executor) {
    const coll::Team everybody{messenger_.get(), transfer_.get(), &everybody_, 0, 0, -1, 0,
                               &planner_};
    Status met = co_await coll::barrier(executor, everybody);
    if (met.ok()) co_return met;
    faults::Agreements::Call call;
    call.context = kEngineContext;
    call.peers = everybody_.peers;
    call.rank = everybody_.rank;
    call.mine.failed = call.mine.acknowledged = faults::MemberSet(everybody_.size());
    call.without_those_who_left = true;
    faults::Decision decided;
    met = co_await agreements_->agree(executor, std::move(call), &decided);
    co_return met;
}

Task<Status> Engine::leave(Executor& executor) {
    held_partitions_.give_up();
    Status drained = co_await messenger_->drain(executor);
    GANTRY_CO_TRY(drained);
    while (files_->pending())
        co_await Yield(executor);
    Status read = co_await transfer_->node_segment.all_read(executor);
    GANTRY_CO_TRY(read);
    write_explanation();
    write_timeline();
    if (submission_queue_.count() > 0)
        log::info("mpi: {} sends and receives were left to the progress thread, {} taken from it",
                  submission_queue_.count(), submission_queue_.taken());
    Status parted = co_await outsiders_.close_all(executor);
    if (!parted.ok()) log::info("mpi: parting from other jobs: {}", parted.text());
    for (const auto& transport : parts_.transports) {
        Status closed = co_await transport->close(executor);
        if (!closed.ok()) log::info("mpi: closing {}: {}", transport->name(), closed.text());
    }
    transfer_->anchors.end();
    parts_.device->shut_down();
    holding_back_.clear();
    death_watch_.end();
    started_ = false;
    stopped_ = true;
    co_return parts_.job->finalize();
}

int Engine::progress() {
    if (!started_) return parts_.job->progress() + executor().run_ready();  // the fence of start()
    int events = messenger_->progress();
    events += windows_->progress();
    events += files_->progress();
    events += requests_.progress();
    if (!held_partitions_.empty()) events += held_partitions_.send();
    death_watch_.turn([this](const job::Death& death) { on_death(death); });
    return events;
}

bool Engine::pending() const {
    return started_ && (messenger_->pending() || windows_->pending() || files_->pending());
}

int Engine::progress_in_background() {
    if (!started_) return 0;
    executor().set_background(true);
    const int started = submission_queue_.start();
    const int events = messenger_->progress() + windows_->progress() + files_->progress();
    death_watch_.turn([this](const job::Death& death) { on_death(death); });
    executor().set_background(false);
    return started + events;
}

void Engine::rest_unless(bool something_happened, EngineLock* others) {
    if (something_happened) return patience_.rewarded();
    if (!patience_.exhausted()) return;
    const Nanoseconds since = clock().now();
    if (others != nullptr) others->leave();
    sched_yield();
    if (others != nullptr) others->enter();
    patience_.yielded(clock().now() - since);
}

int Engine::spare_processors() const {
    const long share = sysconf(_SC_NPROCESSORS_ONLN) / parts_.job->local_size();
    cpu_set_t bound;
    const bool known = sched_getaffinity(0, sizeof bound, &bound) == 0;
    return static_cast<int>(known ? std::min<long>(share, CPU_COUNT(&bound)) : share) - 1;
}

void Engine::write_explanation() {
    if (!explain_.on()) return;
    const device::Device::Resident resident = parts_.device->resident();
    if (resident.launches > 0)
        explain_.note(
            fmt::format("small device copies taken by persistent kernels: {} (launched: {}; "
                        "GANTRY_IDLE_TIMEOUT)",
                        resident.copies, resident.launches));
    for (int peer = 0; peer < transfer_->endpoints.size(); ++peer) {
        const transfer::Endpoint* const known = transfer_->endpoints.known(peer);
        if (known != nullptr && transfer::RailScheduler::serves(*known))
            explain_.note(transfer::RailScheduler::sentence(*known, parts_.config->rails));
    }
    const Status written = explain_.write(rank(), parts_.config->explain_file);
    if (!written.ok()) log::warn("mpi: the record of paths is lost: {}", written.text());
}

void Engine::write_timeline() {
    if (timeline_ == nullptr) return;
    const Status written = timeline_->write(rank(), parts_.config->trace_file);
    if (!written.ok()) log::warn("mpi: the timeline is lost: {}", written.text());
}

}  // namespace gantry::mpi
