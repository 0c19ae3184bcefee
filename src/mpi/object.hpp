// SPDX-License-Identifier: BSD-3-Clause
//
// What every object behind a handle has: the handle itself and a count of its owners. The program is one owner until it frees its handle;
// communications in flight and other objects are more. `valid` turns false when the program's last handle is gone, so that a stale
// handle is refused although the object still serves a message.
#pragma once

#include "base/slab.hpp"

namespace gantry::mpi {

template <class Handle>
struct Object {
    Handle handle{};
    int references = 1;
    bool valid = true;
    bool predefined = false;
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

// True when nobody owns the object any more; the caller then ends it.
template <class T>
[[nodiscard]] bool let_go(T* object) {
    return --object->references == 0 && !object->predefined;
}

}  // namespace gantry::mpi
