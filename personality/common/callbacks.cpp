// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that make the library call the program: reductions, error handlers, attributes, generalized
// requests, data representations. The library calls a function of ours, with the program's behind
// its pointer of extra state.
#include "common/arguments.hpp"
#include "common/export.hpp"
#include "common/standard.hpp"

#include <limits>
#include <mutex>
#include <new>
#include <set>
#include <tuple>

namespace gantry::personality {
namespace {

template <class Function>
void* state(Function* function) {
    return reinterpret_cast<void*>(function);
}

// --- reductions

void reduce(void* in, void* inout, MPI_Count length, MPI_Datatype datatype, void* function) {
    constexpr MPI_Count most = std::numeric_limits<int>::max();
    MPI_Aint lower = 0, extent = 0;
    if (length > most) standard.Type_get_extent(datatype, &lower, &extent);
    auto* from_bytes = static_cast<char*>(in);
    auto* to_bytes = static_cast<char*>(inout);
    for (MPI_Count done = 0; done < length; done += most) {
        int piece = static_cast<int>(length - done < most ? length - done : most);
        // The function gets a pointer and may write through it.
        theirs::Datatype handle = from(datatype);
        reinterpret_cast<theirs::User_function*>(function)(
            from_bytes + done * extent, to_bytes + done * extent, &piece, &handle);
    }
}

void reduce_c(void* in, void* inout, MPI_Count length, MPI_Datatype datatype, void* function) {
    theirs::Datatype handle = from(datatype);
    reinterpret_cast<theirs::User_function_c*>(function)(in, inout, &length, &handle);
}

// --- error handlers

template <class Handle>
void handle_error(Handle handle, int code, void* function) {
    Their<Handle> theirs = from(handle);
    int their_code = error(code);
    reinterpret_cast<theirs::Errhandler_function<Their<Handle>>*>(function)(&theirs, &their_code);
}

// --- attributes

template <class Handle>
struct Attribute {
    theirs::Copy<Their<Handle>>* copy;
    theirs::Delete<Their<Handle>>* erase;
    void* extra_state;
    bool operator<(const Attribute& other) const {
        return std::tie(copy, erase, extra_state) <
               std::tie(other.copy, other.erase, other.extra_state);
    }
};

// A key value may be freed long before the last attribute under it, so what its functions are is kept
// for ever, once for all keys that have the same.
template <class Handle>
void* kept(const Attribute<Handle>& attribute) {
    static std::mutex lock;
    static auto* const all = new std::set<Attribute<Handle>>;
    const std::lock_guard held(lock);
    return const_cast<Attribute<Handle>*>(&*all->insert(attribute).first);
}

template <class Handle>
int copy_attribute(Handle handle, int keyval, void* kept, void* in, void* out, int* flag) {
    const auto& its = *static_cast<const Attribute<Handle>*>(kept);
    return error_class_to(
        its.copy(from(handle), keyval_from(keyval), its.extra_state, in, out, flag));
}
template <class Handle>
int delete_attribute(Handle handle, int keyval, void* value, void* kept) {
    const auto& its = *static_cast<const Attribute<Handle>*>(kept);
    return error_class_to(its.erase(from(handle), keyval_from(keyval), value, its.extra_state));
}

template <class Handle, class Create>
int create_keyval(Create* create, theirs::Copy<Their<Handle>>* copy,
                  theirs::Delete<Their<Handle>>* erase, int* keyval, void* extra_state) {
    const ValueOut keyval_(keyval, keyval_from);
    return error(create(copy == nullptr ? nullptr : &copy_attribute<Handle>,
                        erase == nullptr ? nullptr : &delete_attribute<Handle>, keyval,
                        kept<Handle>({copy, erase, extra_state})));
}

// --- generalized requests

struct Generalized {
    theirs::Grequest_query_function* query;
    theirs::Grequest_free_function* release;
    theirs::Grequest_cancel_function* cancel;
    void* extra_state;
};

int query(void* state, MPI_Status* status) {
    const auto& its = *static_cast<const Generalized*>(state);
    theirs::Status theirs{};
    give(*status, theirs);
    const int code = its.query(its.extra_state, &theirs);
    take(theirs, *status);
    return error_class_to(code);
}
int release(void* state) {
    auto* its = static_cast<Generalized*>(state);
    const int code = its->release == nullptr ? 0 : its->release(its->extra_state);
    delete its;
    return error_class_to(code);
}
int cancel(void* state, int complete) {
    const auto& its = *static_cast<const Generalized*>(state);
    return error_class_to(its.cancel(its.extra_state, complete));
}

// --- data representations, which last until the process ends

struct Datarep {
    theirs::Datarep_conversion_function *read, *write;
    theirs::Datarep_conversion_function_c *read_c, *write_c;
    theirs::Datarep_extent_function* extent;
    void* extra_state;
};

int datarep_extent(MPI_Datatype datatype, MPI_Aint* extent, void* state) {
    const auto& its = *static_cast<const Datarep*>(state);
    return error_class_to(its.extent(from(datatype), extent, its.extra_state));
}
template <auto Datarep::*function, class Count>
int convert(void* memory, MPI_Datatype datatype, Count count, void* file, MPI_Offset position,
            void* state) {
    const auto& its = *static_cast<const Datarep*>(state);
    return error_class_to(
        (its.*function)(memory, from(datatype), count, file, position, its.extra_state));
}

}  // namespace

GANTRY_EXPORT(int, Op_create, (theirs::User_function * function, int commute, theirs::Op* op)) {
    MPI_Op op_ours = nullptr;
    const HandleOut<MPI_Op> op_(op, op_ours);
    return error(standard.Op_create_x(function == nullptr ? nullptr : &reduce, nullptr, commute,
                                      state(function), op_.pointer()));
}
GANTRY_EXPORT(int, Op_create_c, (theirs::User_function_c * function, int commute, theirs::Op* op)) {
    MPI_Op op_ours = nullptr;
    const HandleOut<MPI_Op> op_(op, op_ours);
    return error(standard.Op_create_x(function == nullptr ? nullptr : &reduce_c, nullptr, commute,
                                      state(function), op_.pointer()));
}

#define GANTRY_ERRHANDLER(Kind)                                                                  \
    GANTRY_EXPORT(                                                                               \
        int, Kind##_create_errhandler,                                                           \
        (theirs::Kind##_errhandler_function * function, theirs::Errhandler * errhandler)) {      \
        MPI_Errhandler errhandler_ours = nullptr;                                                \
        const HandleOut<MPI_Errhandler> errhandler_(errhandler, errhandler_ours);                \
        return error(standard.Kind##_create_errhandler_x(                                        \
            function == nullptr ? nullptr : &handle_error<MPI_##Kind>, nullptr, state(function), \
            errhandler_.pointer()));                                                             \
    }
GANTRY_ERRHANDLER(Comm)
GANTRY_ERRHANDLER(Win)
GANTRY_ERRHANDLER(File)
GANTRY_ERRHANDLER(Session)
#undef GANTRY_ERRHANDLER

GANTRY_EXPORT(int, Comm_create_keyval,
              (theirs::Comm_copy_attr_function * copy, theirs::Comm_delete_attr_function* erase,
               int* keyval, void* extra_state)) {
    return create_keyval<MPI_Comm>(standard.Comm_create_keyval, copy, erase, keyval, extra_state);
}
GANTRY_EXPORT(int, Keyval_create,
              (theirs::Copy_function * copy, theirs::Delete_function* erase, int* keyval,
               void* extra_state)) {
    return create_keyval<MPI_Comm>(standard.Keyval_create, copy, erase, keyval, extra_state);
}
GANTRY_EXPORT(int, Type_create_keyval,
              (theirs::Type_copy_attr_function * copy, theirs::Type_delete_attr_function* erase,
               int* keyval, void* extra_state)) {
    return create_keyval<MPI_Datatype>(standard.Type_create_keyval, copy, erase, keyval,
                                       extra_state);
}
GANTRY_EXPORT(int, Win_create_keyval,
              (theirs::Win_copy_attr_function * copy, theirs::Win_delete_attr_function* erase,
               int* keyval, void* extra_state)) {
    return create_keyval<MPI_Win>(standard.Win_create_keyval, copy, erase, keyval, extra_state);
}

GANTRY_EXPORT(int, Grequest_start,
              (theirs::Grequest_query_function * query_fn, theirs::Grequest_free_function* free_fn,
               theirs::Grequest_cancel_function* cancel_fn, void* extra_state,
               theirs::Request* request)) {
    auto* its = new (std::nothrow) Generalized{query_fn, free_fn, cancel_fn, extra_state};
    if (its == nullptr) return error(MPI_ERR_NO_MEM);
    MPI_Request request_ours = nullptr;
    const HandleOut<MPI_Request> request_(request, request_ours);
    const int code =
        standard.Grequest_start(query_fn == nullptr ? nullptr : &query, &release,
                                cancel_fn == nullptr ? nullptr : &cancel, its, request_.pointer());
    if (code != MPI_SUCCESS) delete its;
    return error(code);
}

GANTRY_EXPORT(int, Register_datarep,
              (const char* name, theirs::Datarep_conversion_function* read,
               theirs::Datarep_conversion_function* write, theirs::Datarep_extent_function* extent,
               void* extra_state)) {
    auto* its = new (std::nothrow) Datarep{read, write, nullptr, nullptr, extent, extra_state};
    if (its == nullptr) return error(MPI_ERR_NO_MEM);
    return error(
        standard.Register_datarep(name, read == nullptr ? nullptr : &convert<&Datarep::read, int>,
                                  write == nullptr ? nullptr : &convert<&Datarep::write, int>,
                                  extent == nullptr ? nullptr : &datarep_extent, its));
}
GANTRY_EXPORT(int, Register_datarep_c,
              (const char* name, theirs::Datarep_conversion_function_c* read,
               theirs::Datarep_conversion_function_c* write,
               theirs::Datarep_extent_function* extent, void* extra_state)) {
    auto* its = new (std::nothrow) Datarep{nullptr, nullptr, read, write, extent, extra_state};
    if (its == nullptr) return error(MPI_ERR_NO_MEM);
    return error(standard.Register_datarep_c(
        name, read == nullptr ? nullptr : &convert<&Datarep::read_c, MPI_Count>,
        write == nullptr ? nullptr : &convert<&Datarep::write_c, MPI_Count>,
        extent == nullptr ? nullptr : &datarep_extent, its));
}

}  // namespace gantry::personality
