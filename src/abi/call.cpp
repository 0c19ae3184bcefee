// SPDX-License-Identifier: BSD-3-Clause
#include "abi/call.hpp"

#include <utility>

namespace gantry::abi {

void Call::hold(void* object, void (*release)(void*)) {
    const Held held{object, release};
    if (held_ < kHeldHere) {
        held_here_[held_++] = held;
        return;
    }
    if (held_besides_ == nullptr) held_besides_ = new std::vector<Held>;
    held_besides_->push_back(held);
}

void Call::let_go() {
    for (int i = 0; i < held_; ++i)
        held_here_[i].release(held_here_[i].object);
    if (held_besides_ == nullptr) return;
    for (const Held& each : *held_besides_)
        each.release(each.object);
    delete held_besides_;
}

int Call::raise(const Status& outcome) const {
    // Handlers are shared also by calls that touch nothing else.
    const mpi::Visit visit(visit_.passed() ? nullptr : mpi::boundary_now(), nullptr);
    if (about_files_) return mpi::raise(file_, outcome, function_);
    if (comm_ != nullptr) return mpi::raise(comm_, outcome, function_);
    if (win_ != nullptr) return mpi::raise(win_, outcome, function_);
    if (file_ != nullptr) return mpi::raise(file_, outcome, function_);
    if (session_ != nullptr) return mpi::raise(session_, outcome, function_);
    if (handler_of_new_ != nullptr) return mpi::raise(*handler_of_new_, outcome, function_);
    return mpi::raise(nullptr, outcome, function_);
}

void Call::refuse_call() {
    const mpi::Process& process = mpi::process();
    if (process.forked)
        fail(failure(MPI_ERR_OTHER,
                     "called in a forked child, which is not a process of the MPI job: call MPI "
                     "only in the process that "
                     "initialised it, or start the child with exec"));
    else if (process.phase == mpi::Process::Phase::finalized)
        fail(failure(MPI_ERR_OTHER, "called after MPI was finalized"));
    else
        fail(failure(
            MPI_ERR_OTHER,
            "called before MPI was initialised (MPI_Init, MPI_Init_thread or MPI_Session_init)"));
}

void Call::refuse_handle(const char* name, const HandleFacts& kind, std::uintptr_t value) {
    if (value == kind.null)
        fail(failure(kind.error_class, "argument {} is {}", name, kind.null_name));
    else
        fail(failure(kind.error_class,
                     "argument {} ({:#x}) is not a live {}: it was freed, or never was one", name,
                     value, kind.noun));
}

void Call::refuse_element(const char* name, MPI_Count index, const HandleFacts& kind,
                          std::uintptr_t value) {
    if (value == kind.null)
        fail(failure(kind.error_class, "argument {}[{}] is {}", name, index, kind.null_name));
    else
        fail(failure(kind.error_class,
                     "argument {}[{}] ({:#x}) is not a live {}: it was freed, or never was one",
                     name, index, value, kind.noun));
}

void Call::refuse_uncommitted(const char* name) {
    fail(failure(MPI_ERR_TYPE,
                 "argument {} is a datatype that was not committed: call MPI_Type_commit first",
                 name));
}

void Call::transfer_type_at(const char* name, MPI_Datatype handle, MPI_Count index) {
    const mpi::Datatype* found = mpi::find(handle);
    if (found == nullptr)
        refuse_element(name, index, HandleKind<MPI_Datatype>::facts, value_of(handle));
    else if (!found->committed)
        refuse_uncommitted(fmt::format("{}[{}]", name, index).c_str());
}

void Call::refuse_null(const char* name, int error_class) {
    fail(failure(error_class, "argument {} is a null pointer", name));
}

void Call::refuse_in_place(const char* name) {
    fail(failure(
        MPI_ERR_BUFFER,
        "argument {} is MPI_IN_PLACE, which stands only for the send buffer of a collective "
        "operation (for the receive buffer of a scatter), where there is a root only at the root, "
        "and never on an inter-communicator",
        name));
}

void Call::refuse_inter() {
    fail(failure(MPI_ERR_COMM,
                 "the communicator is an inter-communicator, and this call takes one of one group; "
                 "MPI_Intercomm_merge makes one of both groups"));
}

void Call::refuse_alias() {
    fail(failure(MPI_ERR_BUFFER,
                 "arguments sendbuf and recvbuf are the same address: use MPI_IN_PLACE"));
}

void Call::refuse_number(const char* name, MPI_Count value, int error_class, const char* rule) {
    fail(failure(error_class, "argument {} is {} and {}", name, value, rule));
}

void Call::refuse_number_at(const char* name, MPI_Count index, MPI_Count value, int error_class,
                            const char* rule) {
    fail(failure(error_class, "argument {}[{}] is {} and {}", name, index, value, rule));
}

void Call::refuse_rank(const char* name, int value, int error_class, const char* also) {
    fail(failure(error_class, "argument {} is {} and must lie between 0 and {}{}{}", name, value,
                 peers() - 1, *also != '\0' ? ", " : "", also));
}

void Call::no_memory() {
    fail(failure(MPI_ERR_NO_MEM, "no memory to widen an array argument"));
}

namespace {

Status not_built_yet() {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                   "this version of Gantry does not have this function");
}

template <class Handle>
int not_built_on(const char* function, Handle handle) {
    Call call(function, When::running);
    call.about(handle);
    return call.failed() ? call.leave() : call.leave(not_built_yet());
}

}  // namespace

int not_built(const char* function) {
    Call call(function, When::always);
    return call.failed() ? call.leave() : call.leave(not_built_yet());
}
int not_built(const char* function, MPI_Comm comm) {
    return not_built_on(function, comm);
}
int not_built(const char* function, MPI_Win win) {
    return not_built_on(function, win);
}
int not_built(const char* function, MPI_File file) {
    Call call(function, When::running);
    call.about_files();
    call.about(file);
    return call.failed() ? call.leave() : call.leave(not_built_yet());
}
int not_built(const char* function, MPI_Session session) {
    return not_built_on(function, session);
}

}  // namespace gantry::abi
