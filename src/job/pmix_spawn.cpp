// SPDX-License-Identifier: BSD-3-Clause
//
// Other jobs, as a PMIx launcher knows them: it starts one, and keeps names. The port of the parents is a
// variable in the environment of the job that they spawn.
#include "job/pmix.hpp"

#include "base/config.hpp"
#include "base/yield.hpp"

#include <cstring>

namespace gantry::job {
namespace {

constexpr const char* kParentPort = "GANTRY_PARENT_PORT";

pmix::Info text_info(const char* key, std::string& value) {
    pmix::Info info{};
    std::strncpy(info.key, key, sizeof info.key - 1);
    info.value.type = pmix::kString;
    info.value.data.string = value.data();
    return info;
}

// What the library reads during its call: pointers into a SpawnedProgram, and lists that end with null.
struct Program {
    explicit Program(SpawnedProgram& its_program, std::string& parent_port)
        : program(its_program), environment{parent_port.data(), nullptr} {
        for (std::string& word : program.command)
            arguments.push_back(word.data());
        arguments.push_back(nullptr);
        for (auto& [key, value] : program.info) {
            if (key == "wdir") folder = value.data();
            if (key == "host") infos.push_back(text_info("pmix.host", value));
        }
        // Who starts processes by hand counts its own processors.
        infos.push_back(text_info("pmix.mapby", mapping));
    }
    pmix::App app() {
        return {arguments.front(), arguments.data(), environment, folder,
                program.ranks,     infos.data(),     infos.size()};
    }
    SpawnedProgram& program;
    std::string mapping = ":OVERSUBSCRIBE";
    std::vector<char*> arguments;
    char* environment[2];
    char* folder = nullptr;
    std::vector<pmix::Info> infos;
};

}  // namespace

void PmixJob::Question::answered(pmix::Code code, void* held) {
    auto* question = static_cast<std::shared_ptr<Question>*>(held);
    (*question)->end(code);
    delete question;
}

void PmixJob::Question::spawned(pmix::Code code, char*, void* held) {
    answered(code, held);
}

void PmixJob::Question::found(pmix::Code code, pmix::Published* published, std::size_t count,
                              void* held) {
    auto* question = static_cast<std::shared_ptr<Question>*>(held);
    if (code == 0 && count > 0 && published[0].value.type == pmix::kString)
        (*question)->text = published[0].value.data.string;
    answered(code, held);
}

Task<Status> PmixJob::consult(Executor& executor, std::function<pmix::Code(void* held)> call,
                              int error_class, std::string attempt) {
    while (asking_)
        co_await Yield(executor);
    asking_ = true;
    asked_ = std::make_shared<Question>();
    auto* held = new std::shared_ptr<Question>(asked_);
    pmix::Code code = call(held);
    if (code != 0) {
        delete held;
    } else {
        Completion answered(executor);
        answered_ = &answered;
        Status come = co_await answered;
        code = come.ok() ? asked_->code : -1;
    }
    asking_ = false;
    if (code == 0) co_return success();
    co_return failure(error_class, "the launcher does not {}: {}", attempt,
                      library_.call.PMIx_Error_string(code));
}

Task<Status> PmixJob::spawn(Executor& executor, SpawnOrder order) {
    if (library_.call.PMIx_Spawn_nb == nullptr)
        co_return failure(MPI_ERR_SPAWN, "{} has no PMIx_Spawn_nb: processes cannot be spawned",
                          library_.path);
    // Open MPI 4 takes the question, and its answer does not come.
    if (config::environment("OMPI_MCA_orte_hnp_uri"))
        co_return failure(MPI_ERR_SPAWN,
                          "Open MPI 4's orterun cannot start further processes of this program: "
                          "start it by mpiexec, or by prterun or mpirun of Open MPI 5");
    std::string port = fmt::format("{}={}", kParentPort, order.parent_port);
    const std::string attempt = fmt::format("start {}", order.programs.front().command.front());
    std::function<pmix::Code(void*)> call = [this, &order, &port](void* held) {
        std::vector<std::unique_ptr<Program>> programs;
        std::vector<pmix::App> apps;
        for (SpawnedProgram& each : order.programs) {
            programs.push_back(std::make_unique<Program>(each, port));
            apps.push_back(programs.back()->app());
        }
        return library_.call.PMIx_Spawn_nb(nullptr, 0, apps.data(), apps.size(), &Question::spawned,
                                           held);
    };
    Status started = co_await consult(executor, std::move(call), MPI_ERR_SPAWN, attempt);
    co_return started;
}

Result<std::string> PmixJob::parent_port() {
    // A launcher that a spawned process has started passes the variable on to a job of its own.
    if (!says(self_.rank, "pmix.parent")) return std::string();
    return config::environment(kParentPort).value_or("");
}

Task<Status> PmixJob::publish_name(Executor& executor, std::string name, std::string port) {
    const std::string attempt = fmt::format("publish '{}'", name);
    std::function<pmix::Code(void*)> call = [this, name, port](void* held) mutable {
        const pmix::Info info = text_info(fmt::format("gantry:{}", name).c_str(), port);
        return library_.call.PMIx_Publish_nb(&info, 1, &Question::answered, held);
    };
    if (library_.call.PMIx_Publish_nb == nullptr)
        co_return failure(MPI_ERR_SERVICE, "{} has no PMIx_Publish_nb", library_.path);
    Status published = co_await consult(executor, std::move(call), MPI_ERR_SERVICE, attempt);
    co_return published;
}

Task<Status> PmixJob::unpublish_name(Executor& executor, std::string name) {
    // The library says that all is well, also when there was nothing.
    std::string port;
    Status known = co_await lookup_name(executor, name, &port);
    if (!known.ok()) co_return failure(MPI_ERR_SERVICE, "'{}' is not published", name);
    const std::string attempt = fmt::format("take back '{}'", name);
    std::function<pmix::Code(void*)> call = [this, name](void* held) {
        std::string key = fmt::format("gantry:{}", name);
        char* keys[] = {key.data(), nullptr};
        return library_.call.PMIx_Unpublish_nb(keys, nullptr, 0, &Question::answered, held);
    };
    Status taken = co_await consult(executor, std::move(call), MPI_ERR_SERVICE, attempt);
    co_return taken;
}

Task<Status> PmixJob::lookup_name(Executor& executor, std::string name, std::string* port) {
    const std::string attempt = fmt::format("know a port under '{}'", name);
    std::function<pmix::Code(void*)> call = [this, name](void* held) {
        std::string key = fmt::format("gantry:{}", name);
        char* keys[] = {key.data(), nullptr};
        return library_.call.PMIx_Lookup_nb(keys, nullptr, 0, &Question::found, held);
    };
    if (library_.call.PMIx_Lookup_nb == nullptr)
        co_return failure(MPI_ERR_SERVICE, "{} has no PMIx_Lookup_nb", library_.path);
    Status found = co_await consult(executor, std::move(call), MPI_ERR_NAME, attempt);
    GANTRY_CO_TRY(found);
    *port = asked_->text;
    co_return success();
}

}  // namespace gantry::job
