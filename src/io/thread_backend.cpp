// SPDX-License-Identifier: BSD-3-Clause
#include "io/thread_backend.hpp"

#include "base/blocked_signals.hpp"

#include <memory>
#include <new>

namespace gantry::io {

ThreadBackend::~ThreadBackend() {
    {
        const std::lock_guard hold(lock_);
        stopping_ = true;
    }
    more_.notify_all();
    for (const pthread_t thread : threads_)
        pthread_join(thread, nullptr);
    while (Job* job = ended_.pop_front())
        delete job;
    while (Job* job = waiting_.pop_front())
        delete job;
}

std::string ThreadBackend::name() const {
    return why_.empty() ? "threads" : "threads (" + why_ + ")";
}

void ThreadBackend::start(Transfer& transfer, Completion& done) {
    transfer.carrier = plan::io_carrier({.has_ring = false});
    give(transfer, done);
}

void ThreadBackend::give(Transfer& transfer, Completion& done) {
    std::unique_ptr<Job> job(new (std::nothrow) Job);
    if (job == nullptr) {
        // Better late than never.
        io::carry_out(system_, transfer);
        done.complete(success());
        return;
    }
    job->transfer = &transfer;
    job->done = &done;
    queue(std::move(job));
}

void ThreadBackend::start(std::function<void(System&)> call, Completion& done) {
    std::unique_ptr<Job> job(new (std::nothrow) Job);
    if (job == nullptr) {
        call(system_);
        done.complete(success());
        return;
    }
    job->call = std::move(call);
    job->done = &done;
    queue(std::move(job));
}

void ThreadBackend::queue(std::unique_ptr<Job> job) {
    ++under_way_;
    bool wanted = false;
    {
        const std::lock_guard hold(lock_);
        waiting_.push_back(*job.release());
        wanted =
            ++waiting_count_ > idle_threads_ && static_cast<int>(threads_.size()) < most_threads_;
    }
    if (wanted) add_thread();
    // Without any thread the system has none to give: the caller does it.
    if (threads_.empty()) return carry_out_oldest();
    more_.notify_one();
}

void ThreadBackend::add_thread() {
    const BlockedSignals blocked;
    pthread_t thread;
    const int refused = pthread_create(
        &thread, nullptr,
        [](void* backend) -> void* {
            static_cast<ThreadBackend*>(backend)->work();
            return nullptr;
        },
        this);
    if (refused == 0) threads_.push_back(thread);
}

void ThreadBackend::carry_out(Job& job) {
    if (job.transfer != nullptr)
        io::carry_out(system_, *job.transfer);
    else
        job.call(system_);
}

void ThreadBackend::carry_out_oldest() {
    const std::lock_guard hold(lock_);
    Job* const job = waiting_.pop_front();
    --waiting_count_;
    carry_out(*job);
    ended_.push_back(*job);
    ended_count_.fetch_add(1, std::memory_order_relaxed);
}

void ThreadBackend::work() {
    std::unique_lock hold(lock_);
    while (true) {
        ++idle_threads_;
        more_.wait(hold, [this] { return stopping_ || !waiting_.empty(); });
        --idle_threads_;
        Job* const job = waiting_.pop_front();
        if (job == nullptr) return;  // all that was given is carried out first
        --waiting_count_;
        hold.unlock();
        carry_out(*job);
        hold.lock();
        ended_.push_back(*job);
        ended_count_.fetch_add(1, std::memory_order_release);
    }
}

int ThreadBackend::progress() {
    if (under_way_ == 0 || ended_count_.load(std::memory_order_relaxed) == 0) return 0;
    int events = 0;
    while (true) {
        std::unique_ptr<Job> job;
        {
            const std::lock_guard hold(lock_);
            job.reset(ended_.pop_front());
            if (job == nullptr) return events;
            ended_count_.fetch_sub(1, std::memory_order_relaxed);
        }
        --under_way_;
        ++events;
        job->done->complete(success());
    }
}

}  // namespace gantry::io
