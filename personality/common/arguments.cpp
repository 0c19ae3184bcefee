// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of arguments.hpp that are not on the way of small messages.
#include "common/arguments.hpp"

#include "common/standard.hpp"

#include <mutex>
#include <new>

namespace gantry::personality {

void* marker(std::uintptr_t value) {
    return value == reinterpret_cast<std::uintptr_t>(theirs::kInPlace) ? MPI_IN_PLACE
                                                                       : MPI_BUFFER_AUTOMATIC;
}

void take(const theirs::Status& theirs, MPI_Status& ours) {
    ours.MPI_SOURCE = rank_to(theirs.MPI_SOURCE);
    ours.MPI_TAG = tag_to(theirs.MPI_TAG);
    ours.MPI_ERROR = error_class_to(theirs.MPI_ERROR);
    for (int& word : ours.MPI_internal)
        word = 0;
    status_to(theirs, ours);
}

int peers(MPI_Comm comm) {
    int between_groups = 0, size = 0;
    if (comm == nullptr || comm == MPI_COMM_NULL) return 0;
    if (standard.Comm_test_inter(comm, &between_groups) != MPI_SUCCESS) return 0;
    if (between_groups != 0)
        standard.Comm_remote_size(comm, &size);
    else
        standard.Comm_size(comm, &size);
    return size;
}

int neighbors(MPI_Comm comm, Direction direction) {
    int kind = MPI_UNDEFINED, rank = 0, number = 0;
    if (comm == nullptr || comm == MPI_COMM_NULL) return 0;
    if (standard.Topo_test(comm, &kind) != MPI_SUCCESS) return 0;
    if (kind == MPI_CART && standard.Cartdim_get(comm, &number) == MPI_SUCCESS) return 2 * number;
    if (kind == MPI_GRAPH && standard.Comm_rank(comm, &rank) == MPI_SUCCESS &&
        standard.Graph_neighbors_count(comm, rank, &number) == MPI_SUCCESS)
        return number;
    if (kind == MPI_DIST_GRAPH) {
        int in = 0, out = 0, weighted = 0;
        if (standard.Dist_graph_neighbors_count(comm, &in, &out, &weighted) == MPI_SUCCESS)
            return direction == Direction::kTo ? out : in;
    }
    return 0;
}

// --- MPI_Comm_idup

std::atomic<int> pending_duplicates;

namespace {

struct Duplicate {
    MPI_Comm made;  // written by the library when the duplicate is there
    theirs::Comm* where;
    Duplicate* next;
};
std::mutex duplicates_lock;
Duplicate* duplicates;

}  // namespace

void settle_duplicates() {
    const std::lock_guard held(duplicates_lock);
    for (Duplicate** place = &duplicates; *place != nullptr;) {
        Duplicate* its = *place;
        const MPI_Comm made = std::atomic_ref(its->made).load(std::memory_order_acquire);
        if (made == nullptr) {
            place = &its->next;
            continue;
        }
        *its->where = from(made);
        *place = its->next;
        delete its;
        pending_duplicates.fetch_sub(1);
    }
}

MPI_Comm* await_duplicate(theirs::Comm* where) {
    auto* its = new (std::nothrow) Duplicate{nullptr, where, nullptr};
    if (its == nullptr) return nullptr;
    const std::lock_guard held(duplicates_lock);
    its->next = duplicates;
    duplicates = its;
    pending_duplicates.fetch_add(1);
    return &its->made;
}

void forget_duplicate(const MPI_Comm* made) {
    const std::lock_guard held(duplicates_lock);
    for (Duplicate** place = &duplicates; *place != nullptr; place = &(*place)->next) {
        if (&(*place)->made != made) continue;
        Duplicate* its = *place;
        *place = its->next;
        delete its;
        pending_duplicates.fetch_sub(1);
        return;
    }
}

}  // namespace gantry::personality
