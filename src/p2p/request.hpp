// SPDX-License-Identifier: BSD-3-Clause
//
// Request: one operation in flight. The MPI handle of a request is its address (in the messenger's
// slab). A request is completed exactly once; then its result is set and whoever waits on it goes
// on. Who holds the handle releases it; a request that the program freed early is `detached` and
// released at its completion.
#pragma once

#include "base/intrusive_list.hpp"
#include "base/task.hpp"
#include "p2p/group.hpp"
#include "transfer/buffer.hpp"

#include <mpi-ext.h>
#include <mpi.h>

#include <cstdint>

namespace gantry::p2p {

using transfer::Buffer;

// `awaited`: a step of a collective. Its receiver is known to wait for it, and nobody counts on its buffer
// being free before.
enum class SendMode : std::uint8_t { standard, synchronous, ready, awaited };

enum class RequestKind : std::uint8_t { send, receive, collective };

// What a completed receive or probe tells (MPI_Status without the error).
struct Outcome {
    int source = MPI_ANY_SOURCE;  // rank in the communicator
    int tag = MPI_ANY_TAG;
    Bytes bytes = 0;
    bool cancelled = false;
};

class Request : public Link<Request> {
  public:
    RequestKind kind = RequestKind::send;
    bool done = false;
    bool detached = false;  // MPI_Request_free before completion
    Outcome outcome;
    // The operation's own failure. Before its end: what a receive already knows of its message, that
    // it is longer, or of other types.
    Status status;
    void* owner = nullptr;   // the mpi layer's communicator, for its error handler; opaque here
    void* posted = nullptr;  // the mpi layer's, of one whose work another request does; opaque here

    // --- posted receives (read by the matcher), and sends that await their FIN ---
    Buffer buffer;
    device::Location location;  // of the buffer, when bytes > 0
    std::uint8_t in_use = 0;    // what it holds of that memory (in_use.hpp)
    std::uint32_t context = 0;
    int source = MPI_ANY_SOURCE;  // communicator rank or MPI_ANY_SOURCE
    int tag = MPI_ANY_TAG;
    int peer = -1;                 // world rank of `source`, -1 for any; of a send, where it goes
    std::uint64_t order = 0;       // posting order, for receives from any source
    const Group* group = nullptr;  // of those: who may send; outlives the request
    Traffic* traffic = nullptr;    // of receives: counted there
    bool rtr_sent = false;         // the peer knows where its next message goes (put_after_rtr.cpp)

    // Called once by the layer that ran the operation.
    void complete(Status with) {
        status = std::move(with);
        done = true;
        if (waiting_ != nullptr) executor_->make_ready(*waiting_);
    }
    // A receive that is posted, and done for whoever looks at it (revoked.cpp). It goes on waiting.
    bool pending() const { return status.error_class() == MPIX_ERR_PROC_FAILED_PENDING; }
    void go_on() {
        if (!pending()) return;
        status = success();
        done = false;
    }
    // That one goes on when this is complete, which it is not yet; one at most. It outlives this.
    void then(Resumable& waiting, Executor& executor) {
        waiting_ = &waiting;
        executor_ = &executor;
    }

    // `Status s = co_await request->finished(executor);`
    struct Awaiter : Resumable {
        Awaiter(Request& of, Executor& in) : request(of), executor(in) {}
        Request& request;
        Executor& executor;
        bool await_ready() const { return request.done; }
        void await_suspend(std::coroutine_handle<> waiter) {
            this->handle = waiter;
            request.then(*this, executor);
        }
        Status await_resume() { return request.status; }
    };
    Awaiter finished(Executor& executor) { return Awaiter(*this, executor); }

  private:
    Resumable* waiting_ = nullptr;
    Executor* executor_ = nullptr;
};

// Of a receive that nobody can wait for again: a possible sender is lost.
[[gnu::cold, gnu::noinline]] void end_if_pending(Status& failed);
inline Status unless_pending(Status ended) {
    if (!ended.ok()) [[unlikely]]
        end_if_pending(ended);
    return ended;
}

}  // namespace gantry::p2p
