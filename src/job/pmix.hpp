// SPDX-License-Identifier: BSD-3-Clause
//
// The job of a PMIx launcher: prterun, Open MPI's mpirun, srun --mpi=pmix. libpmix is loaded at run
// time (pmix_library.hpp). A fence is PMIx_Fence_nb: the library's own thread sets a flag, and
// progress() completes the waiting task. Values are byte objects, so no limit applies to them. Other jobs:
// pmix_spawn.cpp; ranks that die: pmix_deaths.cpp.
#pragma once

#include "job/job.hpp"
#include "job/pmix_library.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>

namespace gantry::job {

class PmixJob final : public Job {
  public:
    static Result<std::unique_ptr<Job>> start(pmix::Library library);

    const char* launcher() const override { return "pmix"; }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    std::string_view id() const override { return id_; }
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

  private:
    // Lives until the library has called back, from a thread of its own, even if the job does not.
    struct Question {
        std::atomic<bool> done{false};
        pmix::Code code = 0;
        std::string text;  // what was looked up
        void end(pmix::Code how) {
            code = how;
            // Pairs with the acquire in progress(): the code is there when the flag is seen.
            done.store(true, std::memory_order_release);
        }
        // `held`: a std::shared_ptr<Question> of its own.
        static void answered(pmix::Code code, void* held);
        static void spawned(pmix::Code code, char* nspace, void* held);
        static void found(pmix::Code code, pmix::Published* published, std::size_t count,
                          void* held);
    };
    // Asks by `call(held)` and waits for the answer, which is in `asked_` when the task ends well.
    Task<Status> consult(Executor& executor, std::function<pmix::Code(void* held)> call,
                         int error_class, std::string attempt);

    // What the library's thread tells of ranks that have died; it is there until PMIx_Finalize.
    struct Obituaries;

    PmixJob(pmix::Library library, const pmix::Proc& self);
    void forget_deaths();
    Status open();
    Status read_nodes();
    Status exchange_hosts();
    Status start_fence();
    Status failed(std::string_view attempt, pmix::Code code) const;
    pmix::Proc proc(std::uint32_t rank) const;
    // What the launcher says of itself: nothing when it does not say.
    pmix::Value* known(std::uint32_t rank, const char* key) const;  // null: nobody said it
    bool says(std::uint32_t rank, const char* key) const;
    std::optional<std::int64_t> number(std::uint32_t rank, const char* key) const;
    std::optional<std::string> text(std::uint32_t rank, const char* key) const;

    pmix::Library library_;
    pmix::Proc self_;
    int rank_;
    int size_ = 1;
    int owner_process_;
    int app_number_ = -1;
    int universe_size_ = -1;
    std::string id_;
    std::vector<int> nodes_;
    bool finalized_ = false;
    std::uint64_t number_ = 0;  // of this job, where it is told of deaths
    Obituaries* obituaries_ = nullptr;
    std::shared_ptr<Question> fence_, asked_;
    Completion *fenced_ = nullptr, *answered_ = nullptr;
    bool asking_ = false;                                    // in consult(): others wait
    std::map<std::string, std::string, std::less<>> cache_;  // values that were fetched
};

// The job that PMIX_NAMESPACE names; null when it is not set. `named` is GANTRY_PMIX_LIBRARY.
Result<std::unique_ptr<Job>> discover_pmix(const std::string& named);

}  // namespace gantry::job
