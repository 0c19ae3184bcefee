// SPDX-License-Identifier: BSD-3-Clause
#include "io/backend.hpp"

namespace gantry::io {

Task<Status> Backend::run(Executor& executor, Transfer& transfer, std::string_view path) {
    if (transfer.segments.empty()) co_return success();
    Completion done(executor);
    start(transfer, done);
    Status none = co_await done;
    co_return outcome_of(transfer, path);
}

Task<Status> Backend::call(Executor& executor, std::function<std::int64_t(System&)> asked,
                           std::int64_t* returned) {
    Completion done(executor);
    start([call = std::move(asked), returned](System& system) { *returned = call(system); }, done);
    Status none = co_await done;
    co_return success();
}

}  // namespace gantry::io
