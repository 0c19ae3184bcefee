// SPDX-License-Identifier: BSD-3-Clause
//
// The bodies of attribute caching: keyvals of all three kinds, attributes of communicators, and the
// attributes that MPI itself defines.
#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/rma/win.hpp"

#include <climits>

namespace gantry::mpi {
namespace {

using Opaque = void (*)();

template <class Copy, class Remove>
Status create_keyval(KeyvalScope scope, Copy* copy, Remove* remove, int* keyval,
                     void* extra_state) {
    *keyval = process().keyvals.create(scope, reinterpret_cast<Opaque>(copy),
                                       reinterpret_cast<Opaque>(remove), extra_state);
    return success();
}

Status unknown_key(int keyval) {
    if (keyval > 0 && keyval < 4096)
        return failure(
            MPI_ERR_KEYVAL,
            "attribute key {} is predefined; only keys of MPI_x_create_keyval can be changed",
            keyval);
    return failure(MPI_ERR_KEYVAL, "{} is no attribute key of this kind of object", keyval);
}

Status free_keyval(KeyvalScope scope, int* keyval) {
    if (process().keyvals.find(scope, *keyval) == nullptr) return unknown_key(*keyval);
    process().keyvals.free(*keyval);
    *keyval = MPI_KEYVAL_INVALID;
    return success();
}

template <class Object>
Status set_attribute(KeyvalScope scope, Object& object, int keyval, void* value) {
    const std::shared_ptr<Keyval> key = process().keyvals.find(scope, keyval);
    if (key == nullptr) return unknown_key(keyval);
    return object.attributes.set(object.handle, key, value);
}

template <class Object>
Status get_attribute(KeyvalScope scope, Object& object, int keyval, void* value, int* flag) {
    const Attribute* attribute = object.attributes.find(keyval);
    *flag = attribute != nullptr;
    if (attribute != nullptr) {
        *static_cast<void**>(value) = attribute->value;
        return success();
    }
    return process().keyvals.find(scope, keyval) != nullptr ? success() : unknown_key(keyval);
}

template <class Object>
Status delete_attribute(KeyvalScope scope, Object& object, int keyval) {
    if (process().keyvals.find(scope, keyval) == nullptr) return unknown_key(keyval);
    return object.attributes.remove(object.handle, keyval);
}

// Programs get the address of an int; these never change.
struct Constants {
    int tag_ub = INT_MAX;
    int io = MPI_ANY_SOURCE;   // every process can do standard I/O
    int host = MPI_PROC_NULL;  // no process is special
    int wtime_is_global = 0;
};
const Constants kConstants;

// The address of a predefined attribute's value; null for one that is not set, and `known` false
// for no predefined key.
const int* predefined_attribute(Comm& comm, int keyval, bool& known) {
    known = true;
    switch (keyval) {
        case MPI_TAG_UB: return &kConstants.tag_ub;
        case MPI_IO: return &kConstants.io;
        case MPI_HOST: return &kConstants.host;
        case MPI_WTIME_IS_GLOBAL: return &kConstants.wtime_is_global;
        case MPI_LASTUSEDCODE: return &process().user_errors.last_used;
        case MPI_UNIVERSE_SIZE: return comm.engine->universe_size();
        case MPI_APPNUM: return comm.engine->app_number();
        default: known = false; return nullptr;
    }
}

// Of a window: the base itself, or the address of a value that stays. Null for no predefined key.
const void* predefined_attribute(const Win& win, int keyval) {
    switch (keyval) {
        case MPI_WIN_BASE: return win.base;
        case MPI_WIN_SIZE: return &win.bytes;
        case MPI_WIN_DISP_UNIT: return &win.unit;
        case MPI_WIN_CREATE_FLAVOR: return &win.flavor;
        case MPI_WIN_MODEL: return &win.model;
        default: return nullptr;
    }
}

}  // namespace

Status comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn,
                          MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval,
                          void* extra_state) {
    return create_keyval(KeyvalScope::comm, comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval,
                         extra_state);
}

Status type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                          MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval,
                          void* extra_state) {
    return create_keyval(KeyvalScope::type, type_copy_attr_fn, type_delete_attr_fn, type_keyval,
                         extra_state);
}

Status win_create_keyval(MPI_Win_copy_attr_function* win_copy_attr_fn,
                         MPI_Win_delete_attr_function* win_delete_attr_fn, int* win_keyval,
                         void* extra_state) {
    return create_keyval(KeyvalScope::win, win_copy_attr_fn, win_delete_attr_fn, win_keyval,
                         extra_state);
}

Status comm_free_keyval(int* comm_keyval) {
    return free_keyval(KeyvalScope::comm, comm_keyval);
}
Status type_free_keyval(int* type_keyval) {
    return free_keyval(KeyvalScope::type, type_keyval);
}
Status win_free_keyval(int* win_keyval) {
    return free_keyval(KeyvalScope::win, win_keyval);
}

Status comm_set_attr(Comm& comm, int comm_keyval, void* attribute_val) {
    return set_attribute(KeyvalScope::comm, comm, comm_keyval, attribute_val);
}

Status comm_get_attr(Comm& comm, int comm_keyval, void* attribute_val, int* flag) {
    bool known = false;
    const int* value = predefined_attribute(comm, comm_keyval, known);
    if (!known) return get_attribute(KeyvalScope::comm, comm, comm_keyval, attribute_val, flag);
    *flag = value != nullptr;
    if (value != nullptr) *static_cast<const int**>(attribute_val) = value;
    return success();
}

Status type_set_attr(Datatype& datatype, int type_keyval, void* attribute_val) {
    return set_attribute(KeyvalScope::type, datatype, type_keyval, attribute_val);
}

Status type_get_attr(Datatype& datatype, int type_keyval, void* attribute_val, int* flag) {
    return get_attribute(KeyvalScope::type, datatype, type_keyval, attribute_val, flag);
}

Status type_delete_attr(Datatype& datatype, int type_keyval) {
    return delete_attribute(KeyvalScope::type, datatype, type_keyval);
}

Status win_set_attr(Win& win, int win_keyval, void* attribute_val) {
    return set_attribute(KeyvalScope::win, win, win_keyval, attribute_val);
}

Status win_get_attr(Win& win, int win_keyval, void* attribute_val, int* flag) {
    const void* value = predefined_attribute(win, win_keyval);
    if (value == nullptr && win_keyval != MPI_WIN_BASE)
        return get_attribute(KeyvalScope::win, win, win_keyval, attribute_val, flag);
    *flag = 1;
    *static_cast<const void**>(attribute_val) = value;
    return success();
}

Status win_delete_attr(Win& win, int win_keyval) {
    return delete_attribute(KeyvalScope::win, win, win_keyval);
}

Status comm_delete_attr(Comm& comm, int comm_keyval) {
    return delete_attribute(KeyvalScope::comm, comm, comm_keyval);
}

}  // namespace gantry::mpi
