// SPDX-License-Identifier: BSD-3-Clause
#include "job/fake/job.hpp"

#include <cstdio>
#include <cstdlib>

namespace gantry::job::fake {

void KeyValueSpace::kill(int rank) {
    dead_[static_cast<std::size_t>(rank)] = true;
    waiting_.erase(rank);
    open_fence_when_complete();
}

void KeyValueSpace::open_fence_when_complete() {
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank)
        if (!dead_[rank] && !waiting_.contains(static_cast<int>(rank))) return;
    // Emptied first: whoever goes on may enter the next fence.
    const std::map<int, Completion*> through = std::move(waiting_);
    waiting_.clear();
    for (const auto& [rank, completion] : through)
        completion->complete(success());
}

Status FakeJob::put(std::string_view key, std::string_view value) {
    unpublished_[std::string(key)] = value;
    return success();
}

Task<Status> FakeJob::fence(Executor& executor) {
    for (auto& [key, value] : unpublished_)
        space_.store_[{rank_, key}] = std::move(value);
    unpublished_.clear();
    Completion through(executor);
    space_.waiting_[rank_] = &through;
    space_.open_fence_when_complete();
    Status status = co_await through;
    co_return status;
}

Result<std::string> FakeJob::get(int rank, std::string_view key) {
    const auto found = space_.store_.find({rank, std::string(key)});
    if (found == space_.store_.end())
        return failure(MPI_ERR_OTHER, "rank {} published nothing under \"{}\"", rank, key);
    return found->second;
}

void FakeJob::abort(int exit_code, std::string_view reason) {
    std::fprintf(stderr, "rank %d of the world aborts with code %d: %.*s\n", rank_, exit_code,
                 static_cast<int>(reason.size()), reason.data());
    std::abort();
}

}  // namespace gantry::job::fake
