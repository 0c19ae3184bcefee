// SPDX-License-Identifier: BSD-3-Clause
//
// Attribute caching (MPI 5.0 section 7.7) for communicators, datatypes and windows: one
// implementation, three kinds of callbacks. The predefined callbacks are the values 0 and 1 and are
// tested for before a call.
#pragma once

#include "base/status.hpp"
#include "mpi/engine/handles.hpp"

#include <map>
#include <memory>
#include <vector>

namespace gantry::mpi {

enum class KeyvalScope { comm, type, win };

struct Keyval {
    KeyvalScope scope;
    int number;
    // As the program gave them; the scope says which type they have.
    void (*copy)();
    void (*remove)();
    void* extra_state;
    bool freed = false;
};

struct Attribute {
    std::shared_ptr<Keyval> keyval;
    void* value;
};

// The attributes of one object, in the order in which they were set.
class Attributes {
  public:
    // Null when not set.
    const Attribute* find(int keyval) const;
    // Replaces (the delete callback runs first) or adds.
    template <class Handle>
    Status set(Handle owner, const std::shared_ptr<Keyval>& keyval, void* value);
    template <class Handle>
    Status remove(Handle owner, int keyval);
    // Latest first; stops at the first callback that fails.
    template <class Handle>
    Status remove_all(Handle owner);
    // What MPI_x_dup gives the new object, by each copy callback.
    template <class Handle>
    Status copy_to(Handle owner, Attributes& target) const;
    bool empty() const { return set_.empty(); }

  private:
    std::vector<Attribute> set_;
};

// All keyvals of the process.
class Keyvals {
  public:
    int create(KeyvalScope scope, void (*copy)(), void (*remove)(), void* extra_state);
    std::shared_ptr<Keyval> find(KeyvalScope scope, int number);
    // A freed keyval can still be named while attributes hang on it (MPI 5.0 section 7.7.2).
    void free(int number);

  private:
    std::map<int, std::shared_ptr<Keyval>> keyvals_;
    int next_ = 4096;  // above every predefined key
};

}  // namespace gantry::mpi
