// SPDX-License-Identifier: BSD-3-Clause
//
// Other jobs, as PMI-1 knows them: the launcher starts one (mcmd=spawn), and keeps names. The port of
// the parents goes into the new job's store, where its ranks look when PMI_SPAWNED tells them that
// they have parents. Names and ports travel as base64, since values of PMI-1 have no blanks.
#include "base/config.hpp"
#include "job/pmi.hpp"
#include "job/store_text.hpp"

#include <unistd.h>

#include <algorithm>

namespace gantry::job {
namespace {

constexpr std::string_view kParentKey = "GANTRY-parent-port";

bool has_newline(const std::string& text) {
    return text.find('\n') != std::string::npos;
}

Status check(const SpawnOrder& order) {
    for (const SpawnedProgram& program : order.programs)
        if (std::ranges::any_of(program.command, has_newline))
            return failure(MPI_ERR_SPAWN,
                           "an argument of {} holds an end of line, which PMI-1 cannot pass on",
                           program.command.front());
    return success();
}

std::string info_of(const SpawnedProgram& program, std::string_view key) {
    for (const auto& [name, value] : program.info)
        if (name == key) return value;
    return {};
}

// Whether that program is where the launcher will look, as far as this machine knows.
bool is_there(const SpawnedProgram& program) {
    const std::string& name = program.command.front();
    const std::string folder = info_of(program, "wdir");
    if (name.find('/') != std::string::npos) {
        const std::string path = name.front() == '/' || folder.empty() ? name : folder + "/" + name;
        return access(path.c_str(), X_OK) == 0;
    }
    const std::string path = config::environment("PATH").value_or("");
    for (std::string_view rest = path; !rest.empty();) {
        const std::size_t end = std::min(rest.find(':'), rest.size());
        if (access((std::string(rest.substr(0, end)) + "/" + name).c_str(), X_OK) == 0) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

Status check_programs(const SpawnOrder& order) {
    for (const SpawnedProgram& program : order.programs)
        if (info_of(program, "host").empty() && info_of(program, "path").empty() &&
            !is_there(program))
            return failure(MPI_ERR_SPAWN,
                           "there is no program {} on this machine that may be executed",
                           program.command.front());
    return success();
}

std::string lines_of(const SpawnOrder& order, std::size_t index) {
    const SpawnedProgram& program = order.programs[index];
    std::string lines =
        fmt::format("mcmd=spawn\nnprocs={}\nexecname={}\ntotspawns={}\nspawnssofar={}\n",
                    program.ranks, program.command.front(), order.programs.size(), index + 1);
    for (std::size_t i = 1; i < program.command.size(); ++i)
        lines += fmt::format("arg{}={}\n", i, program.command[i]);
    lines += fmt::format("argcnt={}\npreput_num=1\npreput_key_0={}\npreput_val_0={}\n",
                         program.command.size() - 1, kParentKey, base64(order.parent_port));
    lines += fmt::format("info_num={}\n", program.info.size());
    for (std::size_t i = 0; i < program.info.size(); ++i)
        lines += fmt::format("info_key_{}={}\ninfo_val_{}={}\n", i, program.info[i].first, i,
                             program.info[i].second);
    return lines + "endcmd\n";
}

// Slurm's plug-in takes the question and starts nothing. Hydra inside an allocation tells its host.
bool is_slurm() {
    return config::environment("SLURM_STEP_ID") && !config::environment("PMI_HOSTNAME");
}

}  // namespace

Task<Status> PmiJob::spawn(Executor& executor, SpawnOrder order) {
    if (!takes_abort_text_ && is_slurm())
        co_return failure(
            MPI_ERR_SPAWN,
            "srun cannot start further processes: start the program by mpiexec, or by "
            "another launcher that can");
    Status passable = check(order);
    GANTRY_CO_TRY(passable);
    // Our own server says what it cannot start; others end the job for it.
    if (!takes_abort_text_) passable = check_programs(order);
    GANTRY_CO_TRY(passable);
    std::string lines;
    for (std::size_t i = 0; i < order.programs.size(); ++i)
        lines += lines_of(order, i);
    Status answered = co_await consult(executor, std::move(lines));
    if (!answered.ok()) co_return failure(MPI_ERR_SPAWN, "{}", answered.text());
    if (answer_->command() == "spawn_result" && answer_->accepted()) co_return success();
    const std::optional<std::string> told = from_base64(answer_->text("text"));
    co_return failure(MPI_ERR_SPAWN, "{}",
                      told && !told->empty() ? *told
                                             : fmt::format("the launcher does not start {}: {}",
                                                           order.programs.front().command.front(),
                                                           answer_->text("msg")));
}

Result<std::string> PmiJob::parent_port() {
    const std::optional<std::string> spawned = config::environment("PMI_SPAWNED");
    if (!spawned || *spawned == "0") return std::string();
    const auto answer =
        wire_.ask(fmt::format("cmd=get kvsname={} key={}\n", kvs_, kParentKey), "get_result");
    if (!answer.ok()) return std::string();  // spawned by a program of another MPI
    const std::optional<std::string> port = from_base64(answer.value().text("value"));
    if (!port)
        return failure(MPI_ERR_INTERN, "the port of the parents is '{}'",
                       answer.value().text("value"));
    return *port;
}

// Gforker, the launcher that tells its ranks the universe's size by that variable, leaves questions about names
// without an answer.
Status PmiJob::find_name_server() const {
    if (takes_abort_text_ || !config::environment("MPI_UNIVERSE_SIZE")) return success();
    return failure(MPI_ERR_SERVICE,
                   "the launcher, gforker, keeps no names: tell the port in another way, or start "
                   "the program by mpiexec");
}

Task<Status> PmiJob::publish_name(Executor& executor, std::string name, std::string port) {
    Status possible = find_name_server();
    GANTRY_CO_TRY(possible);
    std::string line =
        fmt::format("cmd=publish_name service={} port={}\n", base64(name), base64(port));
    Status answered = co_await consult(executor, std::move(line));
    if (!answered.ok()) co_return failure(MPI_ERR_SERVICE, "{}", answered.text());
    if (answer_->accepted()) co_return success();
    co_return failure(MPI_ERR_SERVICE, "the launcher does not publish '{}': {}", name,
                      answer_->text("msg"));
}

Task<Status> PmiJob::unpublish_name(Executor& executor, std::string name) {
    Status possible = find_name_server();
    GANTRY_CO_TRY(possible);
    std::string line = fmt::format("cmd=unpublish_name service={}\n", base64(name));
    Status answered = co_await consult(executor, std::move(line));
    if (!answered.ok()) co_return failure(MPI_ERR_SERVICE, "{}", answered.text());
    if (answer_->accepted()) co_return success();
    co_return failure(MPI_ERR_SERVICE, "'{}' is not published", name);
}

Task<Status> PmiJob::lookup_name(Executor& executor, std::string name, std::string* port) {
    Status possible = find_name_server();
    if (!possible.ok()) co_return failure(MPI_ERR_NAME, "{}", possible.text());
    std::string line = fmt::format("cmd=lookup_name service={}\n", base64(name));
    Status answered = co_await consult(executor, std::move(line));
    if (!answered.ok()) co_return failure(MPI_ERR_NAME, "{}", answered.text());
    std::optional<std::string> found = from_base64(answer_->text("port"));
    if (!answer_->accepted() || !found)
        co_return failure(MPI_ERR_NAME, "no port is published under '{}'", name);
    *port = std::move(*found);
    co_return success();
}

}  // namespace gantry::job
