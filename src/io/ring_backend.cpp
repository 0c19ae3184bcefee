// SPDX-License-Identifier: BSD-3-Clause
#include "io/ring_backend.hpp"

#include <array>
#include <cerrno>
#include <new>

namespace gantry::io {
namespace {

constexpr std::size_t kTaken = 32;

}  // namespace

// What the kernel has been given it would go on with: memory stays until then.
RingBackend::~RingBackend() {
    while (Job* const job = waiting_.pop_front())
        delete job;
    std::array<Ring::Ended, kTaken> ended;
    while (asked_ > 0) {
        ring_->wait();
        const std::size_t number = ring_->take(ended);
        for (std::size_t i = 0; i < number; ++i)
            delete reinterpret_cast<Job*>(ended[i].token);
        asked_ -= static_cast<int>(number);
    }
}

void RingBackend::start(Transfer& transfer, Completion& done) {
    Job* const job = new (std::nothrow) Job(transfer);
    if (job == nullptr) {
        // Better late than never.
        io::carry_out(system_, transfer);
        done.complete(success());
        return;
    }
    transfer.carrier =
        plan::io_carrier({.has_ring = true,
                          .ring_allowed = transfer.ring_allowed,
                          .direct_storage = transfer.storage != nullptr,
                          .one_call = job->steps.next() == nullptr || job->steps.is_one_call()});
    if (transfer.carrier.carrier == plan::IoCarrier::threads) {
        delete job;
        return threads_.give(transfer, done);
    }
    job->done = &done;
    if (asked_ < ring_->most())
        go_on(*job);
    else
        waiting_.push_back(*job);
}

bool RingBackend::go_on(Job& job) {
    if (const Call* const call = job.steps.next()) {
        ++asked_;
        ring_->ask(job.transfer.file, job.transfer.direction, *call,
                   reinterpret_cast<std::uint64_t>(&job));
        return false;
    }
    job.done->complete(success());
    delete &job;
    return true;
}

int RingBackend::take() {
    std::array<Ring::Ended, kTaken> ended;
    const std::size_t number = ring_->take(ended);
    int events = 0;
    for (std::size_t i = 0; i < number; ++i) {
        Job& job = *reinterpret_cast<Job*>(ended[i].token);
        --asked_;
        // The kernel cancels what a thread has given it that ends; the call comes again by this one.
        const bool cancelled = ended[i].returned == -ECANCELED;
        job.steps.returned(cancelled ? -EINTR : ended[i].returned);
        events += go_on(job) ? 1 : 0;
    }
    while (asked_ < ring_->most() && !waiting_.empty())
        events += go_on(*waiting_.pop_front()) ? 1 : 0;
    return events;
}

int RingBackend::progress() {
    const int events = asked_ > 0 ? take() : 0;
    return events + threads_.progress();
}

}  // namespace gantry::io
