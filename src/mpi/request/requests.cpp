// SPDX-License-Identifier: BSD-3-Clause
//
// The life of a request in the MPI layer. `owner` of a p2p::Request is a Comm, or, with the lowest
// bit set, an Operation.
#include "mpi/request/requests.hpp"

#include "mpi/engine/boundary.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/io/file.hpp"
#include "mpi/partitioned/side.hpp"
#include "mpi/request/status.hpp"

#include <algorithm>
#include <new>

namespace gantry::mpi {
namespace {

constexpr std::uintptr_t kOperationBit = 1;

void* tag(Operation* operation) {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(operation) | kOperationBit);
}

Status no_memory() {
    return failure(MPI_ERR_NO_MEM, "out of memory for a request");
}

bool derived(const Datatype* datatype) {
    return datatype != nullptr && !datatype->predefined;
}

MPI_Request handle_of(p2p::Request* request) {
    return reinterpret_cast<MPI_Request>(request);
}

// The program's free function, of a generalized request that is about to end.
Status call_free(const Operation& operation) {
    const LetOthersIn program;
    const int code = operation.free(operation.extra_state);
    if (code == MPI_SUCCESS) return success();
    return failure(code, "the free function of a generalized request returned {}", code);
}

// While functions of the program are called for a request that ends, other threads are in: they do not
// find it any more, neither by this handle nor by a copy.
void hide(MPI_Request& handle, p2p::Request& request) {
    handle = MPI_REQUEST_NULL;
    request.detached = true;
}

}  // namespace

Requests::~Requests() {
    for (p2p::Request* request : orphans_)
        end(*request);
}

Operation* Requests::operation_of(const p2p::Request& request) {
    const auto owner = reinterpret_cast<std::uintptr_t>(request.owner);
    return (owner & kOperationBit) != 0 ? reinterpret_cast<Operation*>(owner & ~kOperationBit)
                                        : nullptr;
}

Comm* Requests::comm_of(const p2p::Request& request) {
    const Operation* operation = operation_of(request);
    return operation != nullptr ? operation->comm : static_cast<Comm*>(request.owner);
}

File* Requests::file_of(const p2p::Request& request) {
    const Operation* operation = operation_of(request);
    return operation != nullptr ? operation->file : nullptr;
}

MPI_Request Requests::hand_out(p2p::Request* request, Comm& comm, Datatype* first, Datatype* second,
                               bool background) {
    if (!derived(first) && !derived(second) && !background) {
        request->owner = retain(&comm);
        return handle_of(request);
    }
    auto* operation = new (std::nothrow) Operation;
    GANTRY_ASSERT(operation != nullptr);
    operation->comm = retain(&comm);
    for (Datatype* datatype : {first, second})
        if (derived(datatype)) operation->datatypes.push_back(retain(datatype));
    request->owner = tag(operation);
    return handle_of(request);
}

MPI_Request Requests::hand_out(p2p::Request* request) {
    auto* operation = new (std::nothrow) Operation;
    GANTRY_ASSERT(operation != nullptr);
    request->owner = tag(operation);
    return handle_of(request);
}

MPI_Request Requests::hand_out(p2p::Request* request, File& file, Datatype& datatype) {
    const MPI_Request handle = hand_out(request);
    operation_of(*request)->file = retain(&file);
    keep(handle, datatype);
    return handle;
}

std::size_t Requests::held() const {
    return engine_.messenger().count([](const p2p::Request& request) {
        return request.owner != nullptr && !request.detached;
    }) - orphans_.size();
}

void Requests::keep(MPI_Request handle, Datatype& datatype) {
    if (!derived(&datatype)) return;
    Request& request = *find(handle);
    Operation* operation = operation_of(request);
    if (operation == nullptr) {
        operation = new (std::nothrow) Operation;
        GANTRY_ASSERT(operation != nullptr);
        operation->comm = comm_of(request);
        request.owner = tag(operation);
    }
    operation->datatypes.push_back(retain(&datatype));
}

Result<p2p::Request*> Requests::completed(p2p::RequestKind kind, const p2p::Outcome& outcome) {
    Result<p2p::Request*> request = engine_.messenger().create_request(kind);
    if (!request.ok()) return request;
    (*request)->outcome = outcome;
    (*request)->complete(success());
    return request;
}

Task<Status> Requests::watch(Executor&, p2p::Request* request, Task<Status> task) {
    Status status = co_await std::move(task);
    request->complete(status);
    co_return success();
}

Result<p2p::Request*> Requests::create(p2p::RequestKind kind) {
    return engine_.messenger().create_request(kind);
}

void Requests::run(p2p::Request* request, Task<Status> task) {
    Task<Status> running = watch(engine_.executor(), request, std::move(task));
    running.start();
    if (!running.done()) {
        spawned_.push_back(std::move(running));
        return;
    }
    Status failed = running.take();
    if (!request->done) request->complete(std::move(failed));  // no memory to run it at all
}

Result<p2p::Request*> Requests::spawn(Task<Status> task) {
    Result<p2p::Request*> request = create(p2p::RequestKind::collective);
    if (request.ok()) run(*request, std::move(task));
    return request;
}

void Requests::background(Task<Status> task) {
    task.start();
    if (!task.done()) spawned_.push_back(std::move(task));
}

Result<p2p::Request*> Requests::with_operation() {
    Result<p2p::Request*> request = create(p2p::RequestKind::collective);
    if (!request.ok()) return request;
    auto* operation = new (std::nothrow) Operation;
    if (operation == nullptr) {
        (*request)->complete(success());
        engine_.messenger().release(*request);
        return no_memory();
    }
    (*request)->owner = tag(operation);
    return request;
}

Result<p2p::Request*> Requests::persistent(Comm& comm,
                                           std::function<Result<p2p::Request*>()> starter) {
    Result<p2p::Request*> request = with_operation();
    if (!request.ok()) return request;
    Operation* const operation = operation_of(**request);
    operation->comm = retain(&comm);
    operation->start = std::move(starter);
    // The outer request itself never runs; its state is that of `in_flight`.
    (*request)->complete(success());
    return request;
}

Result<p2p::Request*> Requests::generalized(MPI_Grequest_query_function* query_function,
                                            MPI_Grequest_free_function* free_function,
                                            MPI_Grequest_cancel_function* cancel_function,
                                            void* extra_state) {
    Result<p2p::Request*> request = with_operation();
    if (!request.ok()) return request;
    Operation* const operation = operation_of(**request);
    operation->generalized = true;
    operation->query = query_function;
    operation->free = free_function;
    operation->cancel = cancel_function;
    operation->extra_state = extra_state;
    return request;
}

bool Requests::active(const p2p::Request& request) {
    const Operation* operation = operation_of(request);
    return operation == nullptr || !operation->persistent() || operation->in_flight != nullptr;
}

bool Requests::over(const p2p::Request& request) {
    const Operation* operation = operation_of(request);
    if (operation == nullptr || !operation->persistent()) return request.done;
    return operation->in_flight == nullptr || operation->in_flight->done;
}

p2p::Request* Requests::at_work(p2p::Request& request) {
    if (request.posted != nullptr) return SubmissionQueue::at_work(request);
    const Operation* operation = operation_of(request);
    return operation != nullptr && operation->persistent() ? operation->in_flight : &request;
}

Status Requests::peek(p2p::Request& request, MPI_Status* status) {
    Operation* operation = operation_of(request);
    if (operation != nullptr && operation->generalized) {
        MPI_Status own{};
        write_empty(&own);
        const int code = [&own, function = operation->query, extra_state = operation->extra_state] {
            const LetOthersIn program;
            return function(extra_state, &own);
        }();
        if (status != MPI_STATUS_IGNORE) {
            const int error = status->MPI_ERROR;
            *status = own;
            status->MPI_ERROR = error;
        }
        if (code != MPI_SUCCESS)
            return failure(code, "the query function of a generalized request returned {}", code);
        return success();
    }
    if (!active(request)) {
        write_empty(status);
        return success();
    }
    const p2p::Request& told =
        operation != nullptr && operation->persistent() ? *operation->in_flight : request;
    write(status, told.outcome);
    Status ended = told.status;
    if (!ended.ok()) process().failed_on = {comm_of(request), file_of(request)};
    return ended;
}

void Requests::end(p2p::Request& request) {
    if (Operation* operation = operation_of(request)) {
        for (Datatype* datatype : operation->datatypes)
            mpi::release(datatype);
        if (operation->in_flight != nullptr) engine_.messenger().release(operation->in_flight);
        if (operation->partitioned != nullptr) operation->partitioned->close();
        if (operation->comm != nullptr) mpi::release(operation->comm);
        if (operation->file != nullptr) mpi::release(operation->file);
        delete operation;
    } else if (request.owner != nullptr) {
        mpi::release(static_cast<Comm*>(request.owner));
    }
    request.owner = nullptr;
    request.detached = false;
    if (request.posted != nullptr) [[unlikely]]
        engine_.submission_queue().give_back(request);
    else
        engine_.messenger().release(&request);
}

Status Requests::retire(MPI_Request& handle, p2p::Request& request, MPI_Status* status) {
    Operation* operation = operation_of(request);
    // A copy of a handle that the program has freed.
    if (!orphans_.empty()) [[unlikely]]
        std::erase(orphans_, &request);
    if (operation != nullptr && operation->generalized) {
        hide(handle, request);
        Status ended = peek(request, status);
        Status freed = call_free(*operation);
        if (ended.ok()) ended = std::move(freed);
        end(request);
        return ended;
    }
    Status ended = peek(request, status);
    // A receive from any source that is pending stays: it may come yet (p2p/revoked.cpp).
    if (!ended.ok()) [[unlikely]]
        if (ended.error_class() == MPIX_ERR_PROC_FAILED_PENDING) return ended;
    if (operation != nullptr && operation->persistent()) {
        if (operation->in_flight != nullptr)
            engine_.messenger().release(std::exchange(operation->in_flight, nullptr));
        return ended;
    }
    end(request);
    handle = MPI_REQUEST_NULL;
    return ended;
}

Status Requests::free(MPI_Request& handle, p2p::Request& request) {
    Operation* operation = operation_of(request);
    if (p2p::Request* working = at_work(request)) working->go_on();
    // A receive asks its communicator's group, until its end, who can still send to it.
    const bool needs_group = request.kind == p2p::RequestKind::receive;
    if (std::find(orphans_.begin(), orphans_.end(), &request) != orphans_.end())
        return failure(MPI_ERR_REQUEST, "the request was freed before");
    if (over(request) || (operation == nullptr && !needs_group)) {
        if (operation == nullptr && request.kind == p2p::RequestKind::collective && !request.done)
            return failure(
                MPI_ERR_REQUEST,
                "a nonblocking collective operation cannot be freed while it runs; wait for it");
        Status freed;
        if (operation != nullptr && operation->generalized) {
            hide(handle, request);
            freed = call_free(*operation);
        }
        end(request);
        handle = MPI_REQUEST_NULL;
        return freed;
    }
    if (p2p::Request* working = at_work(request)) engine_.messenger().let_go_of_memory(*working);
    orphans_.push_back(&request);
    handle = MPI_REQUEST_NULL;
    return success();
}

Status Requests::start(p2p::Request& request) {
    Operation* operation = operation_of(request);
    if (operation == nullptr || !operation->persistent())
        return failure(
            MPI_ERR_REQUEST,
            "MPI_Start takes persistent requests (MPI_Send_init and the like); this one is not");
    if (operation->in_flight != nullptr)
        return failure(MPI_ERR_REQUEST,
                       "this persistent request was started already and is not complete yet");
    Result<p2p::Request*> started = operation->start();
    if (!started.ok()) return std::move(started).status();
    operation->in_flight = *started;
    return success();
}

Status Requests::complete(p2p::Request& generalized) {
    generalized.complete(success());
    if (std::erase(orphans_, &generalized) == 0) return success();
    generalized.detached = true;
    Status freed = call_free(*operation_of(generalized));
    end(generalized);
    return freed;
}

int Requests::end_finished() {
    int ended = 0;
    if (!spawned_.empty())
        ended += static_cast<int>(
            std::erase_if(spawned_, [](const Task<Status>& task) { return task.done(); }));
    if (!orphans_.empty()) {
        std::vector<p2p::Request*> still;
        for (p2p::Request* request : orphans_) {
            if (p2p::Request* working = at_work(*request)) working->go_on();
            if (over(*request)) {
                end(*request);
                ++ended;
            } else {
                still.push_back(request);
            }
        }
        orphans_ = std::move(still);
    }
    return ended;
}

}  // namespace gantry::mpi
