// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations of the library, in a window that is made and synchronised as asked.
#include "one_sided_way.hpp"

#include <mpi.h>

#include <cstring>

namespace gantry::bench {
namespace {

constexpr int kTag = 6;

// The memory of this rank and the window of both.
class ExposedWindow {
  public:
    ExposedWindow(const Options& options, const Plan& plan)
        : kind_(options.window_kind),
          buffer_(allocates() ? Placement::host : options.placement[side()], plan.bytes,
                  allocates() ? 0 : plan.messages),
          stride_(buffer_.stride()),
          bytes_(stride_ * static_cast<Bytes>(plan.messages)) {
        base_ = buffer_.message(0);
        const auto bytes = static_cast<MPI_Aint>(bytes_);
        switch (kind_) {
            case WindowKind::allocate:
                MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_);
                break;
            case WindowKind::shared:
                MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_);
                break;
            case WindowKind::create:
                MPI_Win_create(base_, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
                break;
            case WindowKind::dynamic:
                MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
                MPI_Win_attach(win_, base_, bytes);
                MPI_Aint mine = 0;
                MPI_Get_address(base_, &mine);
                MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, peer(), kTag, &first_, sizeof first_,
                             MPI_BYTE, peer(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                break;
        }
    }
    ~ExposedWindow() {
        if (kind_ == WindowKind::dynamic) MPI_Win_detach(win_, base_);
        MPI_Win_free(&win_);
    }
    ExposedWindow(const ExposedWindow&) = delete;
    ExposedWindow& operator=(const ExposedWindow&) = delete;

    MPI_Win win() const { return win_; }
    // Of a message at the other rank.
    MPI_Aint displacement(int message) const {
        return first_ + static_cast<MPI_Aint>(stride_ * static_cast<Bytes>(message));
    }
    void write(const std::byte* from) const {
        if (allocates())
            std::memcpy(base_, from, bytes_);
        else
            buffer_.write(from);
    }
    void read(std::byte* to) const {
        if (allocates())
            std::memcpy(to, base_, bytes_);
        else
            buffer_.read(to);
    }

  private:
    bool allocates() const { return kind_ == WindowKind::allocate || kind_ == WindowKind::shared; }
    WindowKind kind_;
    Buffer buffer_;  // empty where MPI allocates
    Bytes stride_, bytes_;
    void* base_ = nullptr;
    MPI_Aint first_ = 0;
    MPI_Win win_ = MPI_WIN_NULL;
};

class LibraryOneSided final : public OneSidedWay {
  public:
    LibraryOneSided(const Options& options, const Plan& plan, const OriginBuffers& origin)
        : verb_(options.benchmark),
          sync_(options.sync),
          plan_(plan),
          per_sync_(options.measure == Measure::latency ? 1 : plan.messages),
          origin_(is_origin(options)),
          target_(is_target(options)),
          buffers_(origin),
          window_(options, plan) {
        const int other = peer();
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, 1, &other, &peers_);
        MPI_Group_free(&all);
        if (sync_ == Sync::flush) MPI_Win_lock_all(0, window_.win());
        if (sync_ == Sync::fence) MPI_Win_fence(0, window_.win());
    }
    ~LibraryOneSided() override {
        if (sync_ == Sync::flush) MPI_Win_unlock_all(window_.win());
        if (sync_ == Sync::fence) MPI_Win_fence(0, window_.win());
        MPI_Group_free(&peers_);
    }
    std::string name() const override { return library_name(); }

    double round(int number) override {
        const double start = MPI_Wtime();
        for (int first = 0; first < plan_.messages; first += per_sync_) {
            open();
            for (int i = first; origin_ && i < first + per_sync_; ++i)
                begin(i, number);
            close();
        }
        return MPI_Wtime() - start;
    }

    // The program's own loads and stores are synchronised with what the other rank does.
    void write_exposed(const std::byte* from) override {
        own_access([this, from] { window_.write(from); });
    }
    void read_exposed(std::byte* to) override {
        own_access([this, to] { window_.read(to); });
    }

  private:
    template <class Access>
    void own_access(Access access) {
        if (sync_ == Sync::lock) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, window_.win());
        if (sync_ == Sync::flush) MPI_Win_sync(window_.win());
        access();
        if (sync_ == Sync::flush) MPI_Win_sync(window_.win());
        if (sync_ == Sync::lock) MPI_Win_unlock(rank(), window_.win());
    }
    void open() {
        if (sync_ == Sync::pscw && target_) MPI_Win_post(peers_, 0, window_.win());
        if (sync_ == Sync::pscw && origin_) MPI_Win_start(peers_, 0, window_.win());
        if (sync_ == Sync::lock && origin_) MPI_Win_lock(MPI_LOCK_SHARED, peer(), 0, window_.win());
    }
    void close() {
        switch (sync_) {
            case Sync::flush:
                if (origin_) MPI_Win_flush(peer(), window_.win());
                break;
            case Sync::fence: MPI_Win_fence(0, window_.win()); break;
            case Sync::pscw:
                if (origin_) MPI_Win_complete(window_.win());
                if (target_) MPI_Win_wait(window_.win());
                break;
            case Sync::lock:
                if (origin_) MPI_Win_unlock(peer(), window_.win());
                break;
        }
    }
    void begin(int message, int number) {
        void* const operand = buffers_.operand.message(message);
        void* const result = buffers_.result.message(message);
        const auto bytes = static_cast<int>(plan_.bytes);
        const auto items = static_cast<int>(plan_.bytes / kItemBytes);
        const MPI_Aint there = window_.displacement(message);
        const MPI_Win win = window_.win();
        switch (verb_) {
            case Benchmark::put:
                MPI_Put(operand, bytes, MPI_BYTE, peer(), there, bytes, MPI_BYTE, win);
                break;
            case Benchmark::get:
                MPI_Get(result, bytes, MPI_BYTE, peer(), there, bytes, MPI_BYTE, win);
                break;
            case Benchmark::accumulate:
                MPI_Accumulate(operand, items, MPI_DOUBLE, peer(), there, items, MPI_DOUBLE,
                               MPI_SUM, win);
                break;
            case Benchmark::fetch_op:
                MPI_Fetch_and_op(operand, result, MPI_LONG, peer(), there, MPI_SUM, win);
                break;
            default: {  // cas
                std::byte* const pair = static_cast<std::byte*>(operand);
                const Bytes old = number % 2 == 0 ? 0 : kItemBytes;
                MPI_Compare_and_swap(pair + kItemBytes - old, pair + old, result, MPI_LONG, peer(),
                                     there, win);
            }
        }
    }

    Benchmark verb_;
    Sync sync_;
    const Plan& plan_;
    int per_sync_;
    bool origin_, target_;
    OriginBuffers buffers_;
    ExposedWindow window_;
    MPI_Group peers_ = MPI_GROUP_NULL;
};

}  // namespace

std::unique_ptr<OneSidedWay> library_one_sided(const Options& options, const Plan& plan,
                                               const OriginBuffers& origin) {
    return std::make_unique<LibraryOneSided>(options, plan, origin);
}

}  // namespace gantry::bench
