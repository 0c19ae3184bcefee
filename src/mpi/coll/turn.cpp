// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/coll/turn.hpp"

#include "base/log.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/pending.hpp"

#include <pthread.h>

namespace gantry::mpi {
namespace {

std::uintptr_t this_thread() {
    return static_cast<std::uintptr_t>(pthread_self());
}

Comm& comm_of(Polled& polled) {
    return *static_cast<Comm*>(polled.pointers[0]);
}
bool is_free(Polled& polled) {
    return comm_of(polled).turn_of == 0;
}
// By the thread that waits for it.
bool take_free(Polled& polled, Status&) {
    if (!is_free(polled)) return false;
    comm_of(polled).turn_of = this_thread();
    return true;
}

void tell(Comm& comm) {
    if (comm.told_of_threads || !comm.engine->checks().on()) return;
    comm.told_of_threads = true;
    log::warn(
        "mpi: several threads are in collectives of communicator {} at once: they run one behind "
        "the other here; "
        "portable programs give each thread a communicator of its own (MPI_Comm_dup)",
        comm.name.empty() ? "without a name" : comm.name);
}

}  // namespace

void Turn::take(Comm& comm) {
    if (comm.turn_of == this_thread()) return;
    if (comm.turn_of == 0) {
        comm.turn_of = this_thread();
    } else {
        tell(comm);
        Polled polled{.function = take_free, .look = is_free, .engine = comm.engine};
        polled.pointers[0] = &comm;
        (void)wait(Pending(polled));
    }
    comm_ = &comm;
}

void Turn::give_back() {
    std::exchange(comm_, nullptr)->turn_of = 0;
}

}  // namespace gantry::mpi
