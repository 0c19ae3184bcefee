// SPDX-License-Identifier: BSD-3-Clause
//
// The engine of a real process: configuration from the environment, the launcher's job, the CUDA
// device, self, shared memory and, where that does not reach everybody, the network.
#include "mpi/engine/engine.hpp"

#include "base/log.hpp"
#include "device/discover.hpp"
#include "mpi/engine/pending.hpp"
#include "mpi/engine/process.hpp"
#include "transport/self/self.hpp"
#include "transport/shm/shm.hpp"
#include "transport/ucx/ucx.hpp"

#include <cstdlib>

namespace gantry::mpi {
namespace {

// Processes of other jobs are reached by shared memory. What each process shares once lies in the first
// such transport, its home.
class WaysBySharedMemory final : public WaysToOthers {
  public:
    WaysBySharedMemory(const Clock& clock, const config::Config& config,
                       transport::shm::ShmTransport* home)
        : clock_(clock), config_(config), home_(home) {}
    std::unique_ptr<transport::Transport> missing() override {
        if (home_ != nullptr) return nullptr;
        auto made = std::make_unique<transport::shm::ShmTransport>(clock_, config_);
        home_ = made.get();
        return made;
    }
    std::unique_ptr<transport::Transport> to(std::vector<int> peers) override {
        return std::make_unique<transport::shm::ShmTransport>(clock_, config_, *home_,
                                                              std::move(peers));
    }

  private:
    const Clock& clock_;
    const config::Config& config_;
    transport::shm::ShmTransport* home_;
};

Result<std::unique_ptr<Engine>> discover_engine() {
    Result<config::Config> config = config::from_environment(process().settings);
    if (!config.ok()) return std::move(config).status();
    GANTRY_TRY(plan::mechanisms_from(config->mechanisms).status());
    if (const std::optional<log::Level> level = log::level_named(config->log))
        log::set_level(*level);
    Parts parts;
    parts.config = std::make_unique<config::Config>(std::move(*config));
    parts.clock = std::make_unique<SteadyClock>();
    parts.executor = std::make_unique<Executor>(*parts.clock);
    Result<std::unique_ptr<job::Job>> job = job::discover(*parts.config);
    if (!job.ok()) return std::move(job).status();
    parts.job = std::move(*job);
    Result<std::unique_ptr<device::Device>> device =
        device::discover(*parts.executor, *parts.config);
    if (!device.ok()) return std::move(device).status();
    parts.device = std::move(*device);
    parts.transports.push_back(std::make_unique<transport::self::SelfTransport>(parts.job->rank()));
    const bool shares_memory = parts.config->shm && parts.job->local_size() > 1;
    transport::shm::ShmTransport* home = nullptr;
    if (shares_memory) {
        auto made = std::make_unique<transport::shm::ShmTransport>(*parts.clock, *parts.config);
        home = made.get();
        parts.transports.push_back(std::move(made));
    }
    if (parts.config->shm)
        parts.others = std::make_unique<WaysBySharedMemory>(*parts.clock, *parts.config, home);
    // A job that shared memory holds together runs without UCX installed.
    if (parts.job->size() > (shares_memory ? parts.job->local_size() : 1)) {
        device::RankGpu gpu = parts.device->gpu_of_rank(parts.job->local_rank());
        parts.transports.push_back(std::make_unique<transport::ucx::UcxTransport>(
            *parts.clock, *parts.config,
            transport::ucx::RankGpu{std::move(gpu.pci_address), gpu.in_use}));
    }
    return std::make_unique<Engine>(std::move(parts));
}

// Sessions may be opened again and again: with them the engine stays until the process ends.
void leave_at_exit() {
    Process& p = process();
    if (p.forked || p.running() || !p.engine->started()) return;
    Status left = wait(Pending(*p.engine, p.engine->leave(p.engine->executor())));
    if (!left.ok()) log::info("mpi: leaving the job: {}", left.text());
}

}  // namespace

Status need_engine() {
    Process& p = process();
    if (p.forked)
        return failure(MPI_ERR_OTHER,
                       "this process was forked after its parent had used MPI; start it with exec "
                       "or the launcher");
    if (p.engine != nullptr) return success();
    Result<std::unique_ptr<Engine>> engine = discover_engine();
    if (!engine.ok()) return std::move(engine).status();
    p.engine = std::move(*engine);
    log::set_identity(fmt::format("rank {}", p.engine->rank()));
    std::atexit(leave_at_exit);
    return success();
}

}  // namespace gantry::mpi
