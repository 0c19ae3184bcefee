// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"
#include "io/file.hpp"
#include "io/ring_backend.hpp"

namespace gantry::io {
namespace {

constexpr int kThreads = 4;
constexpr const char* kRingLibrary = "liburing.so.2";

}  // namespace

Files::Files(transfer::Context& its_context, p2p::Messenger& its_messenger,
             rma::Windows& its_windows, coll::Common& its_common)
    : context(its_context), messenger(its_messenger), windows(its_windows), common(its_common) {}

Files::~Files() = default;

Backend& Files::backend() {
    if (backend_ != nullptr) return *backend_;
    Result<std::unique_ptr<Ring>> ring = open_ring(kRingLibrary);
    if (ring.ok())
        backend_ = std::make_unique<RingBackend>(system_, std::move(*ring), kThreads);
    else
        backend_ =
            std::make_unique<ThreadBackend>(system_, kThreads, std::string(ring.status().text()));
    log::info("io: files by {}", backend_->name());
    return *backend_;
}

Task<Status> Files::run(Executor& executor, Transfer& transfer, std::string_view path) {
    const Nanoseconds begin = context.begins();
    Status ended = co_await backend().run(executor, transfer, path);
    was_with_file(transfer, begin);
    co_return ended;
}

Status Files::run_now(Transfer& transfer, std::string_view path) {
    const Nanoseconds begin = context.begins();
    backend().carry_out_now(transfer);
    was_with_file(transfer, begin);
    return outcome_of(transfer, path);
}

void Files::was_with_file(const Transfer& transfer, Nanoseconds begin) const {
    if (context.timeline != nullptr) [[unlikely]]
        context.timeline->with_file(transfer.direction == Direction::read ? "read" : "write", begin,
                                    transfer.moved);
}

int Files::look() {
    int events = backend_->progress();
    if (events > 0) events += context.executor.run_ready();
    return events;
}

}  // namespace gantry::io
