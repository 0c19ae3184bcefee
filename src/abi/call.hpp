// SPDX-License-Identifier: BSD-3-Clause
//
// Call: one visit of a program to an MPI function, as the generated entry points (api/entries.py)
// write it down:
//
//     Call call("MPI_Send", When::running);            may it be called now, in this process?
//     auto* comm_ = call.object("comm", comm);         handle -> object
//     call.not_negative("count", count, MPI_ERR_COUNT);  ... every argument judged by its kind
//     if (call.failed()) return call.leave();
//     return call.leave(mpi::wait(mpi::send(...)));    the body's result, through the error handler
//
// The first failure counts; later judgements see it and add nothing. Judging good arguments
// allocates nothing, formats nothing and takes a few compares: everything about a failure is in
// call.cpp, out of line. What a function does is not known here.
#pragma once

#include "abi/handle_kind.hpp"
#include "base/status.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/coll/op.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/errhandler/errhandler.hpp"
#include "mpi/engine/handles.hpp"
#include "mpi/engine/pending.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/rma/win.hpp"
#include "mpi/session/session.hpp"
#include "mpi/topo/topology.hpp"

#include <mpi.h>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace gantry::abi {

// When a call may be made; `anywhere`: always, and it touches nothing that threads share.
enum class When : std::uint8_t { running, always, anywhere };
enum class Null : std::uint8_t { refused, allowed };

class Call {
  public:
    Call(const char* function, When when) : visit_(passed_by(when), function), function_(function) {
        if (when == When::running && !mpi::process().running()) [[unlikely]]
            refuse_call();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    bool failed() const { return !failure_.ok(); }
    ~Call() {
        if (held_ > 0) [[unlikely]]
            let_go();
    }
    int leave() { return leave(std::move(failure_)); }
    int leave(Status outcome) {
        if (outcome.ok()) [[likely]]
            return MPI_SUCCESS;
        return raise(outcome);
    }

    // --- handles
    template <class Handle>
    auto* object(const char* name, Handle handle) {
        auto* found = mpi::find(handle);
        if (found == nullptr) [[unlikely]]
            refuse_handle(name, HandleKind<Handle>::facts, value_of(handle));
        else
            remember(found);
        return found;
    }
    // A type that data is moved with must be committed.
    mpi::Datatype* transfer_type(const char* name, MPI_Datatype handle) {
        mpi::Datatype* found = object(name, handle);
        if (found != nullptr && !found->committed) [[unlikely]]
            refuse_uncommitted(name);
        return found;
    }
    // Beside a count of 0 there may be none; then any type will do.
    mpi::Datatype* transfer_type(const char* name, MPI_Datatype handle, MPI_Count count) {
        if (handle == MPI_DATATYPE_NULL && count == 0) [[unlikely]]
            return mpi::find(MPI_INT);
        return transfer_type(name, handle);
    }
    template <class T>
    void transfer_types(const char* name, const MPI_Datatype* handles, const T* counts,
                        MPI_Count number) {
        array(name, handles, number);
        for (MPI_Count i = 0; i < number && !failed(); ++i)
            if (handles[i] != MPI_DATATYPE_NULL || counts == nullptr || counts[i] != 0)
                transfer_type_at(name, handles[i], i);
    }
    // The handler of the object that the call is to make: it hears already of the call's own
    // failure, unless it is none for such an object. MPI 5.0 section 11.3.1 says so of sessions. For
    // a communicator from a group section 9.3 would rather have the handler of the group's session,
    // which groups do not know; MPICH asks this one, too.
    mpi::Errhandler* handler_of_new(const char* name, MPI_Errhandler handle,
                                    mpi::Errhandler::Kind kind) {
        mpi::Errhandler* found = object(name, handle);
        if (found == nullptr) return nullptr;
        Status wrong_kind = mpi::check_serves(*found, kind);
        if (wrong_kind.ok()) [[likely]]
            handler_of_new_ = found;
        else
            fail(std::move(wrong_kind));
        return found;
    }
    // MPI_INFO_NULL stands for "nothing to say".
    mpi::Info* info(const char* name, MPI_Info handle) {
        return handle == MPI_INFO_NULL ? nullptr : object(name, handle);
    }
    // The call works on files: without a live one, the handler of MPI_FILE_NULL hears of a failure.
    void about_files() { about_files_ = true; }
    // Null if the handle is not live: it may not count in this call, which only the body can tell.
    template <class Handle>
    auto* optional(Handle handle) {
        return mpi::find(handle);
    }
    // The call is about this object, if it is live; it is not judged.
    template <class Handle>
    void about(Handle handle) {
        if (auto* found = mpi::find(handle); found != nullptr) remember(found);
    }
    template <class Handle>
    void nullable(const char* name, Handle handle) {
        if (value_of(handle) != HandleKind<Handle>::facts.null) object(name, handle);
    }
    // What an INOUT pointer points to.
    template <class Handle>
    void handle_at(const char* name, const Handle* place, Null null) {
        if (place == nullptr) [[unlikely]]
            return refuse_null(name, MPI_ERR_ARG);
        if (null == Null::allowed) return nullable(name, *place);
        if constexpr (std::is_same_v<Handle, MPI_Message>) {
            if (*place == MPI_MESSAGE_NO_PROC) return;
        }
        object(name, *place);
    }
    template <class Handle>
    void handles(const char* name, const Handle* handles, MPI_Count number, Null null) {
        array(name, handles, number);
        for (MPI_Count i = 0; i < number && !failed(); ++i) {
            const std::uintptr_t value = value_of(handles[i]);
            if (null == Null::allowed && value == HandleKind<Handle>::facts.null) continue;
            if (auto* found = mpi::find(handles[i]); found != nullptr)
                remember(found);
            else
                refuse_element(name, i, HandleKind<Handle>::facts, value);
        }
    }

    // --- pointers
    template <class T>
    void pointer(const char* name, T* place) {
        if (place == nullptr) [[unlikely]]
            refuse_null(name, MPI_ERR_ARG);
    }
    void string(const char* name, const char* text, int error_class) {
        if (text == nullptr) [[unlikely]]
            refuse_null(name, error_class);
    }
    template <class T>
    void array(const char* name, const T* elements, MPI_Count number) {
        if (elements == nullptr && number > 0) [[unlikely]]
            refuse_null(name, MPI_ERR_ARG);
    }
    // Null is MPI_BOTTOM, good for types that hold absolute addresses; no predefined type does.
    // MPI_IN_PLACE, where a collective takes it, is not judged at all; elsewhere it may be the
    // address of nothing.
    void buffer(const char* name, const void* address, MPI_Count count, MPI_Datatype type) {
        if (address == MPI_IN_PLACE && count > 0) [[unlikely]]
            refuse_in_place(name);
        if (address == nullptr && count > 0 && value_of(type) < kFirstUserHandle) [[unlikely]]
            refuse_null(name, MPI_ERR_BUFFER);
    }
    // The same for a list of blocks, of one type or each of its own; lists that are null themselves
    // are judged where they stand. Behind MPI_BOTTOM a displacement may be an address.
    template <class T, class Places, class Types>
    void blocks(const char* name, const void* address, const T* counts, Places displs,
                MPI_Count number, Types types) {
        if (is_address(address) || counts == nullptr || types == nullptr) [[likely]]
            return;
        for (MPI_Count i = 0; i < number && !failed(); ++i) {
            if constexpr (!std::is_null_pointer_v<Places>)
                if (address == MPI_BOTTOM && displs != nullptr && displs[i] != 0) continue;
            if constexpr (std::is_same_v<Types, MPI_Datatype>)
                buffer(name, address, counts[i], types);
            else
                buffer(name, address, counts[i], types[i]);
        }
    }
    void distinct(const void* sendbuf, const void* recvbuf) {
        if (sendbuf == recvbuf && sendbuf != MPI_BOTTOM) [[unlikely]]
            refuse_alias();
    }

    // --- numbers
    void not_negative(const char* name, MPI_Count value, int error_class) {
        if (value < 0) [[unlikely]]
            refuse_number(name, value, error_class, "must not be negative");
    }
    void positive(const char* name, MPI_Count value, int error_class) {
        if (value <= 0) [[unlikely]]
            refuse_number(name, value, error_class, "must be positive");
    }
    template <class T>
    void each_not_negative(const char* name, const T* values, MPI_Count number, int error_class) {
        array(name, values, number);
        for (MPI_Count i = 0; i < number && !failed(); ++i)
            if (values[i] < 0) [[unlikely]]
                refuse_number_at(name, i, values[i], error_class, "must not be negative");
    }
    template <class T>
    void each_positive(const char* name, const T* values, MPI_Count number, int error_class) {
        array(name, values, number);
        for (MPI_Count i = 0; i < number && !failed(); ++i)
            if (values[i] <= 0) [[unlikely]]
                refuse_number_at(name, i, values[i], error_class, "must be positive");
    }
    void color(const char* name, int value, int error_class) {
        if (value < 0 && value != MPI_UNDEFINED) [[unlikely]]
            refuse_number(name, value, error_class, "must not be negative, except MPI_UNDEFINED");
    }
    // MPI_TAG_UB is INT_MAX: every tag that is not negative is good.
    void tag(const char* name, int value, int error_class) {
        if (value < 0) [[unlikely]]
            refuse_number(name, value, error_class, "must lie between 0 and MPI_TAG_UB");
    }
    void tag_or_any(const char* name, int value, int error_class) {
        if (value < 0 && value != MPI_ANY_TAG) [[unlikely]]
            refuse_number(name, value, error_class,
                          "must lie between 0 and MPI_TAG_UB, or be MPI_ANY_TAG");
    }
    void thread_level(const char* name, int value, int error_class) {
        if (value != MPI_THREAD_SINGLE && value != MPI_THREAD_FUNNELED &&
            value != MPI_THREAD_SERIALIZED && value != MPI_THREAD_MULTIPLE) [[unlikely]]
            refuse_number(name, value, error_class, "must be one of the four MPI_THREAD_ levels");
    }
    void lock_type(const char* name, int value, int error_class) {
        if (value != MPI_LOCK_SHARED && value != MPI_LOCK_EXCLUSIVE) [[unlikely]]
            refuse_number(name, value, error_class,
                          "must be MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE");
    }

    // --- the communicator that was looked up before
    // It has one group: the call means nothing between two.
    void one_group() {
        if (is_inter()) [[unlikely]]
            refuse_inter();
    }

    // --- ranks, of the communicator or window that was looked up before
    void destination(const char* name, int value, int error_class) {
        if (!in(value, peers()) && value != MPI_PROC_NULL) [[unlikely]]
            refuse_rank(name, value, error_class, "or MPI_PROC_NULL");
    }
    void source(const char* name, int value, int error_class) {
        if (!in(value, peers()) && value != MPI_PROC_NULL && value != MPI_ANY_SOURCE) [[unlikely]]
            refuse_rank(name, value, error_class, "MPI_ANY_SOURCE or MPI_PROC_NULL");
    }
    void target(const char* name, int value, int error_class) {
        destination(name, value, error_class);
    }
    void member(const char* name, int value, int error_class) {
        if (!in(value, peers())) [[unlikely]]
            refuse_rank(name, value, error_class, "");
    }
    void root(const char* name, int value, int error_class) {
        root_ = value;
        const bool marker = is_inter() && (value == MPI_ROOT || value == MPI_PROC_NULL);
        if (!in(value, peers()) && !marker) [[unlikely]]
            refuse_rank(name, value, error_class, "");
    }
    // Which side of a rooted collective this process is on. In one group the root is a leaf too.
    bool is_root() const {
        return comm_ != nullptr && (is_inter() ? root_ == MPI_ROOT : root_ == comm_->rank());
    }
    bool is_leaf() const { return comm_ != nullptr && (!is_inter() || root_ >= 0); }
    bool takes_part() const { return is_root() || is_leaf(); }
    // MPI_IN_PLACE stands for the other buffer only inside one group.
    bool in_place(const void* buffer) const { return buffer == MPI_IN_PLACE && !is_inter(); }

    // --- how many
    // Processes that messages go to: of the remote group, if there is one.
    int peers() const {
        if (comm_ != nullptr) return comm_->peers();
        return win_ != nullptr ? win_->ranks : 0;
    }
    // This rank's of a list of counts.
    template <class T>
    MPI_Count share(const T* counts) const {
        return comm_ != nullptr && counts != nullptr ? counts[comm_->rank()] : 0;
    }
    int members() const { return comm_ != nullptr ? comm_->size() : 0; }
    // Neighbors in the communicator's topology.
    int sends_to() const { return comm_ != nullptr ? mpi::blocks_out(*comm_) : 0; }
    int receives_from() const { return comm_ != nullptr ? mpi::blocks_in(*comm_) : 0; }

    void no_memory();

  private:
    // First in, last out: also judging a handle looks into tables that progress changes.
    const mpi::Visit visit_;

    static mpi::Boundary* passed_by(When when) {
        if (when == When::anywhere) return nullptr;
        return when == When::always ? mpi::process().boundary_at_any_time : mpi::boundary_now();
    }
    static bool in(int value, int number) { return value >= 0 && value < number; }
    static bool is_address(const void* address) {
        return address != nullptr && address != MPI_IN_PLACE;
    }
    template <class Handle>
    static std::uintptr_t value_of(Handle handle) {
        return reinterpret_cast<std::uintptr_t>(handle);
    }
    bool is_inter() const { return comm_ != nullptr && comm_->is_inter(); }

    // The object whose error handler judges a failure: the first communicator, window, file or
    // session of the call.
    void remember(mpi::Comm* comm) {
        comm_ = comm_ == nullptr ? comm : comm_;
        hold(comm);
    }
    void remember(mpi::Win* win) {
        win_ = win_ == nullptr ? win : win_;
        hold(win);
    }
    void remember(mpi::Datatype* datatype) { hold(datatype); }
    void remember(mpi::Op* op) { hold(op); }
    void remember(mpi::File* file) { file_ = file_ == nullptr ? file : file_; }
    void remember(mpi::Session* session) { session_ = session_ == nullptr ? session : session_; }
    template <class Other>
    void remember(Other*) {}

    // While the call waits, or lets a function of the program run, other threads are in, and may free
    // what it works on.
    template <class T>
    void hold(T* object) {
        if (!visit_.passed() || object->predefined) [[likely]]
            return;
        hold(mpi::retain(object), [](void* held) { mpi::release(static_cast<T*>(held)); });
    }
    void hold(void* object, void (*release)(void*));
    void let_go();

    void fail(Status failure) {
        if (failure_.ok()) failure_ = std::move(failure);
    }
    int raise(const Status& outcome) const;
    void transfer_type_at(const char* name, MPI_Datatype handle, MPI_Count index);
    [[gnu::cold]] void refuse_call();
    [[gnu::cold]] void refuse_handle(const char* name, const HandleFacts& kind,
                                     std::uintptr_t value);
    [[gnu::cold]] void refuse_element(const char* name, MPI_Count index, const HandleFacts& kind,
                                      std::uintptr_t value);
    [[gnu::cold]] void refuse_uncommitted(const char* name);
    [[gnu::cold]] void refuse_null(const char* name, int error_class);
    [[gnu::cold]] void refuse_in_place(const char* name);
    [[gnu::cold]] void refuse_alias();
    [[gnu::cold]] void refuse_inter();
    [[gnu::cold]] void refuse_number(const char* name, MPI_Count value, int error_class,
                                     const char* rule);
    [[gnu::cold]] void refuse_number_at(const char* name, MPI_Count index, MPI_Count value,
                                        int error_class, const char* rule);
    [[gnu::cold]] void refuse_rank(const char* name, int value, int error_class, const char* also);

    const char* function_;
    Status failure_;
    mpi::Comm* comm_ = nullptr;
    mpi::Win* win_ = nullptr;
    mpi::File* file_ = nullptr;
    mpi::Session* session_ = nullptr;
    const mpi::Errhandler* handler_of_new_ = nullptr;
    bool about_files_ = false;
    int root_ = 0;
    struct Held {
        void* object;
        void (*release)(void*);
    };
    static constexpr int kHeldHere = 4;
    int held_ = 0;
    Held held_here_[kHeldHere];
    std::vector<Held>* held_besides_ = nullptr;  // let_go() deletes it; hardly a call has one
};

// The answer of a function that is not built. With its object, so that the right error handler
// hears of it.
int not_built(const char* function);
int not_built(const char* function, MPI_Comm comm);
int not_built(const char* function, MPI_Win win);
int not_built(const char* function, MPI_File file);
int not_built(const char* function, MPI_Session session);

}  // namespace gantry::abi
