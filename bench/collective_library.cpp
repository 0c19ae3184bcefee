// SPDX-License-Identifier: BSD-3-Clause
#include "collective_way.hpp"

#include "grid.hpp"
#include "job.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <vector>

namespace gantry::bench {
namespace {

const MPI_Comm kWorld = MPI_COMM_WORLD;

std::size_t blocks(const Collective& call) {
    return std::max(static_cast<std::size_t>(call.ranks), call.neighbors.size());
}

class LibraryCollective final : public CollectiveWay {
  public:
    LibraryCollective(const Collective& call, Form form, const Buffer& out, const Buffer& in)
        : operation_(call.operation),
          form_(form),
          out_(out.message(0)),
          in_(in.message(0)),
          count_(static_cast<int>(call.count)),
          counts_(blocks(call), count_),
          type_(type_of(call.element)),
          op_(op_of(call.op)),
          types_(blocks(call), type_) {
        for (int block = 0; block < static_cast<int>(counts_.size()); ++block) {
            displacements_.push_back(block * count_);
            byte_displacements_.push_back(block * count_ * static_cast<int>(size_of(call.element)));
            addresses_.push_back(byte_displacements_.back());
        }
        if (is_with_neighbors(operation_)) grid_ = grid_of_all_ranks();
        if (form == Form::persistent) init();
    }
    ~LibraryCollective() override {
        if (form_ == Form::persistent) MPI_Request_free(&request_);
        if (grid_ != MPI_COMM_NULL) MPI_Comm_free(&grid_);
    }
    std::string name() const override { return library_name(); }
    void start() override {
        if (form_ == Form::nonblocking) post();
        if (form_ == Form::persistent) MPI_Start(&request_);
    }
    void finish() override {
        if (form_ == Form::blocking)
            call();
        else
            MPI_Wait(&request_, MPI_STATUS_IGNORE);
    }

  private:
    // The arguments of each operation once: FORM puts its prefix and suffix around them.
#define GANTRY_BENCH_COLLECTIVES(FORM)                                                            \
    switch (operation_) {                                                                         \
        case Operation::barrier: FORM(barrier, Barrier, kWorld); break;                           \
        case Operation::bcast:                                                                    \
            FORM(bcast, Bcast, in_, count_, type_, kCollectiveRoot, kWorld);                      \
            break;                                                                                \
        case Operation::gather:                                                                   \
            FORM(gather, Gather, out_, count_, type_, in_, count_, type_, kCollectiveRoot,        \
                 kWorld);                                                                         \
            break;                                                                                \
        case Operation::gatherv:                                                                  \
            FORM(gatherv, Gatherv, out_, count_, type_, in_, counts_.data(),                      \
                 displacements_.data(), type_, kCollectiveRoot, kWorld);                          \
            break;                                                                                \
        case Operation::scatter:                                                                  \
            FORM(scatter, Scatter, out_, count_, type_, in_, count_, type_, kCollectiveRoot,      \
                 kWorld);                                                                         \
            break;                                                                                \
        case Operation::scatterv:                                                                 \
            FORM(scatterv, Scatterv, out_, counts_.data(), displacements_.data(), type_, in_,     \
                 count_, type_, kCollectiveRoot, kWorld);                                         \
            break;                                                                                \
        case Operation::allgather:                                                                \
            FORM(allgather, Allgather, out_, count_, type_, in_, count_, type_, kWorld);          \
            break;                                                                                \
        case Operation::allgatherv:                                                               \
            FORM(allgatherv, Allgatherv, out_, count_, type_, in_, counts_.data(),                \
                 displacements_.data(), type_, kWorld);                                           \
            break;                                                                                \
        case Operation::alltoall:                                                                 \
            FORM(alltoall, Alltoall, out_, count_, type_, in_, count_, type_, kWorld);            \
            break;                                                                                \
        case Operation::alltoallv:                                                                \
            FORM(alltoallv, Alltoallv, out_, counts_.data(), displacements_.data(), type_, in_,   \
                 counts_.data(), displacements_.data(), type_, kWorld);                           \
            break;                                                                                \
        case Operation::alltoallw:                                                                \
            FORM(alltoallw, Alltoallw, out_, counts_.data(), byte_displacements_.data(),          \
                 types_.data(), in_, counts_.data(), byte_displacements_.data(), types_.data(),   \
                 kWorld);                                                                         \
            break;                                                                                \
        case Operation::reduce:                                                                   \
            FORM(reduce, Reduce, out_, in_, count_, type_, op_, kCollectiveRoot, kWorld);         \
            break;                                                                                \
        case Operation::allreduce:                                                                \
            FORM(allreduce, Allreduce, out_, in_, count_, type_, op_, kWorld);                    \
            break;                                                                                \
        case Operation::reduce_scatter:                                                           \
            FORM(reduce_scatter_block, Reduce_scatter_block, out_, in_, count_, type_, op_,       \
                 kWorld);                                                                         \
            break;                                                                                \
        case Operation::scan: FORM(scan, Scan, out_, in_, count_, type_, op_, kWorld); break;     \
        case Operation::exscan: FORM(exscan, Exscan, out_, in_, count_, type_, op_, kWorld);      \
            break;                                                                                \
        case Operation::neighbor_allgather:                                                       \
            FORM(neighbor_allgather, Neighbor_allgather, out_, count_, type_, in_, count_, type_, \
                 grid_);                                                                          \
            break;                                                                                \
        case Operation::neighbor_allgatherv:                                                      \
            FORM(neighbor_allgatherv, Neighbor_allgatherv, out_, count_, type_, in_,              \
                 counts_.data(), displacements_.data(), type_, grid_);                            \
            break;                                                                                \
        case Operation::neighbor_alltoall:                                                        \
            FORM(neighbor_alltoall, Neighbor_alltoall, out_, count_, type_, in_, count_, type_,   \
                 grid_);                                                                          \
            break;                                                                                \
        case Operation::neighbor_alltoallv:                                                       \
            FORM(neighbor_alltoallv, Neighbor_alltoallv, out_, counts_.data(),                    \
                 displacements_.data(), type_, in_, counts_.data(), displacements_.data(), type_, \
                 grid_);                                                                          \
            break;                                                                                \
        case Operation::neighbor_alltoallw:                                                       \
            FORM(neighbor_alltoallw, Neighbor_alltoallw, out_, counts_.data(), addresses_.data(), \
                 types_.data(), in_, counts_.data(), addresses_.data(), types_.data(), grid_);    \
            break;                                                                                \
        case Operation::fan_in:                                                                   \
        case Operation::fan_out:                                                                  \
        case Operation::pairs: break;                                                             \
    }
#define GANTRY_BENCH_BLOCKING(lower, Upper, ...) MPI_##Upper(__VA_ARGS__)
#define GANTRY_BENCH_NONBLOCKING(lower, Upper, ...) MPI_I##lower(__VA_ARGS__, &request_)
#define GANTRY_BENCH_PERSISTENT(lower, Upper, ...) \
    MPI_##Upper##_init(__VA_ARGS__, MPI_INFO_NULL, &request_)
    void call() {
        GANTRY_BENCH_COLLECTIVES(GANTRY_BENCH_BLOCKING)
    }
    void post() {
        GANTRY_BENCH_COLLECTIVES(GANTRY_BENCH_NONBLOCKING)
    }
    void init(){GANTRY_BENCH_COLLECTIVES(GANTRY_BENCH_PERSISTENT)}

    Operation operation_;
    Form form_;
    void *out_, *in_;
    int count_;
    std::vector<int> counts_, displacements_, byte_displacements_;
    std::vector<MPI_Aint> addresses_;
    MPI_Datatype type_;
    MPI_Op op_;
    std::vector<MPI_Datatype> types_;
    MPI_Comm grid_ = MPI_COMM_NULL;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

std::unique_ptr<CollectiveWay> library_collective(const Collective& call, Form form,
                                                  const Buffer& out, const Buffer& in) {
    if (is_of_messages(call.operation)) return library_messages(call, out, in);
    return std::make_unique<LibraryCollective>(call, form, out, in);
}

}  // namespace gantry::bench
