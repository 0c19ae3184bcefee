// SPDX-License-Identifier: BSD-3-Clause
//
// Window: memory of each rank of a group that the others read and change without its help. What it
// knows of each rank (Target) decides the way of an operation:
//
//   direct      the target's memory is reached here: my own, or a peer's that is mapped, or that the
//               kernel copies. Loads, stores and copies; the target need not call MPI
//   straight    the network reaches it: large puts go there, large gets come from there, as puts
//   announced   large, and an end in device memory that nothing reaches: as large messages go
//   by message  else: an active message which the target executes when it makes progress
//
//   window.cpp           creation and end        device_windows.cpp  device memory of peers
//   attached.cpp         dynamic memory          origin.cpp     operations begin here
//   at_once.hpp          a few loads and stores    errands.cpp  short ones that the target makes
//   gpu_change.cpp       accumulates by a GPU    target_memory.cpp  and by the processor
//   outbound.cpp         by message, the origin  inbound.cpp    the target
//   straight.cpp         puts of the network     batches.cpp    small puts that travel together
//   announced.cpp        by slots, in a pipeline
//   active_target.cpp    fence, post, start ...  locks.cpp      lock, unlock (lock_queue.hpp: in turn)
//   flush.cpp            what is outstanding     epochs.cpp     which calls are legal now
//
// What changes items, and what goes by message, is carried out in its order by one task for each
// target, unless it ends inside its call; other copies and puts have a task each, and no order.
// Nothing here blocks: what waits is a Task.
#pragma once

#include "coll/team.hpp"
#include "p2p/group.hpp"
#include "p2p/messenger.hpp"
#include "plan/window_ways.hpp"
#include "rma/errand.hpp"
#include "rma/layouts.hpp"
#include "rma/lock_queue.hpp"
#include "rma/node_memory.hpp"
#include "rma/operation.hpp"
#include "rma/target_memory.hpp"
#include "transfer/mapping.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace gantry::rma {

class GpuChange;
class Windows;

enum class Flavor : std::uint8_t { create, allocate, shared, dynamic };
enum class Lock : std::uint8_t { none, shared, exclusive, unchecked };

// What a program wants of a new window.
struct Wanted {
    Flavor flavor = Flavor::create;
    void* base = nullptr;  // Flavor::create
    Bytes bytes = 0;
    std::int64_t unit = 1;
    bool adjoining = true;  // shared windows whose parts follow each other
    Bytes alignment = 64;
};

// What this rank knows of one rank's part, and what it has under way there.
struct Target {
    int peer = -1;  // world rank
    std::uint64_t base = 0;
    Bytes bytes = 0;
    std::int64_t unit = 1;
    bool direct = false;
    std::byte* memory = nullptr;  // where `base` is here, if it is mapped
    // The same if all of it is host memory, as long as the rank takes part: loads and stores go there.
    std::byte* loads_and_stores = nullptr;
    // Memory of another node that puts of the network reach; its key is null where they do not.
    std::unique_ptr<transport::RemoteKey> key;
    std::uint64_t keyed_base = 0;  // address of the registered region, by the target's count
    bool keyed_on_device = false;  // what is put there shows when the target has settled it
    bool on_device = false;        // of another node
    int process = 0;               // direct by copies of the kernel: whose memory; else 0
    ErrandBox* errands = nullptr;  // of such a rank, and mine; null: there are none
    int errands_in_vain = 0, errands_to_skip = 0;
    device::Location location;
    transfer::Mapping mapped;         // of device memory that is mapped here
    ControlBlock* control = nullptr;  // null: on another node
    std::size_t local = 0;            // its number among the ranks of this node
    // What it has attached to a dynamic window, on this node; and what of that is mapped here.
    std::optional<Attachments> attachments;
    std::uint32_t last_attachment = 0;
    struct MappedRegion {
        device::IpcHandle handle;
        transfer::Mapping mapping;  // not open: refused
    };
    std::vector<MappedRegion> mapped_regions;

    // --- as the origin
    Lock lock = Lock::none;
    bool asks = false;                               // for the lock
    bool granted = false;                            // by message
    bool in_started = false;                         // of the group of MPI_Win_start
    IntrusiveList<Operation> queue;                  // not begun yet, in order
    bool carrying = false;                           // a task takes them one by one
    int busy = 0;                                    // operations that have not ended here
    std::uint64_t sent = 0, sent_bytes = 0;          // messages that the target executes
    std::uint64_t executed = 0, executed_bytes = 0;  // of these, as it said
    std::uint64_t asked = 0;                         // how many were sent when it was asked last
    int announced = 0;                               // puts that it has not said to have ended
    std::vector<std::byte> batch;                    // small puts that have not left
    Bytes batch_bytes = 0;                           // of data in it
    Status failure;                                  // the first one since the last synchronisation
    ToldLayouts told;

    // --- as the target of that rank
    struct Arrived {
        wire::Kind kind;
        std::vector<std::byte> header, payload;
    };
    std::unique_ptr<std::deque<Arrived>> arrived;  // waiting for their turn; made at first need
    bool has_arrived() const { return arrived != nullptr && !arrived->empty(); }
    std::uint64_t served = 0, served_bytes = 0;        // what it sent and I executed
    std::uint64_t reported = 0, reported_bytes = 0;    // of these, what it was told of
    std::uint64_t told_each = 1, told_each_bytes = 1;  // it is told after so many
    int first_error = MPI_SUCCESS;                     // of what was served since the last report
    HeardLayouts heard;
    // Told by message: of its exposures, and of its accesses. Of all: used by mine, and waited for.
    std::uint32_t posts = 0, completes = 0;
    std::uint32_t starts = 0, awaited = 0;
    Lock holds = Lock::none;  // which I took for it, of mine
};

// What is done to items of a target that follow each other; all of it in host memory here.
struct ItemChange {
    Bytes item_bytes = 0;
    std::uint64_t count = 1;
    layout::Reduction reduce = nullptr;  // null: they are only read
    const std::byte* operand = nullptr;
    const std::byte* compare = nullptr;  // compare_and_swap, in place of `reduce`
    std::byte* result = nullptr;         // what was there; null: nobody wants it
    Bytes bytes() const { return item_bytes * count; }
};

// How the program synchronises now.
struct Epochs {
    enum class Fence : std::uint8_t { none, open, used };
    Fence fence = Fence::none;
    bool started = false;
    std::vector<int> access;  // ranks of MPI_Win_start
    bool posted = false;
    std::vector<int> exposure;  // ranks of MPI_Win_post
    int locks = 0;
    bool lock_all = false;
};

class Window {
  public:
    Window(Windows& windows, p2p::Group group);
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    ~Window();

    Windows& windows;
    const p2p::Group group;
    Flavor flavor = Flavor::create;
    std::uint32_t id() const { return group.context; }
    // For people: among the windows that this process has made, from 1 on.
    int number() const { return number_; }
    int rank() const { return group.rank; }
    int size() const { return group.size(); }
    Target& target(int of_rank) { return *targets_[static_cast<std::size_t>(of_rank)]; }
    Target& mine() { return target(rank()); }
    bool all_direct() const { return all_direct_; }

    // --- operations (origin.cpp)
    // Checks and begins it. True: it has ended. Else, and if `done` is not null, `done` tells when the
    // origin's buffers are the program's again.
    Result<bool> begin(const Access& access, Completion* done);
    // at_once.hpp: short ways; null or false: take begin(), which also tells what is wrong.
    // So many bytes of a target that loads and stores reach, for a put or get inside the call.
    std::byte* reached(int of_rank, std::int64_t displacement, Bytes bytes);
    bool change_at_once(int of_rank, std::int64_t displacement, const ItemChange& change);
    // Bytes of items that are changed under one hold of the lock: some tens of microseconds of a
    // processor, which others may have to wait for. No result and no other process depends on it, so
    // it is no parameter.
    static constexpr Bytes kMostUnderLock = 256 * kKiB;
    // Whether a flush of that rank has nothing to wait for, and nothing to tell.
    bool is_quiet(int of_rank) const;
    // One for which the program has a request.
    Task<Status> begin_and_wait(Executor& executor, Access access);

    // --- synchronisation; epochs are checked by `may_...` first
    Task<Status> fence(Executor& executor, int assertion);
    Task<Status> post(Executor& executor, std::vector<int> origins, int assertion);
    Task<Status> start(Executor& executor, std::vector<int> targets, int assertion);
    Task<Status> complete(Executor& executor);
    Task<Status> wait(Executor& executor);
    Result<bool> test();
    Task<Status> lock(Executor& executor, int of_rank, Lock kind);
    Task<Status> unlock(Executor& executor, int of_rank);
    Task<Status> lock_all(Executor& executor, Lock kind);
    Task<Status> unlock_all(Executor& executor);
    Task<Status> flush(Executor& executor, int of_rank);
    Task<Status> flush_local(Executor& executor, int of_rank);
    Task<Status> flush_all(Executor& executor);
    Task<Status> flush_local_all(Executor& executor);
    Epochs epochs;

    // --- dynamic memory
    Status attach(void* base, Bytes bytes);
    Status detach(const void* base);

    // Waits until nobody needs this window any more.
    Task<Status> close(Executor& executor);

    // --- what arrives (inbound.cpp)
    void arrive(int from, wire::Kind kind, transport::ConstSpan header,
                transport::ConstSpan payload);
    void on_peer_lost(int peer, const Status& why);
    void ask_for_lock(int from, wire::LockKind kind);
    // Carries out what another rank of the node has left here, if there is something.
    bool serve_errand();
    // Gives locks to those of other nodes who wait for them; how many.
    int grant_locks();
    bool idle() const;

  private:
    friend class Windows;
    coll::Team team();
    // window.cpp
    Task<Status> open(Executor& executor, Wanted wanted);
    Task<Status> set_up_memory(Executor& executor, const Wanted& wanted, Bytes own_bytes,
                               const std::vector<Bytes>& sizes);

    // device_windows.cpp
    struct DeviceName {
        device::IpcHandle handle;
        std::uint32_t inbox;  // where this rank takes file descriptors; 0: nowhere
    };
    bool on_my_node(int of_rank);
    DeviceName name_device(const device::Location& location);
    void send_descriptors(const std::vector<DeviceName>& names);
    int first_gpu_for(const device::IpcHandle& handle, const std::vector<DeviceName>& names);
    void map_devices(const std::vector<DeviceName>& names);
    void unmap_devices();

    // epochs.cpp
    Status check_access(Target& target);
    Status check_passive(int of_rank, const char* function);
    Status check_may_lock(const char* function);

    // attached.cpp
    struct Attached {
        std::uintptr_t base;
        Bytes bytes;
        device::Location location;
    };
    // Null: not all of these bytes are attached.
    const Attached* attached_around(std::uint64_t address, Bytes bytes) const;
    const Attached* attached_at(std::uint64_t address, Bytes bytes) const;
    Status check_attached(const Access& access, std::uint64_t address) const;
    Attachments::Room room_for_attachments() const;
    void publish(const Attached& attached);
    bool reaches_attached(const Access& access, std::uint64_t address);
    const Target::MappedRegion& mapped_region(Target& of, const device::IpcHandle& handle);
    // Where bytes that are attached at another rank of this node are here.
    void locate_attached(Target& of, std::uint64_t address, Side& side);

    // origin.cpp
    Result<std::uint64_t> address_of(const Access& access) const;
    Side there(const Access& access, std::uint64_t address);
    // Whose addresses that side of a target has; 0: addresses here.
    int process_of(const Access& access, const Side& there);
    Result<bool> try_direct(const Access& access, std::uint64_t address);
    Result<bool> copy_by_kernel(const Access& access, const Side& target_side, Bytes first);
    // errands.cpp
    Result<bool> await_errand(const Target& of, ErrandBox& box, Bytes blocks);
    Result<Bytes> run_errands(const Access& access, const Side& there);

    Status queue(const Access& access, std::uint64_t address, plan::WindowWay way,
                 Completion* done);
    Task<Status> carry_out_all(Executor& executor, int of_rank);
    plan::WindowCopy copier_of(const Access& access, const Side& from, const Side& to);
    Task<Status> copy_directly(Executor& executor, Operation* operation);
    Task<Status> change_directly(Executor& executor, Operation& operation);
    Task<Status> change_by_gpu(Executor& executor, ControlBlock& control, GpuChange* change);
    void ended(Operation& operation, Status status);

    // outbound.cpp
    Result<bool> try_message(const Access& access, std::uint64_t address);
    Task<Status> carry_out_by_message(Executor& executor, Operation& operation);
    Result<wire::Span> span_for(const Access& access, std::uint64_t address);
    Status send_piece(const Access& access, std::uint64_t operation, const wire::Span& span,
                      transport::ConstSpan payload);
    bool has_room(const Target& target) const;
    Bytes largest_piece(const Target& of) const;
    Bytes piece_bytes(const Access& access);
    void on_answer(const wire::Answer& answer, transport::ConstSpan payload);
    Task<Status> store_answer(Executor& executor, Operation* operation, Bytes first,
                              std::vector<std::byte> bytes);
    void on_executed(int from, const wire::Executed& executed);
    void end_if_over(Operation& operation);

    // straight.cpp
    void register_own(transport::RemoteKey* key, std::uint64_t* base);
    bool network_reaches(const Side& side, const transfer::Endpoint& peer) const;
    Result<transport::Region> register_run(const transfer::Endpoint& peer,
                                           const device::Location& location,
                                           const std::byte* address, Bytes bytes) const;
    plan::WindowWay way_of(const Access& access, std::uint64_t address);
    plan::WindowQuestion question_of(const Access& access);  // of a put or get
    plan::WindowWay way_by(const Access& access, const plan::WindowFacts& facts);
    void price(plan::WindowQuestion& question, const Target& of,
               const device::Location& origin) const;
    Bytes announced_from(const Target& of) const;
    bool is_on_device(const Target& of) const;
    void explain_ways() const;
    plan::WindowFacts ways_to(int of_rank) const;
    Task<Status> put_run(Executor& executor, int of_rank, device::Location location,
                         const std::byte* source, Bytes bytes, const transport::RemoteKey* key,
                         Bytes offset);
    Task<Status> put_every_other(Executor& executor, Operation* operation, Bytes first);
    Task<Status> carry_straight(Executor& executor, Operation* operation);
    Task<Status> put_straight(Executor& executor, Operation& operation);
    Task<Status> put_staged(Executor& executor, Operation& operation);
    Bytes keyed_offset(const Operation& operation);
    Task<Status> get_straight(Executor& executor, Operation* operation);
    Task<Status> get_run(Executor& executor, Operation& operation);
    Task<Status> ask_for_puts(Executor& executor, Operation* operation);
    bool serve_get_into(int from, transport::ConstSpan header, transport::ConstSpan payload);
    Task<Status> put_where_asked(Executor& executor, int from, wire::GetInto get, Side source,
                                 transport::RemoteKey key);

    // announced.cpp
    Task<Status> carry_announced(Executor& executor, Operation* operation);
    Task<Status> announce_get(Executor& executor, Operation& operation);
    Task<Status> announce_put(Executor& executor, Operation& operation);
    Task<Status> until_room(Executor& executor, Target& of);
    void take_put(int from, transport::ConstSpan header, transport::ConstSpan payload);
    void take_answer(int from, transport::ConstSpan header, transport::ConstSpan payload);
    Task<Status> receive_put(Executor& executor, int from, p2p::Matched message, Region region);
    Task<Status> receive_answer(Executor& executor, Operation* operation, p2p::Matched message);
    void serve_announced_get(int from, transport::ConstSpan header);
    Task<Status> send_answer(Executor& executor, int from, wire::AnnouncedGet get, Region region);
    Task<Status> receive_announced(Executor& executor, p2p::Matched message, p2p::Buffer into);
    void on_put_ended(int from, const wire::PutEnded& ended);

    // batches.cpp
    bool joins_batch(const Access& access, const wire::Span& span) const;
    Status add_to_batch(int of_rank, const wire::Span& span, const std::byte* bytes);
    Status ship_batch(int of_rank);
    bool serve_puts(int from, transport::ConstSpan payload);
    Task<Status> serve_puts_slowly(Executor& executor, int from, transport::ConstSpan payload);

    // inbound.cpp
    bool serve_now(int from, wire::Kind kind, transport::ConstSpan header,
                   transport::ConstSpan payload);
    Task<Status> serve_all(Executor& executor, int from);
    Task<Status> serve(Executor& executor, int from, const Target::Arrived& message);
    Task<Status> change_here(Executor& executor, Region region, Change change);
    Result<Region> region_of(int from, const wire::Span& span);
    void answer(int from, std::uint64_t operation, const wire::Span& span, const Status& status,
                transport::ConstSpan bytes, Bytes in_place = 0);
    void served(int from, const Status& status, Bytes bytes);
    void report(int from);

    // flush.cpp
    Status take_failure(Target& target);
    Task<Status> until_quiet(Executor& executor, int of_rank);
    Status ask_for_report(int of_rank);
    Task<Status> until_executed(Executor& executor, int of_rank);
    Task<Status> complete_at(Executor& executor, int of_rank);
    Task<Status> complete_everywhere(Executor& executor);
    Task<Status> quiet_everywhere(Executor& executor);

    // active_target.cpp
    Task<Status> await_announced(Executor& executor);
    Task<Status> meet(Executor& executor);
    Status tell(int of_rank, wire::Kind kind);
    std::uint32_t posts_of(const Target& of) const;
    std::uint32_t completes_of(const Target& of) const;
    template <class Condition>
    bool look_a_while(const Condition& condition);
    bool all_completed() const;
    bool exposed_to_lost();
    Status end_exposure();

    // locks.cpp
    Task<Status> acquire(Executor& executor, int of_rank, Lock kind);
    LockQueue lock_queue(const Target& of) const {
        return {*of.control, node_memory_.waiting_places(of.local)};
    }
    bool is_my_turn(const Target& of, LockWait& wait, std::size_t place);
    bool try_lock_word(Target& of, Lock kind);
    int lost_holder(const Target& of);
    Task<Status> wait_for_word(Executor& executor, Target& of, Lock kind);
    bool try_grant(std::size_t request);
    void show_lock_requests();
    Status give_back(int of_rank);
    void take_lock_from(int from);
    bool try_accumulate(ControlBlock& control) const;
    Task<Status> lock_accumulates(Executor& executor, ControlBlock& control);

    template <class Header>
    Status send(int to, wire::Kind kind, Header header, transport::ConstSpan payload = {});
    // The small puts that wait for company were begun before, so they leave first.
    template <class Header>
    Status send_behind_batch(int to, wire::Kind kind, Header header,
                             transport::ConstSpan payload = {}) {
        GANTRY_TRY(ship_batch(to));
        return send(to, kind, header, payload);
    }
    Status signal(int to, wire::Kind kind) { return send_behind_batch(to, kind, wire::Signal{}); }

    int number_ = 0;
    std::vector<std::unique_ptr<Target>> targets_;
    NodeMemory node_memory_;
    transport::Region registered_;  // my part, with the network
    transport::Transport* registered_with_ = nullptr;
    std::vector<int> local_ranks_;  // of this node, by number
    std::size_t self_ = 0;          // my number among them
    bool all_direct_ = true;
    std::uint64_t meetings_ = 0;
    std::uint32_t sequence_ = 0;  // of collectives on the window's group
    Scope operations_;
    struct LockRequest {
        int from;
        LockWait wait;
    };
    std::deque<LockRequest> lock_requests_;  // of other nodes, oldest first
    std::vector<Attached> attached_;
    std::uint64_t served_in_all_ = 0;  // messages of all origins
    Status lost_;                      // why some rank of the group takes no part any more
};

}  // namespace gantry::rma
