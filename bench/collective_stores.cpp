// SPDX-License-Identifier: BSD-3-Clause
//
// The floor of a collective on GPUs of one machine: everybody's buffers mapped by CUDA IPC; each rank
// that has data stores all of it into the others' memory by one launch of Gantry's copying kernel,
// whose blocks then write words of shared page-locked memory that the receivers watch. Nobody asks
// whether a receiver has come: the caller meets before each sample, and repeats the same bytes.
#include "collective_way.hpp"

#include "driver.hpp"
#include "job.hpp"
#include "shared_pinned.hpp"

#include "device/kernels/copy_many.hpp"
#ifdef GANTRY_BENCH_KERNELS
#include "device/kernels/images.hpp"
#endif

#include <fmt/format.h>
#include <mpi.h>

#include <sched.h>

#include <algorithm>
#include <atomic>

namespace gantry::bench {
namespace {

constexpr Bytes kBytesPerPart = 8 * kKiB;
constexpr unsigned kMostBlocks = 512;  // of a launch: they fill the links
constexpr unsigned kMapPeer = 1;       // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
constexpr int kLooksBeforeYield = 100000;

// Words that GPUs write and ranks watch: kMostBlocks of each rank, one for each block of its launch.
class SharedWords {
  public:
    explicit SharedWords(const Collective& call) : SharedWords(call, bytes_for(call)) {}

    CUdeviceptr of(int writer) const {
        return memory_.device() + static_cast<Bytes>(writer) * kMostBlocks * kernels::kFlagBytes;
    }
    std::uint32_t& word(int writer, unsigned block) const {
        return reinterpret_cast<std::uint32_t*>(
            memory_.data())[static_cast<std::size_t>(writer) * kMostBlocks + block];
    }

  private:
    SharedWords(const Collective& call, Bytes bytes)
        : SharedWords(call, bytes, agree(call, bytes)) {}
    SharedWords(const Collective& call, Bytes bytes, SharedPinned::Place place)
        : memory_(place, bytes) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (call.rank == 0) SharedPinned::close(place);
    }
    static Bytes bytes_for(const Collective& call) {
        return static_cast<Bytes>(call.ranks) * kMostBlocks * kernels::kFlagBytes;
    }
    static SharedPinned::Place agree(const Collective& call, Bytes bytes) {
        SharedPinned::Place place;
        if (call.rank == 0) place = SharedPinned::make(bytes);
        MPI_Bcast(&place, 2, MPI_LONG, 0, MPI_COMM_WORLD);
        return place;
    }
    SharedPinned memory_;
};

// Everybody's incoming buffer as it is mapped here; the own one as it is.
class MappedBuffers {
  public:
    MappedBuffers(const Collective& call, const Buffer& in) : rank_(call.rank) {
        const auto ranks = static_cast<std::size_t>(call.ranks);
        std::vector<CUipcMemHandle> handles(ranks);
        CUipcMemHandle own{};
        Driver& cuda = driver();
        cuda.check(cuda.cuIpcGetMemHandle(&own, address_of(in.message(0))), "cuIpcGetMemHandle");
        MPI_Allgather(&own, sizeof own, MPI_BYTE, handles.data(), sizeof own, MPI_BYTE,
                      MPI_COMM_WORLD);
        for (int peer = 0; peer < call.ranks; ++peer) {
            CUdeviceptr address = address_of(in.message(0));
            if (peer != rank_)
                cuda.check(cuda.cuIpcOpenMemHandle_v2(
                               &address, handles[static_cast<std::size_t>(peer)], kMapPeer),
                           "cuIpcOpenMemHandle", in.total_bytes());
            addresses_.push_back(address);
        }
    }
    ~MappedBuffers() {
        for (std::size_t peer = 0; peer < addresses_.size(); ++peer)
            if (static_cast<int>(peer) != rank_) driver().cuIpcCloseMemHandle(addresses_[peer]);
        MPI_Barrier(MPI_COMM_WORLD);  // nobody frees what another has mapped
    }
    MappedBuffers(const MappedBuffers&) = delete;
    MappedBuffers& operator=(const MappedBuffers&) = delete;
    CUdeviceptr of(int peer) const { return addresses_[static_cast<std::size_t>(peer)]; }

  private:
    int rank_;
    std::vector<CUdeviceptr> addresses_;
};

bool has_floor(const Collective& call) {
    const bool stored = call.operation == Operation::alltoall ||
                        call.operation == Operation::allgather ||
                        call.operation == Operation::bcast;
    return stored && static_cast<unsigned>(call.ranks) <= kernels::kFewCopies;
}

class StoresCollective final : public CollectiveWay {
  public:
    StoresCollective(const Collective& call, const Buffer& out, const Buffer& in)
        : call_(call), out_(out), in_(in), words_(call), mapped_(call, in) {
        Driver& cuda = driver();
        cuda.check(cuda.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
#ifdef GANTRY_BENCH_KERNELS
        cuda.check(cuda.cuModuleLoadData(&module_, kernels::copy_many().ptx), "cuModuleLoadData");
        cuda.check(cuda.cuModuleGetFunction(&kernel_, module_, "gantry_copy_few"),
                   "cuModuleGetFunction");
#endif
    }
    ~StoresCollective() override {
        driver().cuStreamSynchronize(stream_);
        driver().cuStreamDestroy_v2(stream_);
        if (module_ != nullptr) driver().cuModuleUnload(module_);
    }
    std::string name() const override {
        return "stores";
    }
    void start() override {
        ++sequence_;
        if (!sends(call_.rank)) return;
        kernels::CopyFew work{};
        const Bytes block = block_bytes(call_);
        for (int peer = 0; peer < call_.ranks; ++peer) {
            const auto to = static_cast<std::size_t>(peer),
                       me = static_cast<std::size_t>(call_.rank);
            auto& copy = work.copy[peer];
            copy.bytes = block;
            switch (call_.operation) {
                case Operation::alltoall:
                    copy.source = address_of(out_.message(0)) + to * block;
                    copy.destination = mapped_.of(peer) + me * block;
                    break;
                case Operation::allgather:
                    copy.source = address_of(out_.message(0));
                    copy.destination = mapped_.of(peer) + me * block;
                    break;
                default:  // bcast: the root has it already
                    copy.source = address_of(in_.message(0));
                    copy.destination = mapped_.of(peer);
                    if (peer == call_.rank) copy.bytes = 0;
            }
        }
        work.flags = words_.of(call_.rank);
        work.sequence = sequence_;
        work.parts = parts();
        work.copies = static_cast<unsigned>(call_.ranks);
        void* parameters[] = {&work};
        driver().check(
            driver().cuLaunchKernel(kernel_, parts() * static_cast<unsigned>(call_.ranks), 1, 1,
                                    kernels::kCopyThreads, 1, 1, 0, stream_, parameters, nullptr),
            "cuLaunchKernel");
    }
    void finish() override {
        for (int writer = 0; writer < call_.ranks; ++writer)
            for (unsigned part = 0; sends(writer) && part < parts(); ++part)
                await(words_.word(writer, static_cast<unsigned>(call_.rank) * parts() + part));
        if (!sends(call_.rank)) return;
        // What the others take from this rank's buffer has been read, too.
        for (unsigned block = 0; block < parts() * static_cast<unsigned>(call_.ranks); ++block)
            await(words_.word(call_.rank, block));
    }

  private:
    bool sends(int rank) const {
        return call_.operation != Operation::bcast || rank == kCollectiveRoot;
    }
    unsigned parts() const {
        const Bytes most = kMostBlocks / static_cast<unsigned>(call_.ranks);
        return static_cast<unsigned>(
            std::clamp<Bytes>(divide_up(block_bytes(call_), kBytesPerPart), 1, most));
    }
    void await(std::uint32_t& word) const {
        const std::atomic_ref<std::uint32_t> shown(word);
        int looks = 0;
        while (static_cast<std::int32_t>(shown.load(std::memory_order_acquire) - sequence_) < 0)
            if (++looks > kLooksBeforeYield) sched_yield();
    }

    Collective call_;
    const Buffer &out_, &in_;
    SharedWords words_;
    MappedBuffers mapped_;
    CUstream stream_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction kernel_ = nullptr;
    std::uint32_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<CollectiveWay> stores_collective(const Collective& call, const Buffer& out,
                                                 const Buffer& in, std::string* why_not) {
    bool possible = has_floor(call) && driver().has_floors();
#ifndef GANTRY_BENCH_KERNELS
    possible = false;
#endif
    if (!possible) {
        *why_not = fmt::format("no floor of {}", name(call.operation));
        return nullptr;
    }
    return std::make_unique<StoresCollective>(call, out, in);
}

}  // namespace gantry::bench
