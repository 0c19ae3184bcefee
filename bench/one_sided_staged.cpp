// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Put and MPI_Get between devices by hand, with an MPI that knows none: the window and the origin's
// buffer are pinned host memory. Who has the bytes copies them out before the first fence; who gets them copies them
// to its device behind the second.
#include "one_sided_way.hpp"

#include <mpi.h>

namespace gantry::bench {
namespace {

class StagedOneSided final : public OneSidedWay {
  public:
    StagedOneSided(const Options& options, const Plan& plan, const OriginBuffers& origin)
        : puts_(options.benchmark == Benchmark::put),
          plan_(plan),
          origin_(origin),
          exposed_(options.placement[side()], plan.bytes, plan.messages),
          staging_(plan.bytes * static_cast<Bytes>(plan.messages), true) {
        MPI_Win_create(staging_.data(), static_cast<MPI_Aint>(plan.bytes) * plan.messages, 1,
                       MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
    }
    ~StagedOneSided() override { MPI_Win_free(&win_); }
    StagedOneSided(const StagedOneSided&) = delete;
    StagedOneSided& operator=(const StagedOneSided&) = delete;

    std::string name() const override { return "staged"; }
    void write_exposed(const std::byte* from) override { exposed_.write(from); }
    void read_exposed(std::byte* to) override { exposed_.read(to); }

    double round(int) override {
        const double start = MPI_Wtime();
        for (int i = 0; i < plan_.messages; ++i)
            one(i);
        return MPI_Wtime() - start;
    }

  private:
    void one(int message) {
        const bool is_origin = side() == 0;
        const bool has_bytes = is_origin == puts_;
        const auto bytes = static_cast<int>(plan_.bytes);
        const MPI_Aint there = static_cast<MPI_Aint>(plan_.bytes) * message;
        std::byte* const host = staging_.data() + there;
        const Buffer& mine = is_origin ? (puts_ ? origin_.operand : origin_.result) : exposed_;
        if (has_bytes) copy_to_host(host, mine.message(message), plan_.bytes);
        MPI_Win_fence(0, win_);
        if (is_origin && puts_)
            MPI_Put(host, bytes, MPI_BYTE, peer(), there, bytes, MPI_BYTE, win_);
        if (is_origin && !puts_)
            MPI_Get(host, bytes, MPI_BYTE, peer(), there, bytes, MPI_BYTE, win_);
        MPI_Win_fence(0, win_);
        if (!has_bytes) copy_to_device(mine.message(message), host, plan_.bytes);
    }

    bool puts_;
    const Plan& plan_;
    OriginBuffers origin_;
    Buffer exposed_;
    HostMemory staging_;
    MPI_Win win_ = MPI_WIN_NULL;
};

}  // namespace

std::unique_ptr<OneSidedWay> staged_one_sided(const Options& options, const Plan& plan,
                                              const OriginBuffers& origin) {
    return std::make_unique<StagedOneSided>(options, plan, origin);
}

}  // namespace gantry::bench
