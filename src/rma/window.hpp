// SPDX-License-Identifier: BSD-3-Clause
//
// Window: memory of each rank of a group that the others read and change without its help. What it
// knows of each rank (Target) decides the way of an operation:
//
//   direct      the target's memory is reached here: my own, or a peer's that is mapped, or that the
//               kernel copies. Loads, stores and copies; the target need not call MPI
//   rdma        the network reaches it: large puts go there, large gets come from there, as puts
//   rendezvous  large, and an end in device memory that nothing reaches: as large messages go
//   by message  else: an active message which the target executes when it makes progress
//
// A window is put together of parts, each with a header of its own:
//
//   Origin            operations begin here         Ways              which way they go
//   Outbound          by message, at the origin     Inbound           and at the target
//   Rdma              by the network                Rendezvous        as large messages
//   Synchronisation   epochs, and what is outstanding
//   Locks             lock, unlock, in turn         DynamicMemory     attach, detach
//
// Here are its life (window.cpp), device memory of peers (device_windows.cpp), and the few loads and
// stores that make an operation inside its call (at_once.hpp).
//
// What changes items, and what goes by message, is carried out in its order by one task for each
// target, unless it ends inside its call; other copies and puts have a task each, and no order.
// Nothing here blocks: what waits is a Task.
//
// Where a rank of the group is lost, or the window revoked, collectives of the window end at once, each with a
// failure: ranks hear of it at different times, and would wait for each other in different ones.
#pragma once

#include "base/scope.hpp"
#include "coll/team.hpp"
#include "p2p/group.hpp"
#include "rma/dynamic_memory.hpp"
#include "rma/inbound.hpp"
#include "rma/locks.hpp"
#include "rma/origin.hpp"
#include "rma/outbound.hpp"
#include "rma/rdma.hpp"
#include "rma/rendezvous.hpp"
#include "rma/synchronisation.hpp"
#include "rma/ways.hpp"

#include <memory>
#include <vector>

namespace gantry::rma {

enum class Flavor : std::uint8_t { create, allocate, shared, dynamic };

// What a program wants of a new window.
struct Wanted {
    Flavor flavor = Flavor::create;
    void* base = nullptr;  // Flavor::create
    Bytes bytes = 0;
    std::int64_t unit = 1;
    bool adjoining = true;  // shared windows whose parts follow each other
    Bytes alignment = 64;
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
    Target& target(int of_rank) const { return *targets[static_cast<std::size_t>(of_rank)]; }
    Target& mine() const { return target(rank()); }
    bool all_direct() const { return all_direct_; }

    // --- what a program asks for; the parts say how
    Result<bool> begin(const Access& access, Completion* done) {
        return origin.begin(access, done);
    }
    Task<Status> begin_and_wait(Executor& executor, Access access) {
        return origin.begin_and_wait(executor, access);
    }
    Task<Status> fence(Executor& executor, int assertion) {
        return synchronisation.fence(executor, assertion);
    }
    Task<Status> post(Executor& executor, std::vector<int> origins, int assertion) {
        return synchronisation.post(executor, std::move(origins), assertion);
    }
    Task<Status> start(Executor& executor, std::vector<int> accessed, int assertion) {
        return synchronisation.start(executor, std::move(accessed), assertion);
    }
    Task<Status> complete(Executor& executor) { return synchronisation.complete(executor); }
    Task<Status> wait(Executor& executor) { return synchronisation.wait(executor); }
    Result<bool> test() { return synchronisation.test(); }
    Task<Status> lock(Executor& executor, int of_rank, Lock kind) {
        return locks.lock(executor, of_rank, kind);
    }
    Task<Status> unlock(Executor& executor, int of_rank) { return locks.unlock(executor, of_rank); }
    Task<Status> lock_all(Executor& executor, Lock kind) { return locks.lock_all(executor, kind); }
    Task<Status> unlock_all(Executor& executor) { return locks.unlock_all(executor); }
    Task<Status> flush(Executor& executor, int of_rank) {
        return synchronisation.flush(executor, of_rank);
    }
    Task<Status> flush_local(Executor& executor, int of_rank) {
        return synchronisation.flush_local(executor, of_rank);
    }
    Task<Status> flush_all(Executor& executor) { return synchronisation.flush_all(executor); }
    Task<Status> flush_local_all(Executor& executor) {
        return synchronisation.flush_local_all(executor);
    }
    Status attach(void* base, Bytes bytes) { return dynamic.attach(base, bytes); }
    Status detach(const void* base) { return dynamic.detach(base); }
    // Waits until nobody needs this window any more. After a failure it does not: whoever needs it all
    // the same hears of that.
    Task<Status> close(Executor& executor);
    // All that waits, and all that follows, fails with that.
    void revoke(const Status& why);

    // --- at_once.hpp: short ways; null or false: take begin(), which also tells what is wrong.
    // So many bytes of a target that loads and stores reach, for a put or get inside the call.
    std::byte* reached(int of_rank, std::int64_t displacement, Bytes bytes);
    bool change_at_once(int of_rank, std::int64_t displacement, const ItemChange& change);
    // Whether a flush of that rank has nothing to wait for, and nothing to tell.
    bool is_quiet(int of_rank) const;

    // --- what parts share
    std::vector<std::unique_ptr<Target>> targets;
    NodeMemory node_memory;
    std::vector<int> local_ranks;  // of this node, by number
    std::size_t self = 0;          // my number among them
    Status lost;                   // why some rank of the group takes no part any more
    Status revoked;                // why no rank does
    bool refused_by_all = false;   // no rank makes the window, and every rank knows so
    Epochs epochs;
    Scope tasks;  // of operations that have not ended
    coll::Team team();
    // How a collective of the window has ended: where a rank takes no part any more, for that reason.
    Status outcome(Status ended) const { return ended.ok() || lost.ok() ? ended : lost; }
    // The name of device memory, told to the ranks of this node.
    struct DeviceName {
        device::IpcHandle handle;
        std::uint32_t inbox;  // where this rank takes file descriptors; 0: nowhere
    };
    DeviceName name_device(const device::Location& location);
    // The small puts that wait for company were begun before, so they leave first.
    template <class Header>
    Status send_behind_batch(int to, wire::Kind kind, Header header,
                             transport::ConstSpan payload = {}) {
        GANTRY_TRY(outbound.ship_batch(to));
        return send(to, kind, header, payload);
    }
    template <class Header>
    Status send(int to, wire::Kind kind, Header header, transport::ConstSpan payload = {});
    Status signal(int to, wire::Kind kind) { return send_behind_batch(to, kind, wire::Signal{}); }

    // --- its parts
    Origin origin{*this};
    Ways ways{*this};
    Outbound outbound{*this};
    Inbound inbound{*this};
    Rdma rdma{*this};
    Rendezvous rendezvous{*this};
    Synchronisation synchronisation{*this};
    Locks locks{*this};
    DynamicMemory dynamic{*this};

  private:
    friend class Windows;
    friend class Inbound;
    // window.cpp
    Task<Status> open(Executor& executor, Wanted wanted);
    Task<Status> set_up_memory(Executor& executor, const Wanted& wanted, Bytes own_bytes,
                               const std::vector<Bytes>& sizes);
    void on_peer_lost(int peer, const Status& why);
    void do_without(int of_rank, const Status& why);
    void leave_early();
    bool idle() const;

    // device_windows.cpp
    bool on_my_node(int of_rank);
    void send_descriptors(const std::vector<DeviceName>& names);
    int first_gpu_for(const device::IpcHandle& handle, const std::vector<DeviceName>& names);
    void map_devices(const std::vector<DeviceName>& names);
    void unmap_devices();

    int number_ = 0;
    bool all_direct_ = true;
    std::uint32_t sequence_ = 0;  // of collectives on the window's group
};

inline WindowPart::WindowPart(Window& its_window)
    : window(its_window), windows(its_window.windows) {}
inline int WindowPart::rank() const {
    return window.rank();
}
inline int WindowPart::size() const {
    return window.size();
}
inline Target& WindowPart::target(int of_rank) const {
    return window.target(of_rank);
}
inline Target& WindowPart::mine() const {
    return window.mine();
}

}  // namespace gantry::rma
