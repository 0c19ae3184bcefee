// SPDX-License-Identifier: BSD-3-Clause
#include "job/singleton.hpp"

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

Result<std::string> Singleton::get(int rank, std::string_view key) {
    const auto found = store_.find(key);
    if (rank != 0 || found == store_.end())
        return failure(MPI_ERR_INTERN, "job store: rank {} has put no '{}' before the last fence",
                       rank, key);
    return found->second;
}

}  // namespace gantry::job
