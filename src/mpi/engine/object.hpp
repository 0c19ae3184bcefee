// SPDX-License-Identifier: BSD-3-Clause
//
// What every object behind a handle has: the handle itself and a count of its owners. The program
// owns it once for each handle that it was given and has not freed; communications in flight and
// other objects are further owners. When the program's last handle is gone the object is not
// `valid()` any more: a stale handle is refused although the object may still serve a message.
#pragma once

#include "base/slab.hpp"

namespace gantry::mpi {

template <class Handle>
struct Object {
    Handle handle{};
    int references = 1;  // all owners
    int handles = 1;     // of these, the program's
    bool predefined = false;
    bool valid() const { return handles > 0; }
};

// A new object whose handle is its address; null when memory is exhausted.
template <class T, class... Args>
T* create(Slab<T>& slab, Args&&... args) {
    T* object = slab.create(std::forward<Args>(args)...);
    if (object != nullptr) object->handle = reinterpret_cast<decltype(object->handle)>(object);
    return object;
}

template <class T>
T* retain(T* object) {
    ++object->references;
    return object;
}

// The live object of a handle; null: there is none. An object's slot may hold a predefined one, whose
// handle is its constant and nothing else.
template <class T, class Handle>
[[gnu::always_inline]] inline T* find_in(const Slab<T>& slab, Handle handle) {
    T* object = slab.find(handle);
    return object != nullptr && object->valid() && object->handle == handle ? object : nullptr;
}

// One more handle for the program, to the same object.
template <class T>
auto give_handle(T* object) {
    ++object->handles;
    return retain(object)->handle;
}

// The program frees a handle: one owner less, to be told by the object's own release().
template <class T>
T* take_handle(T* object) {
    if (!object->predefined) --object->handles;
    return object;
}

// True when nobody owns the object any more; the caller then ends it.
template <class T>
[[nodiscard]] bool let_go(T* object) {
    return --object->references == 0 && !object->predefined;
}

}  // namespace gantry::mpi
