// SPDX-License-Identifier: BSD-3-Clause
//
// The floors of one-sided operations: the target's memory mapped at the origin, and nothing else.
//
//     memcpy   between host memories: the processor's copy
//     atomic   of one item in host memory: the processor's instruction
//     copy     where a device takes part: copies by the copy engine, cuStreamSynchronize
//     kernel   between devices: one launch of Gantry's own copying kernel for all operations before a
//              synchronisation, and the words that its blocks write at the origin
//
// Of accumulate they are the same copies: its bytes have to travel, too. Managed memory cannot be
// mapped, and single items in device memory have no floor.
#include "one_sided_way.hpp"

#include "pair_memory.hpp"
#include "side_by_side.hpp"

#include "device/kernels/copy_many.hpp"
#ifdef GANTRY_BENCH_KERNELS
#include "device/kernels/images.hpp"
#endif

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

namespace gantry::bench {
namespace {

constexpr Bytes kBytesPerPart = 8 * kKiB;
constexpr unsigned kWords = 1024;  // one per block of a launch
constexpr int kLooksBeforeYield = 100000;

bool on_host(Placement placement) {
    return placement == Placement::host || placement == Placement::pinned;
}

// Target memory of both ranks: device memory of each, or host memory that they share.
class BareTarget {
  public:
    BareTarget(const Options& options, const Plan& plan)
        : mine_on_device_(options.placement[side()] == Placement::device),
          theirs_on_device_(options.placement[1 - side()] == Placement::device),
          device_(mine_on_device_ ? Placement::device : Placement::host, plan.bytes, plan.messages),
          shared_(2 * device_.total_bytes()),
          mapped_(device_, mine_on_device_, theirs_on_device_) {}

    // Of a message at the other rank.
    CUdeviceptr there(int message) const {
        return theirs_on_device_ ? mapped_.at(offset(message))
                                 : shared_.device() + shared_offset(1 - side(), message);
    }
    std::byte* host_there(int message) const {
        return shared_.data() + shared_offset(1 - side(), message);
    }
    void write(const std::byte* from) const {
        if (mine_on_device_)
            device_.write(from);
        else
            std::memcpy(shared_.data() + shared_offset(side(), 0), from, device_.total_bytes());
    }
    void read(std::byte* to) const {
        if (mine_on_device_)
            device_.read(to);
        else
            std::memcpy(to, shared_.data() + shared_offset(side(), 0), device_.total_bytes());
    }

  private:
    Bytes offset(int message) const { return device_.stride() * static_cast<Bytes>(message); }
    Bytes shared_offset(int of_side, int message) const {
        return static_cast<Bytes>(of_side) * device_.total_bytes() + offset(message);
    }
    bool mine_on_device_, theirs_on_device_;
    Buffer device_;
    PairMemory shared_;
    PeersDevice mapped_;
};

// One launch for several copies; the host sees its end in a word for each block.
class CopyKernel {
  public:
    CopyKernel() : words_(2 * kWords * kernels::kFlagBytes) {
        Driver& cuda = driver();
#ifdef GANTRY_BENCH_KERNELS
        cuda.check(cuda.cuModuleLoadData(&module_, kernels::copy_many().ptx), "cuModuleLoadData");
        cuda.check(cuda.cuModuleGetFunction(&many_, module_, "gantry_copy_many"),
                   "cuModuleGetFunction");
        cuda.check(cuda.cuModuleGetFunction(&few_, module_, "gantry_copy_few"),
                   "cuModuleGetFunction");
#else
        (void)cuda;
#endif
    }
    ~CopyKernel() {
        if (module_ != nullptr) driver().cuModuleUnload(module_);
    }
    CopyKernel(const CopyKernel&) = delete;
    CopyKernel& operator=(const CopyKernel&) = delete;

    // `copy(i)` gives destination and source of each.
    template <class Copy>
    void run(CUstream stream, int count, Bytes bytes, Copy copy) {
        if (count <= static_cast<int>(kernels::kFewCopies))
            run_as<kernels::CopyFew>(few_, stream, count, bytes, copy);
        else
            run_as<kernels::CopyMany>(many_, stream, count, bytes, copy);
    }

  private:
    template <class Work, class Copy>
    void run_as(CUfunction kernel, CUstream stream, int count, Bytes bytes, Copy copy) {
        Work work{};
        for (int i = 0; i < count; ++i) {
            const auto [to, from] = copy(i);
            work.copy[i] = {to, from, bytes};
        }
        const Bytes most = (kWords - 1) / static_cast<unsigned>(count);
        const auto parts =
            static_cast<unsigned>(std::clamp<Bytes>(divide_up(bytes, kBytesPerPart), 1, most));
        const unsigned blocks = parts * static_cast<unsigned>(count);
        work.flags = words_.device() + first_word() * kernels::kFlagBytes;
        work.sequence = ++sequence_;
        work.parts = parts;
        work.copies = static_cast<unsigned>(count);
        void* parameters[] = {&work};
        driver().check(driver().cuLaunchKernel(kernel, blocks, 1, 1, kernels::kCopyThreads, 1, 1, 0,
                                               stream, parameters, nullptr),
                       "cuLaunchKernel");
        for (unsigned block = 0; block < blocks; ++block)
            await(block);
    }
    static unsigned first_word() {
        return static_cast<unsigned>(side()) * kWords;
    }
    void await(unsigned block) const {
        const std::atomic_ref<std::uint32_t> shown(
            reinterpret_cast<std::uint32_t*>(words_.data())[first_word() + block]);
        int looks = 0;
        while (static_cast<std::int32_t>(shown.load(std::memory_order_acquire) - sequence_) < 0)
            if (++looks > kLooksBeforeYield) sched_yield();
    }

    PairMemory words_;
    CUmodule module_ = nullptr;
    CUfunction many_ = nullptr, few_ = nullptr;
    std::uint32_t sequence_ = 0;
};

class BareWay final : public OneSidedWay {
  public:
    BareWay(BareOneSided kind, const Options& options, const Plan& plan,
            const OriginBuffers& origin)
        : kind_(kind),
          verb_(options.benchmark),
          plan_(plan),
          per_sync_(options.measure == Measure::latency ? 1 : plan.messages),
          origin_(is_origin(options)),
          buffers_(origin),
          target_(options, plan) {
        if (kind == BareOneSided::kernel) kernel_.emplace();
        if (uses_stream())
            driver().check(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING),
                           "cuStreamCreate");
    }
    ~BareWay() override {
        if (uses_stream()) driver().cuStreamDestroy_v2(stream_);
        meet();  // nobody unmaps what the other's device still reaches
    }
    std::string name() const override {
        switch (kind_) {
            case BareOneSided::memcpy: return "memcpy";
            case BareOneSided::atomic: return "atomic";
            case BareOneSided::copy: return "copy";
            case BareOneSided::kernel: return "kernel";
        }
        return "?";
    }
    bool adds() const override { return kind_ == BareOneSided::atomic; }
    double round(int number) override {
        if (!origin_) return 0;
        const double start = MPI_Wtime();
        for (int first = 0; first < plan_.messages; first += per_sync_) {
            if (kind_ == BareOneSided::kernel) {
                kernel_->run(stream_, per_sync_, plan_.bytes,
                             [this, first](int i) { return ends(first + i); });
                continue;
            }
            for (int i = first; i < first + per_sync_; ++i)
                begin(i, number);
            if (kind_ == BareOneSided::copy)
                driver().check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
        }
        return MPI_Wtime() - start;
    }
    void write_exposed(const std::byte* from) override { target_.write(from); }
    void read_exposed(std::byte* to) override { target_.read(to); }

  private:
    struct Ends {
        CUdeviceptr to, from;
    };
    bool uses_stream() const {
        return kind_ == BareOneSided::copy || kind_ == BareOneSided::kernel;
    }
    Ends ends(int message) const {
        if (verb_ == Benchmark::get)
            return {address_of(buffers_.result.message(message)), target_.there(message)};
        return {target_.there(message), address_of(buffers_.operand.message(message))};
    }
    void begin(int message, int number) {
        if (kind_ == BareOneSided::copy) {
            const Ends copied = ends(message);
            driver().check(driver().cuMemcpyAsync(copied.to, copied.from, plan_.bytes, stream_),
                           "cuMemcpyAsync", plan_.bytes);
        } else if (kind_ == BareOneSided::atomic) {
            change(message, number);
        } else if (verb_ == Benchmark::get) {
            std::memcpy(buffers_.result.message(message), target_.host_there(message), plan_.bytes);
        } else {
            std::memcpy(target_.host_there(message), buffers_.operand.message(message),
                        plan_.bytes);
        }
    }
    void change(int message, int number) {
        const std::atomic_ref<long> item(*reinterpret_cast<long*>(target_.host_there(message)));
        const auto* const operand = static_cast<const long*>(buffers_.operand.message(message));
        auto& result = *static_cast<long*>(buffers_.result.message(message));
        if (verb_ == Benchmark::fetch_op) {
            result = item.fetch_add(operand[0]);
            return;
        }
        long seen = operand[number % 2];
        item.compare_exchange_strong(seen, operand[1 - number % 2]);
        result = seen;
    }

    BareOneSided kind_;
    Benchmark verb_;
    const Plan& plan_;
    int per_sync_;
    bool origin_;
    OriginBuffers buffers_;
    BareTarget target_;
    std::optional<CopyKernel> kernel_;
    CUstream stream_ = nullptr;
};

}  // namespace

std::vector<BareOneSided> one_sided_floors(const Options& options, const Plan& plan) {
    const bool one_item =
        options.benchmark == Benchmark::fetch_op || options.benchmark == Benchmark::cas;
    if (on_host(options.placement[0]) && on_host(options.placement[1]))
        return {one_item ? BareOneSided::atomic : BareOneSided::memcpy};
    const bool no_floor = std::ranges::any_of(options.placement, [](Placement placement) {
        return placement == Placement::managed || placement == Placement::openacc;
    });
    if (no_floor || one_item || without_ipc() || !driver().has_floors()) return {};
    std::vector<BareOneSided> kinds = {BareOneSided::copy};
#ifdef GANTRY_BENCH_KERNELS
    const bool both = options.placement[0] == options.placement[1];
    if (both && plan.messages <= static_cast<int>(kernels::kCopiesPerLaunch))
        kinds.push_back(BareOneSided::kernel);
#else
    (void)plan;
#endif
    return kinds;
}

std::unique_ptr<OneSidedWay> bare_one_sided(BareOneSided kind, const Options& options,
                                            const Plan& plan, const OriginBuffers& origin) {
    return std::make_unique<BareWay>(kind, options, plan, origin);
}

}  // namespace gantry::bench
