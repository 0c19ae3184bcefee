// SPDX-License-Identifier: BSD-3-Clause
//
// NCCL beside the library: found at run time, one communicator of all ranks, a stream of its own. A
// call lasts until the stream has done it, as an MPI call lasts until its buffers may be used.
// Operations that NCCL does not have are groups of its sends and receives, as its manual makes them.
#include "collective_way.hpp"

#include "driver.hpp"
#include "job.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <dlfcn.h>

#include <cstdlib>

namespace gantry::bench {
namespace {

using Communicator = struct ncclComm*;
struct UniqueId {
    char bytes[128];
};
constexpr int kInt32 = 2, kSum = 0;  // ncclInt32, ncclSum

class Nccl {
  public:
    // All ranks, once; null with a reason where a rank cannot.
    static Nccl* open(std::string* why_not) {
        static Nccl nccl;
        if (!nccl.tried_) nccl.start();
        *why_not = nccl.why_not_;
        return nccl.why_not_.empty() ? &nccl : nullptr;
    }

    void check(int result, const char* call) const {
        if (result != 0) give_up(fmt::format("{} failed: {}", call, error_string_(result)));
    }
    Communicator communicator = nullptr;
    CUstream stream = nullptr;
    int (*all_reduce)(const void*, void*, std::size_t, int, int, Communicator, CUstream) = nullptr;
    int (*reduce)(const void*, void*, std::size_t, int, int, int, Communicator, CUstream) = nullptr;
    int (*broadcast)(const void*, void*, std::size_t, int, int, Communicator, CUstream) = nullptr;
    int (*all_gather)(const void*, void*, std::size_t, int, Communicator, CUstream) = nullptr;
    int (*reduce_scatter)(const void*, void*, std::size_t, int, int, Communicator,
                          CUstream) = nullptr;
    int (*send)(const void*, std::size_t, int, int, Communicator, CUstream) = nullptr;
    int (*receive)(void*, std::size_t, int, int, Communicator, CUstream) = nullptr;
    int (*group_start)() = nullptr;
    int (*group_end)() = nullptr;

  private:
    template <class Function>
    bool find(Function& function, const char* symbol) {
        function = reinterpret_cast<Function>(dlsym(library_, symbol));
        if (function == nullptr) why_not_ = fmt::format("{} is missing", symbol);
        return function != nullptr;
    }
    void load() {
        const char* path = std::getenv("NCCL_LIBRARY");
        library_ = dlopen(path != nullptr ? path : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (library_ == nullptr) {
            why_not_ = fmt::format("{}; NCCL_LIBRARY=PATH names the library", dlerror());
            return;
        }
        find(error_string_, "ncclGetErrorString") && find(unique_id_, "ncclGetUniqueId") &&
            find(init_rank_, "ncclCommInitRank") && find(all_reduce, "ncclAllReduce") &&
            find(reduce, "ncclReduce") && find(broadcast, "ncclBroadcast") &&
            find(all_gather, "ncclAllGather") && find(reduce_scatter, "ncclReduceScatter") &&
            find(send, "ncclSend") && find(receive, "ncclRecv") &&
            find(group_start, "ncclGroupStart") && find(group_end, "ncclGroupEnd");
    }
    // Whether all ranks can: a rank that cannot has said why.
    bool everybody() {
        int without = why_not_.empty() ? 0 : 1, any = 0;
        MPI_Allreduce(&without, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (any != 0 && why_not_.empty()) why_not_ = "another rank has no NCCL";
        return any == 0;
    }
    void say(int result, const char* call) {
        if (result != 0) why_not_ = fmt::format("{} failed: {}", call, error_string_(result));
    }
    void start() {
        tried_ = true;
        load();
        if (!everybody()) return;
        int rank = 0, ranks = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        UniqueId id{};
        if (rank == 0) say(unique_id_(&id), "ncclGetUniqueId");
        if (!everybody()) return;
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
        say(init_rank_(&communicator, ranks, id, rank), "ncclCommInitRank");
        if (!everybody()) return;
        driver().check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }

    void* library_ = nullptr;
    bool tried_ = false;
    std::string why_not_;
    const char* (*error_string_)(int) = nullptr;
    int (*unique_id_)(UniqueId*) = nullptr;
    int (*init_rank_)(Communicator*, int, UniqueId, int) = nullptr;
};

bool nccl_has(Operation operation) {
    switch (operation) {
        case Operation::bcast:
        case Operation::gather:
        case Operation::scatter:
        case Operation::allgather:
        case Operation::alltoall:
        case Operation::reduce:
        case Operation::allreduce:
        case Operation::reduce_scatter: return true;
        default: return false;
    }
}

class NcclCollective final : public CollectiveWay {
  public:
    NcclCollective(Nccl& nccl, const Collective& call, const Buffer& out, const Buffer& in)
        : nccl_(nccl),
          call_(call),
          out_(static_cast<std::int32_t*>(out.message(0))),
          in_(static_cast<std::int32_t*>(in.message(0))) {}
    std::string name() const override { return "NCCL"; }
    void start() override {
        const std::size_t count = call_.count;
        Communicator all = nccl_.communicator;
        switch (call_.operation) {
            case Operation::bcast:
                return did(
                    nccl_.broadcast(in_, in_, count, kInt32, kCollectiveRoot, all, nccl_.stream),
                    "ncclBroadcast");
            case Operation::allgather:
                return did(nccl_.all_gather(out_, in_, count, kInt32, all, nccl_.stream),
                           "ncclAllGather");
            case Operation::reduce:
                return did(nccl_.reduce(out_, in_, count, kInt32, kSum, kCollectiveRoot, all,
                                        nccl_.stream),
                           "ncclReduce");
            case Operation::allreduce:
                return did(nccl_.all_reduce(out_, in_, count, kInt32, kSum, all, nccl_.stream),
                           "ncclAllReduce");
            case Operation::reduce_scatter:
                return did(nccl_.reduce_scatter(out_, in_, count, kInt32, kSum, all, nccl_.stream),
                           "ncclReduceScatter");
            default: break;
        }
        did(nccl_.group_start(), "ncclGroupStart");
        const bool root = call_.rank == kCollectiveRoot;
        const bool each = call_.operation == Operation::alltoall;
        const bool sends_all = each || (call_.operation == Operation::scatter && root);
        const bool receives_all = each || (call_.operation == Operation::gather && root);
        for (int peer = 0; peer < call_.ranks; ++peer) {
            const std::size_t at = static_cast<std::size_t>(peer) * count;
            const bool to_root = call_.operation == Operation::gather && peer == kCollectiveRoot;
            const bool from_root = call_.operation == Operation::scatter && peer == kCollectiveRoot;
            if (sends_all || to_root)
                did(nccl_.send(out_ + (sends_all ? at : 0), count, kInt32, peer, all, nccl_.stream),
                    "ncclSend");
            if (receives_all || from_root)
                did(nccl_.receive(in_ + (receives_all ? at : 0), count, kInt32, peer, all,
                                  nccl_.stream),
                    "ncclRecv");
        }
        did(nccl_.group_end(), "ncclGroupEnd");
    }
    void finish() override {
        driver().check(driver().cuStreamSynchronize(nccl_.stream), "cuStreamSynchronize");
    }

  private:
    void did(int result, const char* call) const { nccl_.check(result, call); }
    Nccl& nccl_;
    Collective call_;
    std::int32_t *out_, *in_;
};

}  // namespace

std::unique_ptr<CollectiveWay> nccl_collective(const Collective& call, const Buffer& out,
                                               const Buffer& in, std::string* why_not) {
    if (!nccl_has(call.operation)) {
        *why_not = fmt::format("NCCL has no {}", name(call.operation));
        return nullptr;
    }
    Nccl* nccl = Nccl::open(why_not);
    if (nccl == nullptr) return nullptr;
    return std::make_unique<NcclCollective>(*nccl, call, out, in);
}

}  // namespace gantry::bench
