// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/boundary.hpp"

#include "mpi/engine/engine.hpp"

#include <cstdlib>
#include <new>
#include <utility>

namespace gantry::mpi {
namespace {

// A program that ends without MPI_Finalize: the thread must not meet a driver or a library that has
// gone already.
void stop_at_exit() {
    Process& p = process();
    if (p.boundary != nullptr && !p.forked) p.boundary->stop();
}

}  // namespace

Boundary::Boundary(Engine& engine)
    : engine_(engine),
      hands_over_(engine.config().hand_over == "on"    ? HandsOver::always
                  : engine.config().hand_over == "off" ? HandsOver::never
                                                       : HandsOver::while_watched),
      thread_(engine, gate_) {}

void Boundary::enter() {
    gate_.enter();
    engine_.executor().set_watched(thread_.watches());
    if (gate_.outermost() && engine_.postbox().has_posts()) {
        const HandOver hand_over(engine_.executor());
        engine_.postbox().start();
    }
}

bool Boundary::may_stay_outside() const {
    return !gate_.mine() && engine_.requests().idle();
}

bool Boundary::takes_posts() const {
    const bool handed_over = hands_over_ == HandsOver::always ||
                             (hands_over_ == HandsOver::while_watched && thread_.watches());
    return handed_over && may_stay_outside();
}

void Boundary::leave() {
    if (!gate_.outermost()) return gate_.leave();
    // What has ended in the background keeps no later call from staying outside.
    if (!engine_.requests().idle()) engine_.requests().progress();
    const bool pending = engine_.pending();
    gate_.leave();
    thread_.left(pending);
}

Status raise_boundary(Engine& engine) {
    Process& p = process();
    if (p.boundary != nullptr || engine.config().progress != "thread") return success();
    auto* boundary = new (std::nothrow) Boundary(engine);
    if (boundary == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a progress thread");
    boundary->enter();
    Status failed = engine.postbox().open();
    if (failed.ok()) failed = boundary->start();
    if (!failed.ok()) {
        delete boundary;
        return failed;
    }
    p.boundary = boundary;
    if (!std::exchange(p.stops_thread_at_exit, true)) std::atexit(stop_at_exit);
    return success();
}

void drop_boundary() {
    delete std::exchange(process().boundary, nullptr);
}

}  // namespace gantry::mpi
