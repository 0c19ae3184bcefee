// SPDX-License-Identifier: BSD-3-Clause
//
// File: a file that the ranks of a group have open together. Its calls are Tasks that progress()
// drives; what waits for the system is the backend's. Bytes here are those of the file: data
// representations other than the machine's are the mpi layer's (mpi/io).
//
//   open.cpp        open, close, sizes, sync       access.cpp      one rank's reads and writes
//   collective.cpp  those of all ranks together    shared_pointer  the pointer that ranks share
//   two_phase       ... in two phases              by_messages, on_node  how ranks exchange bytes there
//   view            which bytes, in which order    agree.hpp       one outcome for all ranks
//   backend         who waits for the system: the kernel's ring, or threads
//   system          what the system is asked       steps           a transfer as system calls
//   storage.cpp     direct storage of device memory
//   survive.cpp     what becomes of a file when a rank dies
//   explain.cpp     what `gantry explain` is told
#pragma once

#include "coll/planner.hpp"
#include "coll/team.hpp"
#include "io/backend.hpp"
#include "io/hints.hpp"
#include "io/node_windows.hpp"
#include "io/shared_pointer.hpp"
#include "io/spare_windows.hpp"
#include "io/view.hpp"
#include "p2p/group.hpp"
#include "transfer/buffer.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gantry::io {

class Files;

// One read or write: where in the view, and which memory.
struct Access {
    Direction direction = Direction::read;
    std::shared_ptr<const View> view;  // as it was when the call was made
    Bytes first = 0;                   // data byte of the view
    transfer::Buffer buffer;
    // Of a collective call that goes alone on each rank: why it does; null: it is a call of one rank.
    const char* alone = nullptr;
    // Of a collective call: what the caller has found wrong with this rank's arguments; then it fails on all of them.
    Status refused = {};
    Bytes bytes() const { return buffer.bytes(); }
};

class File {
  public:
    File(Files& files, p2p::Group group, std::string path, int mode, const Hints& hints);
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    Files& files;
    const p2p::Group group;
    const std::string path;
    const int mode;  // MPI_MODE_
    Hints hints;
    std::shared_ptr<const View> view;
    std::int64_t position = 0;  // the individual pointer, in etypes of the view
    SharedPointer shared;
    bool atomic = false;
    SpareWindows spare_windows;

    int rank() const { return group.rank; }
    int size() const { return group.size(); }
    // For one collective call of this file, which every rank makes in the same order.
    coll::Team team();

    // --- by all ranks together; each ends with the same outcome everywhere, if it is made as
    // `co_await file.together(executor, file.sync(...))`: where a rank has died, whoever hears of it makes no more
    // of the call's steps, for which others wait; so the file is given up, by all that live.
    Task<Status> together(Executor& executor, Task<Status> call);
    // With what calls end where the program has revoked the file.
    Status revoked_status() const;
    // `refused`: what the caller has found wrong with this rank's arguments; then the call fails on all of them.
    // `window`: the same ranks, with a context of its own.
    Task<Status> open(Executor& executor, coll::Team team, p2p::Group window, Status refused = {});
    Task<Status> close(Executor& executor, coll::Team team);
    Task<Status> set_size(Executor& executor, coll::Team team, Status refused, std::int64_t bytes);
    Task<Status> preallocate(Executor& executor, coll::Team team, Status refused,
                             std::int64_t bytes);
    Task<Status> sync(Executor& executor, coll::Team team);
    // Both pointers go to the beginning of the new view.
    Task<Status> set_view(Executor& executor, coll::Team team, std::shared_ptr<const View> to);
    Task<Status> seek_shared(Executor& executor, coll::Team team, std::int64_t to);
    // Where this rank's etypes begin when ranks use the shared pointer in their order.
    Task<Status> take_turns(Executor& executor, coll::Team team, Status refused,
                            std::int64_t etypes, std::int64_t* first);
    Task<Status> transfer_all(Executor& executor, coll::Team team, Access access, Bytes* moved);

    // --- by one rank
    Task<Status> find_size(Executor& executor, std::int64_t* bytes);
    // `moved`: bytes of data, fewer where a read meets the end of the file.
    Task<Status> transfer(Executor& executor, Access access, Bytes* moved);

    int handle() const { return handle_; }
    void* storage_handle() const { return storage_handle_; }

  private:
    Task<Status> open_here(Executor& executor, int flags);
    // Of direct storage: opens the file once more, at the first access of device memory; why it cannot be used.
    Task<Status> find_storage(Executor& executor);
    void close_storage(System& system);
    Task<Status> transfer_range(Executor& executor, Access access, Bytes* moved);
    void explain(const Access& access, bool on_device, const plan::IoPlan& plan,
                 const plan::IoCarrierPlan& carrier) const;
    void explain(const Access& access, const plan::CollectiveIoPlan& plan, bool on_node,
                 const plan::IoCarrierPlan& carrier) const;
    std::string who(const plan::IoCarrierPlan& carrier) const;
    Task<Status> lock(Executor& executor, LockKind kind, std::int64_t low, std::int64_t high);

    coll::Planner planner_;
    std::uint32_t sequence_ = 0;
    std::uint32_t window_context_ = 0;
    int handle_ = -1;
    bool in_memory_ = false;
    // For direct storage.
    bool storage_asked_ = false;
    int storage_file_ = -1;  // with O_DIRECT
    void* storage_handle_ = nullptr;
};

// What files of an engine share.
class Files {
  public:
    // All outlive this.
    Files(transfer::Context& context, p2p::Messenger& messenger, rma::Windows& windows,
          coll::Common& common);
    ~Files();

    transfer::Context& context;
    p2p::Messenger& messenger;
    rma::Windows& windows;
    coll::Common& common;
    NodeWindows node_windows;

    // `revoke`: ends what waits on a context, on all ranks that live, unless the program has revoked it itself: then
    // false (faults/revocations.hpp).
    void give_up_by(std::function<bool(std::uint32_t context)> revoke) {
        revoke_ = std::move(revoke);
    }
    bool give_up(std::uint32_t its_context) const { return !revoke_ || revoke_(its_context); }
    // Of the file with that context; none: there is no such file.
    std::vector<int> members_of(std::uint32_t its_context) const;
    std::vector<const File*> known;  // as long as they are there

    // Looked for at its first use; null: there is none.
    device::DirectStorage* direct_storage();
    // Made at its first use, unless a test gave one: a ring of the kernel where it lets us, else threads.
    Backend& backend();
    void use(std::unique_ptr<Backend> backend) { backend_ = std::move(backend); }
    int progress() { return backend_ == nullptr ? 0 : look(); }
    // By the backend, and on the timeline.
    Task<Status> run(Executor& executor, Transfer& transfer, std::string_view path);
    // By the caller: for what is only a copy of memory.
    Status run_now(Transfer& transfer, std::string_view path);
    void was_with_file(const Transfer& transfer, Nanoseconds begin) const;
    bool pending() const { return backend_ != nullptr && !backend_->idle(); }

  private:
    int look();
    System system_;
    std::unique_ptr<Backend> backend_;
    bool storage_asked_ = false;
    std::unique_ptr<device::DirectStorage> storage_;
    std::function<bool(std::uint32_t context)> revoke_;
};

}  // namespace gantry::io
