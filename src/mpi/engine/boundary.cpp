// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/boundary.hpp"

#include "mpi/engine/engine.hpp"

#include <cstdlib>
#include <utility>

namespace gantry::mpi {
namespace {

// A program that ends without MPI_Finalize: the thread must not meet a driver or a library that has
// gone already.
void stop_at_exit() {
    Process& p = process();
    if (!p.forked) p.boundary_at_any_time->stop_thread();
}

}  // namespace

void Boundary::enter() {
    engine_lock_.enter();
    if (!background_) return;
    engine_->executor().set_watched(thread_->watches());
    if (engine_lock_.outermost() && engine_->submission_queue().has_posts()) {
        const HandOver hand_over(engine_->executor());
        engine_->submission_queue().start();
    }
}

Nanoseconds Boundary::call_begins() const {
    return timeline_ != nullptr && engine_lock_.outermost() ? timeline_->now() : 0;
}

void Boundary::call_ends(const char* function, Nanoseconds begin) const {
    if (timeline_ != nullptr) timeline_->call(function, begin);
}

void Boundary::leave() {
    if (!engine_lock_.outermost()) return engine_lock_.leave();
    waiters_.call_ended();
    if (!background_) return engine_lock_.leave();
    // What has ended in the background keeps no later call from staying outside.
    if (!engine_->requests().idle()) engine_->requests().progress();
    const bool pending = engine_->pending();
    engine_lock_.leave();
    thread_->left(pending);
}

bool Boundary::may_stay_outside() const {
    return background_ && !threads_ && !engine_lock_.mine() && engine_->requests().idle();
}

bool Boundary::takes_posts() const {
    const bool handed_over = hands_over_ == HandsOver::always ||
                             (hands_over_ == HandsOver::while_watched && thread_->watches());
    return handed_over && may_stay_outside();
}

Status Boundary::surround(Engine& engine, int thread_level) {
    const bool again = engine_ != nullptr;
    engine_ = &engine;
    timeline_ = engine.timeline();
    threads_ = thread_level == MPI_THREAD_MULTIPLE || tools_ || (again && threads_);
    engine.executor().set_several_threads(threads_);
    waiters_.set_spare_processors(engine.spare_processors());
    waiters_.set_standby_looks(engine.config().standby_look, engine.config().standby_last_look);
    if (background_ || engine.config().progress != "thread") return success();
    if (!thread_.has_value()) thread_.emplace(engine, engine_lock_, waiters_);
    GANTRY_TRY(engine.submission_queue().open());
    GANTRY_TRY(thread_->start());
    background_ = true;
    const std::string& hand_over = engine.config().hand_over;
    hands_over_ = hand_over == "on"    ? HandsOver::always
                  : hand_over == "off" ? HandsOver::never
                                       : HandsOver::while_watched;
    return success();
}

void Boundary::admit_tools() {
    tools_ = threads_ = true;
    if (engine_ != nullptr) engine_->executor().set_several_threads(true);
}

void Boundary::surround_nothing() {
    stop_thread();
    background_ = false;
    hands_over_ = HandsOver::never;
    engine_ = nullptr;
    timeline_ = nullptr;
    threads_ = true;
}

void Boundary::stop_thread() {
    if (thread_.has_value()) thread_->stop();
}

LetOthersIn::LetOthersIn() : failed_on_(std::exchange(process().failed_on, {})) {
    Boundary* boundary = process().boundary_at_any_time;
    if (boundary == nullptr || !boundary->visited_once()) return;
    left_ = boundary;
    boundary->leave();
}

LetOthersIn::~LetOthersIn() {
    if (left_ != nullptr) left_->enter();
    process().failed_on = failed_on_;
}

Status raise_boundary(Engine& engine, int thread_level) {
    Process& p = process();
    Boundary& boundary = *p.boundary_at_any_time;
    GANTRY_TRY(boundary.surround(engine, thread_level));
    p.boundary = boundary.needed() ? &boundary : nullptr;
    if (engine.config().progress == "thread" && !std::exchange(p.stops_thread_at_exit, true))
        std::atexit(stop_at_exit);
    return success();
}

void admit_tools() {
    Process& p = process();
    p.boundary_at_any_time->admit_tools();
    p.boundary = p.boundary_at_any_time;
}

void drop_boundary() {
    Process& p = process();
    if (p.boundary_at_any_time == nullptr) return;
    p.boundary_at_any_time->surround_nothing();
    p.boundary = p.boundary_at_any_time;
}

}  // namespace gantry::mpi
