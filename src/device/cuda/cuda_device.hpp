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
//   bar_mappings   our own memory mapped for the processor (GDRCopy)
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
#include "device/cuda/bar_mappings.hpp"
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

    bool active() override;
    RankGpu gpu_of_rank(int local_rank) override;
    std::span<const GpuFacts> gpus() override;
    bool reaches(int gpu, const Uuid& other) override;
    bool is_kept_away(int gpu, const Uuid& other) override;

    Result<Location> classify(const void* address, Bytes bytes) override;

    void copy(const Copy& copy, Completion& done) override;
    bool cut_through(const Copy& copy, Completion* done) override;
    void reduce(const Reduce& reduce, Completion& done) override;
    void get_ready(const Copy* like) override;
    void flush_batch(BatchHint more) override;
    int progress() override;
    bool pending() const override;
    bool has_bar_mapping(const Location& location, const void* address, Bytes bytes) override;

    Status pin(void* address, Bytes bytes) override;
    void unpin(void* address) override;

    Result<IpcHandle> export_memory(const Location& location) override;
    Result<void*> open_memory(const IpcHandle& handle, int gpu,
                              Opening opening = Opening::allowed) override;
    Status settle_network_writes(int gpu) override;
    void close_memory(const IpcHandle& handle, int gpu) override;
    bool opens_first(IpcKind kind, int gpu, const Uuid& other) override {
        return gpu_of(other) != gpu && mappings_.opens_first(kind, gpu, other);
    }
    Access access(const IpcHandle& handle, int gpu) override;
    std::uint32_t descriptor_inbox() override;
    Status send_descriptor(const IpcHandle& handle, std::uint32_t inbox) override;
    void* borrow(const void* like, Bytes bytes) override;
    void give_back(void* borrowed) override { scratch_.give_back(borrowed); }
    void forget_memory(std::uint64_t buffer_id, const Uuid& gpu) override;
    void forget_ended_processes() override;
    bool still_valid(const IpcHandle& handle) override;

    void shut_down() override;

    const BarMappings& bar_mappings() const { return bar_mappings_; }
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
    static std::vector<Rows> rows_of_parts(std::span<const CopyPart> parts);
    void copy_parts(const Copy& copy, Completion& done);
    void* open_again(const IpcHandle& handle, int gpu);
    bool would_take_pieces(Engine engine) const;
    Way& last_way(const Copy& copy);
    Way& cut_through_way(Engine engine) { return cut_through_ways_[engine == Engine::d2h ? 0 : 1]; }
    void learn_cut_through(const Copy& copy, const Way& way);
    void remember(Way& way, const Place& source, const Place& destination) const;
    // Its context lives, and is the one to work in on that GPU.
    void note_use_of(const Allocation& allocation);
    Place place(const void* address);
    Route route(const Copy& copy, Way* way);
    bool is_page_locked(const void* address, Bytes bytes) const;
    bool rows_lie_in_our_pins(const Copy& copy, bool to_host) const;
    static Queue queue_of(const Copy& copy, const Place& source, const Place& destination);
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
    BarMappings bar_mappings_;
    std::vector<std::unique_ptr<Streams>> streams_;  // one per context: few
    Exports exports_;
    Scratch scratch_;
    std::array<Way, 3> last_ways_;  // between devices, to and from host memory
    std::array<Way, 2>
        cut_through_ways_;  // to host memory and from it: of the last one with pieces
    std::optional<KeptCurrent> kept_;
};

}  // namespace gantry::device::cuda
