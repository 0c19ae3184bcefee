// SPDX-License-Identifier: BSD-3-Clause
//
// The job of a PMI-1 launcher: Hydra, gforker, Intel MPI, Slurm's pmi2 plug-in (which also speaks
// PMI-1) and our own mpiexec. Values of any size are split into pieces below the launcher's longest
// value (store_text.hpp). Puts stay here until the fence, which sends them one by one and then
// waits in the launcher's barrier without blocking: progress() reads the answers. Ranks that die:
// pmi_deaths.cpp.
#pragma once

#include "job/job.hpp"
#include "job/pmi_wire.hpp"

#include <map>
#include <utility>

namespace gantry::job {

class PmiJob : public Job {
  public:
    // Speaks the opening of the protocol. `rank` and `size` are what the environment said.
    static Result<std::unique_ptr<Job>> start(PmiWire wire, int rank, int size);
    ~PmiJob() override;

    const char* launcher() const override { return "pmi"; }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    std::string_view id() const override { return kvs_; }
    const std::vector<int>& nodes() const override { return nodes_; }
    int app_number() const override { return app_number_; }
    int universe_size() const override { return universe_size_; }
    Status put(std::string_view key, std::string_view value) override;
    Task<Status> fence(Executor& executor) override;
    Result<std::string> get(int rank, std::string_view key) override;
    int progress() override;
    Task<Status> spawn(Executor& executor, SpawnOrder order) override;
    Result<std::string> parent_port() override;
    Task<Status> publish_name(Executor& executor, std::string name, std::string port) override;
    Task<Status> unpublish_name(Executor& executor, std::string name) override;
    Task<Status> lookup_name(Executor& executor, std::string name, std::string* port) override;
    bool watch_deaths(std::uint64_t number) override;
    std::vector<Death> deaths() override;
    void abort(int exit_code, std::string_view reason) override;
    Status finalize() override;

  protected:
    PmiJob(PmiWire wire, int rank, int size);
    Status open();
    // The rank whose process serves the others; -1: a launcher does.
    virtual int serving_rank() const { return -1; }

  private:
    Status read_nodes();
    Status exchange_hosts();
    std::string piece_name(int rank, std::string_view key, std::size_t piece) const;
    Task<Status> copy_store(Executor& executor);
    Result<std::string> get_piece(const std::string& name);
    Status find_name_server() const;
    std::vector<Death> deaths_by_lines();
    std::vector<Death> deaths_by_signal();
    Result<std::vector<int>> dead_processes();
    // One question; the answer is in `answer_` when the task ends well.
    Task<Status> consult(Executor& executor, std::string line);
    // The same, and the answer must be that one.
    Task<Status> ask(Executor& executor, std::string line, std::string_view expected);

    PmiWire wire_;
    int rank_;
    int size_;
    int owner_process_;
    int app_number_ = -1;
    int universe_size_ = -1;
    std::string kvs_;
    std::size_t longest_key_ = 64;
    std::size_t longest_value_ = 1024;
    std::vector<int> nodes_;
    bool takes_abort_text_ = false;  // our own server, which prints the reason
    bool offers_deaths_ = false;     // our own server, if the others go on
    bool offers_copies_ = false;     // a server that may end before this rank
    enum class Told {
        not_asked,
        by_lines,
        by_signal,
        nothing
    } told_ = Told::not_asked;  // of deaths
    std::uint64_t number_ = 0;  // of this job, where it is told of deaths
    bool served_ = true;        // false: the rank that served the others has died
    bool finalized_ = false;
    bool asking_ = false;                                       // in consult(): others wait
    std::vector<std::pair<std::string, std::string>> pending_;  // pieces not sent yet, in order
    std::map<std::string, std::string, std::less<>> cache_;     // values that were fetched
    std::map<std::string, std::string, std::less<>> copied_;    // pieces of the store, by name
    Completion* answered_ = nullptr;
    std::optional<PmiLine> answer_;
};

// The launcher's answer to "cmd=initack": who the process is. `rank` is its own opinion.
struct Welcome {
    int rank = 0;
    int size = -1;
};
Result<Welcome> read_welcome(PmiWire& wire, int rank, Nanoseconds patience);

// The job that PMI_FD or PMI_PORT name; null when neither is set.
Result<std::unique_ptr<Job>> discover_pmi();

}  // namespace gantry::job
