// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that die in a job that goes on, as a PMI-1 launcher tells it. Our own server writes a line about each
// to whoever asks ("cmd=watch_deaths"). Hydra with -disable-auto-cleanup sends SIGUSR1 to all others, which
// ends a process that does not expect it (death_signal.hpp), and lists the dead in its store:
//
//   rank -> "cmd=get kvsname=k key=PMI_dead_processes"
//   rank <- "cmd=get_result rc=0 value=2,5-7"       empty: nobody. Launchers that never tell do not know the key
//
// It does not say whether it runs with that option: environment, store and answers are the same without.
#include "job/death_signal.hpp"
#include "job/pmi.hpp"
#include "job/rank_list.hpp"

#include <unistd.h>

#include <charconv>

namespace gantry::job {

bool PmiJob::watch_deaths(std::uint64_t number) {
    if (told_ != Told::not_asked) return told_ != Told::nothing;
    told_ = Told::nothing;
    if (offers_deaths_)
        told_ = wire_.send(fmt::format("cmd=watch_deaths job={}\n", number)).ok() ? Told::by_lines
                                                                                  : Told::nothing;
    else if (!takes_abort_text_ &&
             dead_processes().ok())  // not our own server, and it lists the dead
        told_ = death_signal::take(wire_.other_process()) ? Told::by_signal : Told::nothing;
    number_ = number;
    return told_ != Told::nothing;
}

std::vector<Death> PmiJob::deaths() {
    if (finalized_ || getpid() != owner_process_) return {};
    switch (told_) {
        case Told::not_asked:
        case Told::nothing: return {};
        case Told::by_lines: return deaths_by_lines();
        case Told::by_signal: return deaths_by_signal();
    }
    return {};
}

std::vector<Death> PmiJob::deaths_by_lines() {
    // While a question is open progress() reads, and what stands before the answer is kept.
    const bool hung_up = answered_ == nullptr && !wire_.poll().ok();
    std::vector<Death> told;
    for (const PmiLine& line : wire_.take_deaths()) {
        std::uint64_t job = 0;
        const std::string_view text = line.text("job");
        std::from_chars(text.data(), text.data() + text.size(), job);
        if (const std::optional<int> rank = line.number("rank"); job != 0 && rank)
            told.push_back({job, *rank});
    }
    if (!hung_up) return told;
    served_ = serving_rank() < 0;
    if (!served_) told.push_back({number_, serving_rank()});
    told_ = Told::nothing;
    return told;
}

Result<std::vector<int>> PmiJob::dead_processes() {
    const auto answer =
        wire_.ask(fmt::format("cmd=get kvsname={} key=PMI_dead_processes\n", kvs_), "get_result");
    GANTRY_TRY(answer.status());
    return parse_rank_list(answer.value().text("value"), size_);
}

std::vector<Death> PmiJob::deaths_by_signal() {
    if (answered_ != nullptr || !death_signal::came()) return {};
    Result<std::vector<int>> dead = dead_processes();
    if (!dead.ok()) return {};
    // Hydra lists a death before it tells of it, and passes on what the user sends to mpiexec.
    if (dead->empty()) death_signal::hand_on();
    std::vector<Death> told;
    for (const int rank : *dead)
        told.push_back({number_, rank});
    return told;
}

}  // namespace gantry::job
