// SPDX-License-Identifier: BSD-3-Clause
//
// CudaDevice: the GPUs of this process through the driver API, for one engine. It sleeps until the
// program itself has initialised the driver, and wakes at whatever call comes next. Its parts:
//
//   driver         is there a driver; the one place that calls it
//   gpus           identity, costs and context of each GPU
//   pointer_query  + pointer_cache: what a pointer is
//   streams        copies in flight, one object per context
//   pins           page-locked host memory
//   ipc_cache      peers' memory mapped here
//   windows        our own memory mapped for the processor (GDRCopy)
//
// A context that the program destroys is noticed at the next use: what lived in it is dropped
// without a driver call, copies in flight complete with an error, and the next copy makes new
// streams. Copies from and to pageable memory are made by the driver through its own buffers, and
// block for their duration: callers use them for small sizes and stage larger ones.
#pragma once

#include "base/config.hpp"
#include "device/cuda/context_watch.hpp"
#include "device/cuda/gpu.hpp"
#include "device/cuda/ipc_cache.hpp"
#include "device/cuda/pins.hpp"
#include "device/cuda/pointer_query.hpp"
#include "device/cuda/scratch.hpp"
#include "device/cuda/streams.hpp"
#include "device/cuda/windows.hpp"
#include "device/device.hpp"
#include "device/pointer_cache.hpp"

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace gantry::device::cuda {

class CudaDevice final : public Device {
  public:
    explicit CudaDevice(const config::Config& config);
    ~CudaDevice() override;

    const char* name() const override { return "cuda"; }
    bool active() override;
    int gpu_count() override;
    const GpuFacts& gpu_facts(int gpu) override;
    int gpu_of(const Uuid& uuid) override;
    bool can_access_peer(int gpu, int other) override;

    Result<Location> classify(const void* address, Bytes bytes) override;

    void meet(const Neighbours* neighbours) override { settings_.neighbours = neighbours; }
    void copy(const Copy& copy, Completion& done) override;
    bool cut_through(const Copy& copy, Completion& done) override;
    bool would_cut_through(Engine engine) const override;
    void reduce(const Reduce& reduce, Completion& done) override;
    void get_ready(const Copy& like) override;
    void let_go() override { kept_.reset(); }
    void flush_batch(BatchHint more) override;
    bool copy_together(std::span<const Copy> copies, Completion& done) override;
    int progress() override;
    bool pending() const override;
    Resident resident() const override;
    DriverUse driver_use() const override;

    bool has_windows() override;
    bool window(const Location& location, const void* address, Bytes bytes) override;
    Status read_window(const Location& location, const void* address, void* to,
                       Bytes bytes) override;
    Status write_window(const Location& location, void* address, const void* from,
                        Bytes bytes) override;

    Status pin(void* address, Bytes bytes) override;
    void unpin(void* address) override;

    Result<IpcHandle> export_memory(const Location& location) override;
    Result<void*> open_memory(const IpcHandle& handle, int gpu) override;
    void* open_again(const IpcHandle& handle, int gpu) override;
    Status settle_network_writes(int gpu) override;
    void close_memory(const IpcHandle& handle, int gpu) override;
    std::uint64_t losses() const override {
        return losses_ + mappings_.losses() + pointers_.losses();
    }
    Access access(const IpcHandle& handle, int gpu) override;
    std::uint32_t descriptor_inbox() override;
    Status send_descriptor(const IpcHandle& handle, std::uint32_t inbox) override;
    void* borrow(const void* like, Bytes bytes) override;
    void give_back(void* borrowed) override { scratch_.give_back(borrowed); }
    void forget_memory(std::uint64_t buffer_id, const Uuid& gpu) override;
    bool still_valid(const IpcHandle& handle) override;

    void shut_down() override;

    const Windows& windows() const { return windows_; }
    // Exact counts of driver calls, for tests and explanations.
    const Calls& calls() const { return driver_.calls(); }

  private:
    // Where one end of a copy is, from what is known without asking the driver.
    struct Place {
        bool device = false;
        bool mapped = false;  // a peer's memory
        bool pages = false;   // managed: it may be on the host just now
        int gpu = -1;         // whose context reaches it
        int home = -1;        // where the memory is
        CUcontext context = nullptr;
        Range range;
    };
    struct Route {
        Order order;
        CUcontext context = nullptr;  // null: the GPU's usual one
        int gpu = 0;
        bool host_only = false;
    };
    // The way of the last copy between devices, or between a device and memory that we have
    // page-locked: between the same memories the next one goes it, too.
    struct Way {
        Streams* streams = nullptr;  // none: nothing is known
        std::uint64_t losses = 0;
        Copy asked;  // its engine and GPU; to or from host memory its size, too
        Order order;
        Range source, destination;
        Range word{};  // where Copy::word may lie
        bool goes_on(const Copy& copy, std::uint64_t losses_now) const;
        bool carries(const Copy& copy, std::uint64_t losses_now) const;  // whatever its size
    };
    Way& last_way(const Copy& copy);
    Way& flowing_way(Engine engine) { return flowing_ways_[engine == Engine::d2h ? 0 : 1]; }
    void learn_flow(const Copy& copy, const Way& way);
    void remember(Way& way, const Place& source, const Place& destination) const;
    // Its context lives, and is the one to work in on that GPU.
    void note_use_of(const Allocation& allocation);
    Place place(const void* address) const;
    Route route(const Copy& copy, Way* way);
    bool is_page_locked(const void* address, Bytes bytes) const;
    static Lane lane_of(const Copy& copy, const Place& source, const Place& destination);
    Result<Streams*> streams_in(CUcontext context, int gpu);
    Result<Context> working_context(int gpu);
    // What a copy uses of peers' memory.
    struct Mapped {
        std::optional<IpcCache::Mapping> source, destination;
    };
    Mapped mapped_ends(const Copy& copy) const;
    bool map_again(const Mapped& lost, Copy& copy);
    const void* map_again(const IpcCache::Mapping& lost, const void* address);
    void drop_context(CUcontext context);
    // Lets go of everything in contexts that the program has destroyed, before their handles are
    // used again.
    void drop_dead_contexts();

    CopySettings settings_;
    const bool gdrcopy_;  // GANTRY_GDRCOPY
    pid_t owner_;         // a forked child owns nothing of this
    Driver driver_;
    GpuTable gpus_;
    DriverQuery query_;
    PointerCache pointers_;
    ContextWatch watch_;
    Pins pins_;
    IpcCache mappings_;
    Windows windows_;
    std::vector<std::unique_ptr<Streams>> streams_;  // one per context: few
    Exports exports_;
    Scratch scratch_;
    std::array<Way, 3> last_ways_;     // between devices, to and from host memory
    std::array<Way, 2> flowing_ways_;  // to host memory and from it: of the last one with pieces
    std::optional<KeptCurrent> kept_;
    std::uint64_t losses_ = 0;  // contexts that went
};

}  // namespace gantry::device::cuda
