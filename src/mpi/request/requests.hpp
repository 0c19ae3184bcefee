// SPDX-License-Identifier: BSD-3-Clause
//
// Requests as a program holds them: what the MPI layer adds to a p2p::Request. An ordinary request
// names its communicator (`owner`), for the error handler; one that needs more - derived datatypes
// to keep alive, a persistent or a generalized operation - has an Operation. Nonblocking
// collectives are tasks spawned here; each completes its request.
#pragma once

#include "base/status.hpp"
#include "base/task.hpp"
#include "mpi/engine/handles.hpp"
#include "p2p/request.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace gantry::mpi {

class Engine;
class PartitionedSide;

struct Operation {
    Comm* comm = nullptr;
    File* file = nullptr;              // of a read or write
    std::vector<Datatype*> datatypes;  // owned references
    // Persistent: `start` makes the operation in flight; between two starts there is none.
    std::function<Result<p2p::Request*>()> start;
    p2p::Request* in_flight = nullptr;
    bool buffered = false;  // a buffered send: MPI_Start waits for it (buffered.hpp)
    std::shared_ptr<PartitionedSide> partitioned;  // of a persistent one made of partitions
    // Generalized (MPI 5.0 section 13.2).
    MPI_Grequest_query_function* query = nullptr;
    MPI_Grequest_free_function* free = nullptr;
    MPI_Grequest_cancel_function* cancel = nullptr;
    void* extra_state = nullptr;
    bool generalized = false;

    bool persistent() const { return static_cast<bool>(start); }
};

class Requests {
  public:
    explicit Requests(Engine& engine) : engine_(engine) {}
    Requests(const Requests&) = delete;
    Requests& operator=(const Requests&) = delete;
    ~Requests();

    // Gives the program a request that works on `comm` with these types. `background`: our own task
    // completes it, so it must stay until then even when the program frees it.
    MPI_Request hand_out(p2p::Request* request, Comm& comm, Datatype* first = nullptr,
                         Datatype* second = nullptr, bool background = false);
    // The same of one that works on no communicator; our own task completes it.
    MPI_Request hand_out(p2p::Request* request);
    // The same of a read or write of a file.
    MPI_Request hand_out(p2p::Request* request, File& file, Datatype& datatype);
    // One more derived datatype that must live as long as this request.
    void keep(MPI_Request handle, Datatype& datatype);
    // A request that is complete already, for MPI_PROC_NULL.
    Result<p2p::Request*> completed(p2p::RequestKind kind, const p2p::Outcome& outcome);
    // Runs a task (a collective) in the background and completes its request with the result.
    Result<p2p::Request*> spawn(Task<Status> task);
    // The same in two steps, for a task that needs its request.
    Result<p2p::Request*> create(p2p::RequestKind kind);
    void run(p2p::Request* request, Task<Status> task);
    // Runs a task that belongs to no request of the program.
    void background(Task<Status> task);
    Result<p2p::Request*> persistent(Comm& comm, std::function<Result<p2p::Request*>()> starter);
    Result<p2p::Request*> generalized(MPI_Grequest_query_function* query_function,
                                      MPI_Grequest_free_function* free_function,
                                      MPI_Grequest_cancel_function* cancel_function,
                                      void* extra_state);

    // How many the program holds.
    std::size_t held() const;

    // Whether a wait on it would return: done, or inactive.
    static bool over(const p2p::Request& request);
    // False for a persistent request that is not started.
    static bool active(const p2p::Request& request);
    // The one that moves the data, which a program that posts or starts it again and again does not
    // hold itself; null: none.
    static p2p::Request* at_work(p2p::Request& request);
    static Comm* comm_of(const p2p::Request& request);
    static File* file_of(const p2p::Request& request);
    // Null for an ordinary request.
    static Operation* operation_of(const p2p::Request& request);

    // For a request that is over: what it tells goes to `status` (may be null), the handle becomes
    // null - or, if persistent, stays, inactive. Returns the operation's own failure.
    Status retire(MPI_Request& handle, p2p::Request& request, MPI_Status* status);
    // The same without giving the request back (MPI_Request_get_status).
    Status peek(p2p::Request& request, MPI_Status* status);
    // MPI_Request_free: it goes on alone and is released at its end. A generalized one is released
    // when both have been called, this and MPI_Grequest_complete.
    Status free(MPI_Request& handle, p2p::Request& request);
    Status start(p2p::Request& request);
    // MPI_Grequest_complete.
    Status complete(p2p::Request& generalized);

    // Ends what is finished in the background; returns how many.
    int progress() { return idle() ? 0 : end_finished(); }
    bool idle() const { return spawned_.empty() && orphans_.empty(); }

  private:
    // One that is of no communicator, with an Operation of its own, empty so far.
    Result<p2p::Request*> with_operation();
    static Task<Status> watch(Executor& executor, p2p::Request* request, Task<Status> task);
    void end(p2p::Request& request);
    int end_finished();

    Engine& engine_;
    std::vector<Task<Status>> spawned_;
    std::vector<p2p::Request*>
        orphans_;  // freed by the program, still at work with types or groups that must stay
};

}  // namespace gantry::mpi
