// SPDX-License-Identifier: BSD-3-Clause
#include "job/rendezvous.hpp"

#include "base/config.hpp"
#include "job/rendezvous_server.hpp"
#include "job/store_text.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <thread>

namespace gantry::job {
namespace {

constexpr Nanoseconds kGrace = 5 * kSecond;  // for rank 0 to tell who is missing

// Waits for news of an abort for as long as the job lives. It touches nothing of the job.
class Lifeline {
  public:
    Lifeline(PmiWire wire, int rank)
        : wire_(std::move(wire)),
          owner_process_(getpid()),
          thread_([this, rank] { listen(rank); }) {}
    Lifeline(const Lifeline&) = delete;
    Lifeline& operator=(const Lifeline&) = delete;
    ~Lifeline() {
        if (getpid() != owner_process_) {  // a forked child has no such thread
            thread_.detach();
            return;
        }
        wire_.hang_up();
        thread_.join();
    }

  private:
    void listen(int rank) {
        const Result<PmiLine> news = wire_.wait_for_answer("lifeline", PmiWire::kForever);
        if (!news.ok()) return;  // the job has ended, or rank 0 has: messages with it fail
        const int code = news.value().number("exitcode").value_or(1);
        const std::string line =
            fmt::format("gantry: rank {}: rank {} ended the job with code {}: {}\n", rank,
                        news.value().text("rank"), code,
                        from_base64(news.value().text("text")).value_or("no reason given"));
        std::fwrite(line.data(), 1, line.size(), stderr);
        std::fflush(stderr);
        _exit((code & 255) != 0 ? code & 255 : 1);
    }

    PmiWire wire_;
    int owner_process_;
    std::thread thread_;
};

class RendezvousJob final : public PmiJob {
  public:
    static Result<std::unique_ptr<Job>> start(const Meeting& meeting) {
        std::unique_ptr<RendezvousServer> server;
        if (meeting.rank == 0) {
            auto started = RendezvousServer::start(meeting);
            GANTRY_TRY(started.status());
            server = std::move(started.value());
        }
        Result<Socket> connected =
            connect_to(meeting.place, meeting.patience, Retry::until_it_listens);
        if (!connected.ok())
            return failure(MPI_ERR_OTHER,
                           "{}. Is rank 0 running on that host, and does no firewall block the "
                           "port?",
                           connected.status().text());
        notice_when_its_host_is_gone(connected->descriptor(), meeting.silence);
        PmiWire wire(connected->release());
        GANTRY_TRY(
            wire.send(fmt::format("cmd=initack pmiid={} size={}\n", meeting.rank, meeting.size)));
        const Result<Welcome> welcome = read_welcome(wire, meeting.rank, meeting.patience + kGrace);
        GANTRY_TRY(welcome.status());
        Result<Socket> second = connect_to(meeting.place, meeting.patience, Retry::no);
        GANTRY_TRY(second.status());
        PmiWire lifeline(second->release());
        // Answered when it is held: from then on no abort is missed.
        const auto held =
            lifeline.ask(fmt::format("cmd=lifeline pmiid={}\n", meeting.rank), "lifeline");
        GANTRY_TRY(held.status());
        std::unique_ptr<RendezvousJob> job(
            new RendezvousJob(std::move(wire), meeting, std::move(server),
                              std::make_unique<Lifeline>(std::move(lifeline), meeting.rank)));
        GANTRY_TRY(job->open());
        return std::unique_ptr<Job>(std::move(job));
    }

    const char* launcher() const override { return name_; }

    Status finalize() override {
        const Status finalized = PmiJob::finalize();
        lifeline_.reset();
        server_.reset();  // stays until the others have finalized, too
        return finalized;
    }

  private:
    int serving_rank() const override { return 0; }

    RendezvousJob(PmiWire wire, const Meeting& meeting, std::unique_ptr<RendezvousServer> server,
                  std::unique_ptr<Lifeline> lifeline)
        : PmiJob(std::move(wire), meeting.rank, meeting.size),
          name_(meeting.name),
          server_(std::move(server)),
          lifeline_(std::move(lifeline)) {}

    const char* name_;
    std::unique_ptr<RendezvousServer> server_;
    std::unique_ptr<Lifeline> lifeline_;
};

// Of some 250 ranks. In larger jobs rank 0 is asked for each address when it is needed.
constexpr Bytes kMostOfCopies = 64 * kMiB;

// What is the same for every rank, and for any number of them.
Meeting meeting_by(const config::Config& config) {
    Meeting meeting;
    meeting.patience = config.rendezvous_timeout;
    meeting.silence = config.rendezvous_silence;
    meeting.copies = kMostOfCopies;
    return meeting;
}

std::optional<int> number_of(const char* variable) {
    const auto text = config::environment(variable);
    if (!text) return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{}) return std::nullopt;
    return value;
}

}  // namespace

Result<std::unique_ptr<Job>> meet(const Meeting& meeting) {
    Result<std::unique_ptr<Job>> job = RendezvousJob::start(meeting);
    if (!job.ok())
        return job.status().with(fmt::format("rank {} of {} at the rendezvous {}", meeting.rank,
                                             meeting.size, meeting.place));
    return job;
}

Result<std::optional<Meeting>> explicit_meeting(const config::Config& config) {
    if (config.rendezvous.empty() && config.rank < 0 && config.size == 0)
        return std::optional<Meeting>();
    if (config.rendezvous.empty() || config.size < 1 || config.size > INT32_MAX ||
        config.rank < 0 || config.rank >= config.size)
        return failure(
            MPI_ERR_OTHER,
            "GANTRY_RENDEZVOUS is '{}', GANTRY_RANK {} and GANTRY_SIZE {}: a job without "
            "a launcher needs all three, the same host:port and size for every rank, and "
            "a rank of its own from 0 to size - 1 for each",
            config.rendezvous, config.rank, config.size);
    Meeting meeting = meeting_by(config);
    meeting.place = config.rendezvous;
    meeting.rank = static_cast<int>(config.rank);
    meeting.size = static_cast<int>(config.size);
    return std::optional(meeting);
}

std::string first_host(std::string_view node_list) {
    const std::size_t end = node_list.find_first_of(",[");
    std::string host(node_list.substr(0, end));
    if (end == std::string_view::npos || node_list[end] == ',') return host;
    node_list.remove_prefix(end + 1);
    host.append(node_list.substr(0, node_list.find_first_of("-,]")));
    // What stands behind the bracket belongs to every name: "n[1-2]-ib".
    node_list.remove_prefix(std::min(node_list.find(']'), node_list.size() - 1) + 1);
    host.append(node_list.substr(0, node_list.find(',')));
    return host;
}

Result<std::optional<Meeting>> slurm_meeting(const config::Config& config) {
    const auto rank = number_of("SLURM_PROCID");
    const auto size = number_of("SLURM_STEP_NUM_TASKS");
    const auto step = number_of("SLURM_STEP_ID");
    const auto job = number_of("SLURM_JOB_ID");
    const auto nodes = config::environment("SLURM_STEP_NODELIST");
    // A batch script has a job but no step: what it starts itself is alone.
    if (!rank || !size || !step || !job || !nodes || *size < 2) return std::optional<Meeting>();
    // Below the ports that systems hand out by themselves; every rank computes the same one.
    constexpr unsigned kFirstPort = 15000, kPorts = 17000;
    const unsigned port =
        number_of("SLURM_STEP_RESV_PORTS")
            .value_or(static_cast<int>(kFirstPort + (static_cast<unsigned>(*job) * 131u +
                                                     static_cast<unsigned>(*step) * 17u) %
                                                        kPorts));
    Meeting meeting = meeting_by(config);
    meeting.place = fmt::format("{}:{}", first_host(*nodes), port);
    meeting.rank = *rank;
    meeting.size = *size;
    meeting.name = "slurm";
    return std::optional(meeting);
}

}  // namespace gantry::job
