// SPDX-License-Identifier: BSD-3-Clause
//
// The one seam to device code. A Device is what one engine sees of all the GPUs of its
// process. Implementations: `cuda/` (the driver, dlopen'ed), `fake/` (host memory on the world's
// clock), and `none` when there is no driver. Capabilities are facts: a verb that is not there
// answers MPI_ERR_UNSUPPORTED_OPERATION, and the planner does not choose it.
//
// Nothing here blocks: work is started with a Completion and `progress()` completes it. No call
// touches a driver that the program has not initialised itself.
#pragma once

#include "base/status.hpp"
#include "base/task.hpp"
#include "device/driver_use.hpp"
#include "device/facts.hpp"
#include "device/neighbours.hpp"
#include "layout/reduce.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace gantry::device {

// What classification says about a buffer.
struct Location {
    MemoryKind kind = MemoryKind::host;
    int gpu = -1;                 // index into gpu_facts(), for device and managed memory
    IpcKind ipc = IpcKind::none;  // how a peer process could map it
    std::uint64_t buffer_id = 0;  // the driver's identity of the allocation, unique for ever
    std::uintptr_t base = 0;      // the allocation around the pointer
    Bytes size = 0;
    std::uint64_t pool = 0;  // the driver's name of the pool that it comes from; 0: none
    bool on_device() const { return kind == MemoryKind::device; }
};

// Which engine does a copy. `automatic` lets the device choose from the locations. `fused`, between
// device memories: by a copy engine at once, or, while others are in flight, with those that come
// meanwhile in one kernel or one call (facts.hpp). `kernel`, of at most kMostSetsOfKernel sets of
// rows, also inside one GPU or to and from a peer's memory that is mapped for it: all in one launch;
// MPI_ERR_UNSUPPORTED_OPERATION where there are no kernels, the host's end is not page-locked, or
// another GPU's memory is this process's own. `bar`: by the processor, through a BAR mapping of
// `Copy::allocation` (GDRCopy): the copy has ended when copy() returns;
// MPI_ERR_UNSUPPORTED_OPERATION: there is no mapping (any more), and nothing happened.
enum class Engine : std::uint8_t { automatic, d2h, h2d, h2d_2d, d2d, peer, fused, kernel, bar };

const char* name(Engine engine);  // for people

// How the end of a copy is seen: by a flag that the device writes, the quicker way for a copy
// alone; or by an event, which holds up the copy right behind it less.
enum class Notice : std::uint8_t { event, flag };

// Whether more fused copies follow, as far as is known. Of a copy: `unknown`, it goes at once if
// nothing is in flight; `expected`, it waits at least for flush_batch().
enum class BatchHint : std::uint8_t { unknown, expected, none };

// Rows of a copy between host and device memory, or by a kernel between device memories: `count` runs of `width` bytes, in each of `planes`
// planes. Nothing between them is touched. More planes than one are for a kernel, in a copy of at most
// kMostBoxesOfKernel sets.
struct Rows {
    std::ptrdiff_t destination = 0, source = 0;  // of the first one, from the copy's ends
    Bytes width = 0, count = 1;
    Bytes destination_pitch = 0, source_pitch = 0;  // from one to the next
    Bytes planes = 1;
    Bytes destination_plane = 0, source_plane = 0;  // from one plane to the next
    Bytes bytes() const { return width * count * planes; }
    bool operator==(const Rows&) const = default;
};

// The pieces in which a copy out of a device may be told: each has a word of its own, which becomes
// Copy::number. `in_row` of them lie side by side, rows `row` bytes apart.
struct Pieces {
    Bytes size = 0;            // of each but the last; 0: the copy is none of those
    bool cut_through = false;  // of a copy into a device: its message comes so
    Bytes message = 0;         // of a message's first copy: all of the message
    std::uint32_t* words = nullptr;
    unsigned in_row = 1;
    Bytes row = sizeof(std::uint32_t);
    std::uint32_t* word(Bytes piece) const {
        return words + piece / in_row * (row / sizeof *words) + piece % in_row;
    }
};

// One of several copies that are made together.
struct CopyPart {
    void* destination = nullptr;
    const void* source = nullptr;
    Bytes bytes = 0;
    std::span<const Rows> rows{};  // with engine kernel, and never empty there
};

struct Copy {
    void* destination = nullptr;
    const void* source = nullptr;
    Bytes bytes = 0;
    int gpu = 0;  // whose stream and engine run it
    Engine engine = Engine::automatic;
    Notice notice = Notice::event;
    BatchHint batch = BatchHint::unknown;
    // To page-locked memory: the device may set this word, page-locked too, to `number` behind the
    // bytes, so that another process sees the end before this one does. It stays so until `done`.
    std::uint32_t* word = nullptr;
    std::uint32_t number = 0;
    // Empty: one run. With engine d2h, h2d or kernel; read before copy() returns.
    std::span<const Rows> rows{};
    // Between a device and a slot whose other end is copied on piece by piece (Device::cut_through).
    Pieces pieces{};
    // Engine::bar: the buffer id that classification found at the device's end.
    std::uint64_t allocation = 0;
    // Not empty: these copies instead, between device memory of this process and memory of peers that is
    // mapped here, all by this GPU, in one launch, with one end; `bytes` is their sum. With engine fused,
    // or kernel for parts that are rows, as many sets together as a copy of one part may have; read before
    // copy() returns. MPI_ERR_UNSUPPORTED_OPERATION: nothing has happened, each can be copied by itself.
    std::span<const CopyPart> parts{};
};

// Vectors of equal elements become one, by a kernel:
//     destination[i] = ((sources[0][i] op sources[1][i]) op sources[2][i]) ...
// Bits are those of layout/reduce.hpp. A destination may be one of the sources; other overlaps give no
// defined result. A launch takes kMostReduced sources, and as many destinations.
struct Reduce {
    layout::Operation operation = layout::Operation::sum;
    layout::Element element = layout::Element::none;
    std::span<const void* const> sources{};  // read before reduce() returns
    void* destination = nullptr;
    std::span<void* const> also{};  // more destinations; read before reduce() returns
    std::uint64_t count = 0;
    int gpu = 0;  // which reads and writes all of them
    Notice notice = Notice::flag;
};

// A name for device memory that another process of the node can open. Virtual memory and pools need
// a file descriptor beside it, which travels alone and only when it is asked for. It is on the wire as
// it is (docs/wire.md): append only, and bump kWireVersion.
struct IpcHandle {
    IpcKind kind = IpcKind::none;
    std::array<std::uint8_t, 64> bytes{};
    Uuid gpu{};
    std::array<std::uint8_t, 7> nothing{};
    std::uint64_t buffer_id = 0;  // of the exporting process: key of the importer's cache
    std::uintptr_t base = 0;      // the exporter's address of the first byte of the mapping
    Bytes size = 0;
    std::uint64_t origin = 0;  // of the exporting process: no two of a node have the same
    std::uint64_t pool = 0;    // kind pool: which of the exporter's
    bool operator==(const IpcHandle&) const = default;
};

// Device::cut_through(): a piece of a message is at most a quarter of the slots.
inline constexpr Bytes kMostCutThrough = 4 * kMiB;

// A GPU by its address on the PCI bus ("0000:18:00.0"); empty: none is known.
struct RankGpu {
    std::string pci_address;
    bool in_use = false;  // by the program; else it is expected to be
};

// How a peer's memory can be used here. `never`: refused by the driver, or larger than the cache.
enum class Access : std::uint8_t { open, closed, no_descriptor, never };

// Whether Device::open_memory() may ask the driver.
// `anchor`: it is to stay open, apart from the limits on what does (transfer/anchors.hpp).
enum class Opening : std::uint8_t { allowed, known_only, anchor };

class Device {
  public:
    explicit Device(const char* name) : name_(name) {}
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    const char* name() const { return name_; }  // "cuda", "fake", "none"

    // --- facts -----------------------------------------------------------------------------------
    // True once the program uses a driver: only then can a pointer be anything but host memory.
    // Costs about 30 ns, no driver call.
    virtual bool active() = 0;
    // The GPUs that this process sees; none before it uses a driver.
    virtual std::span<const GpuFacts> gpus() = 0;
    int gpu_count() { return static_cast<int>(gpus().size()); }
    // Of a GPU that is not there, what a GpuFacts says by default.
    const GpuFacts& gpu_facts(int gpu) {
        const std::span<const GpuFacts> all = gpus();
        const auto index = static_cast<std::size_t>(gpu);
        return index < all.size() ? all[index] : no_gpu_;
    }
    int gpu_of(const Uuid& uuid) {  // index, or -1
        const std::span<const GpuFacts> all = gpus();
        for (std::size_t gpu = 0; gpu < all.size(); ++gpu)
            if (all[gpu].uuid == uuid) return static_cast<int>(gpu);
        return -1;
    }
    // Whether that GPU copies from and to memory of the other one, as far as is known: of one that this
    // process does not see (CUDA_VISIBLE_DEVICES) the driver tells nothing, so yes until it has refused
    // to open memory there.
    virtual bool reaches(int gpu, const Uuid& other) = 0;
    // It has: a container or a batch system keeps that GPU from this process.
    virtual bool is_kept_away(int /*gpu*/, const Uuid& /*other*/) { return false; }
    // The GPU on which this thread works, or is expected to: of those that it may use, the ranks of a
    // node take one each in turn.
    virtual RankGpu gpu_of_rank(int /*local_rank*/) { return {}; }

    // --- pointers --------------------------------------------------------------------------------
    // What [address, address + bytes) is; host memory while the program uses no driver, at the
    // price of a few loads for what lies on a stack or in the heap; an error when it straddles
    // kinds of memory or leaves its allocation.
    virtual Result<Location> classify(const void* address, Bytes bytes) = 0;

    // Who else uses these GPUs, until the next call; null: nobody is known.
    void meet(const Neighbours* neighbours) { neighbours_ = neighbours; }

    // --- copies ----------------------------------------------------------------------------------
    // Starts a copy on Gantry's own streams; `done` completes from progress(). Copies with the same
    // engine and GPU end in order.
    virtual void copy(const Copy& copy, Completion& done) = 0;
    // A copy to or from a slot, of at most kMostCutThrough bytes, by a persistent kernel: out of the device
    // its pieces leave one behind the other, each told by its word as soon as it lies there. False:
    // nothing has happened, since none stays now, or cannot make this copy. copy() of a message's first
    // bytes, with pieces, is how the device learns that one would pay.
    // `done` null: only says whether one by that engine would be taken now, as far as is known.
    virtual bool cut_through(const Copy&, Completion*) { return false; }
    bool would_cut_through(Engine engine) { return cut_through(Copy{.engine = engine}, nullptr); }
    // Runs behind earlier copies inside that GPU. MPI_ERR_UNSUPPORTED_OPERATION: nothing has happened,
    // since there are no kernels, none for this operation and element (reduce_kernels.hpp), vectors that
    // the GPU does not reach, or addresses that are no multiples of an element's alignment.
    virtual void reduce(const Reduce& reduce, Completion& done);
    // Has ready what the driver wants for a copy like that one, on this thread, until the next call
    // with null: for who waits for something of a peer's and must not be late then.
    virtual void get_ready(const Copy*) {}
    // Of fused copies all that came at once is there. When no more follow, those that wait go; else
    // one that got no company goes alone, if nothing is in flight.
    virtual void flush_batch(BatchHint more) = 0;

    // Finishes pending completions; returns how many. Makes no driver call when nothing is pending.
    virtual int progress() = 0;
    virtual bool pending() const = 0;
    // What persistent kernels have done.
    struct Resident {
        std::uint64_t copies = 0, launches = 0;
    };
    const Resident& resident() const { return resident_; }
    // What the driver was asked for so far, and what came of it.
    DriverUse driver_use() const { return driver_use_ != nullptr ? *driver_use_ : DriverUse{}; }

    // Asks to copy these bytes of device memory with Engine::bar: true when a BAR mapping is around
    // them. Opening one costs a hundred microseconds, so it comes with the message by which copies
    // would have cost as much; until then, and wherever it is refused, the answer is no. Of no bytes:
    // whether there can be mappings at all; not before the program uses a driver.
    virtual bool has_bar_mapping(const Location& location, const void* address, Bytes bytes) = 0;

    // --- network cards ---------------------------------------------------------------------------
    // What a card has written into that GPU's memory (GPUDirect) is visible to whatever starts from
    // now on (writes may still be on their way to memory when the card reports their end).
    virtual Status settle_network_writes(int gpu) = 0;

    // --- host memory for staging -----------------------------------------------------------------
    // Page-locks memory (a mapped segment) so that copy engines reach it. A refusal leaves it
    // pageable: slower, still right.
    virtual Status pin(void* address, Bytes bytes) = 0;
    // Before that memory is unmapped.
    virtual void unpin(void*) {}

    // --- other processes of the node -------------------------------------------------------------
    virtual Result<IpcHandle> export_memory(const Location& location) = 0;
    // Maps a peer's memory (cached and reference-counted by the implementation); pair with close().
    // `known_only`: null where something has to be opened, or the driver to be asked.
    virtual Result<void*> open_memory(const IpcHandle& handle, int gpu,
                                      Opening opening = Opening::allowed) = 0;
    virtual void close_memory(const IpcHandle& handle, int gpu) = 0;
    // Whether opening memory of that kind costs what a first one does: nothing on that GPU, which is
    // another one, is open for this one of ours; or no pool was opened yet. Makes no driver call.
    virtual bool opens_first(IpcKind, int /*gpu*/, const Uuid& /*other*/) { return false; }
    // As long as this is the same, an address that open_memory() gave is good until its last user
    // closes it; else a context went, and perhaps the mapping with it.
    std::uint64_t losses() const { return losses_; }
    // What opening it would take: nothing (`open`), a call (`closed`), or first its descriptor.
    // Makes no driver call.
    virtual Access access(const IpcHandle& handle, int gpu) = 0;
    // Where this process takes file descriptors of peers' memory; 0: nowhere.
    virtual std::uint32_t descriptor_inbox() = 0;
    // Sends the descriptor of memory that this process exported to a peer's inbox; does not wait.
    virtual Status send_descriptor(const IpcHandle& handle, std::uint32_t inbox) = 0;
    // Closes every mapping of this exporter's buffer: its owner freed it.
    virtual void forget_memory(std::uint64_t buffer_id, const Uuid& gpu) = 0;
    // Some process of the node has ended: closes every mapping of what it exported.
    virtual void forget_ended_processes() {}
    // Whether a buffer id handed out by export_memory is still the allocation at that address.
    virtual bool still_valid(const IpcHandle& handle) = 0;

    // --- device memory of our own ----------------------------------------------------------------
    // At least `bytes` on the GPU on which `like` is, device memory of the program or mapped there; null:
    // there is none to be had (GANTRY_DEVICE_SCRATCH). To be given back, with no copy of it under way. The first
    // of its size is allocated, which the driver may do behind other work of the device.
    virtual void* borrow(const void* like, Bytes bytes) = 0;
    virtual void give_back(void* borrowed) = 0;

    // --- end -------------------------------------------------------------------------------------
    // Releases streams, events, mappings and pins; quiet when the program destroyed its context
    // first.
    virtual void shut_down() = 0;

  protected:
    const Neighbours* neighbours_ = nullptr;
    std::uint64_t losses_ = 0;
    Resident resident_;
    const DriverUse* driver_use_ = nullptr;  // null: there is no driver

  private:
    const char* name_;
    const GpuFacts no_gpu_;
};

}  // namespace gantry::device
