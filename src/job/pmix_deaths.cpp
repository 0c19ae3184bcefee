// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that die in a job that goes on, as a PMIx launcher tells it: by an event, from a thread of the library.
// PRRTE does so with `--runtime-options recoverable,notifyerrors`; a launcher that does not tells nothing, and
// transports notice by themselves. Only of this job: processes of others are reached by shared memory, which
// looks at the process itself.
#include "base/log.hpp"
#include "job/pmix.hpp"

#include <cstring>
#include <mutex>

namespace gantry::job {

struct PmixJob::Obituaries {
    explicit Obituaries(const pmix::Proc& self) : us(self) {}

    // Read by the library also after the call that names them.
    pmix::Code events[4] = {pmix::kProcAborted, pmix::kProcTermWithoutSync,
                            pmix::kProcKilledByCommand, pmix::kProcAbortedBySignal};
    pmix::Info ourselves{};  // comes back with each event
    const pmix::Proc us;
    std::atomic<bool> news{false};
    std::mutex mutex;
    std::vector<int> ranks;

    static constexpr const char* kOurselves = "pmix.evobject";
    static constexpr const char* kAffected = "pmix.evproc";

    static void on_event(std::size_t, pmix::Code, const pmix::Proc* source, pmix::Info* infos,
                         std::size_t count, pmix::Info*, std::size_t, pmix::GoOn go_on,
                         void* chain) {
        Obituaries* self = nullptr;
        const pmix::Proc* dead = source;
        for (std::size_t i = 0; i < count; ++i) {
            const pmix::Value& value = infos[i].value;
            if (value.type == pmix::kPointer && std::strcmp(infos[i].key, kOurselves) == 0)
                self = static_cast<Obituaries*>(value.data.pointer);
            if (value.type == pmix::kProc && std::strcmp(infos[i].key, kAffected) == 0)
                dead = value.data.proc;
        }
        if (self != nullptr && dead != nullptr) self->add(*dead);
        if (go_on != nullptr) go_on(0, nullptr, 0, nullptr, nullptr, chain);
    }
    static void registered(pmix::Code code, std::size_t, void*) {
        if (code != 0) log::info("job: the launcher does not tell of deaths: PMIx error {}", code);
    }
    void add(const pmix::Proc& dead) {
        if (std::strncmp(dead.nspace, us.nspace, sizeof us.nspace) != 0 || dead.rank == us.rank)
            return;
        const std::lock_guard guard(mutex);
        ranks.push_back(static_cast<int>(dead.rank));
        news.store(true, std::memory_order_relaxed);
    }
};

bool PmixJob::watch_deaths(std::uint64_t number) {
    if (obituaries_ != nullptr) return true;
    if (library_.call.PMIx_Register_event_handler == nullptr) return false;
    obituaries_ = new Obituaries(self_);
    pmix::Info& info = obituaries_->ourselves;
    std::strncpy(info.key, Obituaries::kOurselves, sizeof info.key - 1);
    info.value.type = pmix::kPointer;
    info.value.data.pointer = obituaries_;
    number_ = number;
    const pmix::Code code = library_.call.PMIx_Register_event_handler(
        obituaries_->events, std::size(obituaries_->events), &info, 1, &Obituaries::on_event,
        &Obituaries::registered, nullptr);
    if (code != 0) forget_deaths();
    return code == 0;
}

std::vector<Death> PmixJob::deaths() {
    std::vector<Death> told;
    if (!obituaries_->news.load(std::memory_order_relaxed)) return told;
    const std::lock_guard guard(obituaries_->mutex);
    obituaries_->news.store(false, std::memory_order_relaxed);
    for (const int rank : std::exchange(obituaries_->ranks, {}))
        told.push_back({number_, rank});
    return told;
}

void PmixJob::forget_deaths() {
    delete std::exchange(obituaries_, nullptr);
}

}  // namespace gantry::job
