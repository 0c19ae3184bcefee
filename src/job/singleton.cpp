// SPDX-License-Identifier: BSD-3-Clause
#include "job/singleton.hpp"

#include "job/guest.hpp"

#include <unistd.h>

namespace gantry::job {

Singleton::Singleton() : id_(fmt::format("singleton-{}", getpid())) {}

Status Singleton::put(std::string_view key, std::string_view value) {
    pending_.insert_or_assign(std::string(key), std::string(value));
    return success();
}

Task<Status> Singleton::fence(Executor&) {
    for (auto& [key, value] : pending_)
        store_.insert_or_assign(key, std::move(value));
    pending_.clear();
    co_return success();
}

Status Singleton::need_launcher() {
    if (launcher_ != nullptr) return success();
    Result<std::unique_ptr<Job>> found = become_guest();
    GANTRY_TRY(found.status());
    launcher_ = std::move(*found);
    return success();
}

Task<Status> Singleton::spawn(Executor& executor, SpawnOrder order) {
    Status there = need_launcher();
    GANTRY_CO_TRY(there);
    Status spawned = co_await launcher_->spawn(executor, std::move(order));
    co_return spawned;
}

// Names are for this program and those that it spawns.
Task<Status> Singleton::publish_name(Executor& executor, std::string name, std::string port) {
    Status there = need_launcher();
    if (!there.ok()) co_return failure(MPI_ERR_SERVICE, "{}", there.text());
    Status published = co_await launcher_->publish_name(executor, std::move(name), std::move(port));
    co_return published;
}

Task<Status> Singleton::unpublish_name(Executor& executor, std::string name) {
    if (launcher_ == nullptr) co_return failure(MPI_ERR_SERVICE, "'{}' is not published", name);
    Status removed = co_await launcher_->unpublish_name(executor, std::move(name));
    co_return removed;
}

Task<Status> Singleton::lookup_name(Executor& executor, std::string name, std::string* port) {
    if (launcher_ == nullptr)
        co_return failure(MPI_ERR_NAME, "no port is published under '{}'", name);
    Status found = co_await launcher_->lookup_name(executor, std::move(name), port);
    co_return found;
}

Result<std::string> Singleton::get(int rank, std::string_view key) {
    const auto found = store_.find(key);
    if (rank != 0 || found == store_.end())
        return failure(MPI_ERR_INTERN, "job store: rank {} has put no '{}' before the last fence",
                       rank, key);
    return found->second;
}

}  // namespace gantry::job
