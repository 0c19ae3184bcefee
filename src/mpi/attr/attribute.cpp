// SPDX-License-Identifier: BSD-3-Clause
//
// Attributes: setting, removing, copying, with the program's callbacks.
#include "mpi/attr/attribute.hpp"

#include "mpi/engine/boundary.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

// The callback types differ only in the type of the handle.
template <class Handle>
using CopyFunction = int(Handle, int, void*, void*, void*, int*);
template <class Handle>
using DeleteFunction = int(Handle, int, void*, void*);

using Opaque = void (*)();
const Opaque kDuplicate = reinterpret_cast<Opaque>(std::uintptr_t{1});

template <class Handle>
Status call_delete(Handle owner, const Attribute& attribute) {
    const Keyval& keyval = *attribute.keyval;
    if (keyval.remove == nullptr) return success();
    auto* function = reinterpret_cast<DeleteFunction<Handle>*>(keyval.remove);
    const LetOthersIn program;
    const int code = function(owner, keyval.number, attribute.value, keyval.extra_state);
    if (code == MPI_SUCCESS) return success();
    return failure(code, "the delete function of attribute key {} returned {}", keyval.number,
                   code);
}

}  // namespace

const Attribute* Attributes::find(int keyval) const {
    for (const Attribute& attribute : set_)
        if (attribute.keyval->number == keyval) return &attribute;
    return nullptr;
}

template <class Handle>
Status Attributes::set(Handle owner, const std::shared_ptr<Keyval>& keyval, void* value) {
    // By value, and looked for again: the callback may set or remove any, this one too.
    if (const Attribute* old = find(keyval->number)) {
        const Attribute attribute = *old;
        GANTRY_TRY(call_delete(owner, attribute));
    }
    const auto found = std::find_if(set_.begin(), set_.end(),
                                    [&](const Attribute& a) { return a.keyval == keyval; });
    if (found != set_.end())
        found->value = value;
    else
        set_.push_back({keyval, value});
    return success();
}

template <class Handle>
Status Attributes::remove(Handle owner, int keyval) {
    const auto found = std::find_if(set_.begin(), set_.end(), [keyval](const Attribute& a) {
        return a.keyval->number == keyval;
    });
    if (found == set_.end())
        return failure(MPI_ERR_KEYVAL, "attribute key {} is not set on this object", keyval);
    // By value: the callback may set or remove others.
    const Attribute attribute = *found;
    GANTRY_TRY(call_delete(owner, attribute));
    std::erase_if(set_, [keyval](const Attribute& a) { return a.keyval->number == keyval; });
    return success();
}

template <class Handle>
Status Attributes::remove_all(Handle owner) {
    while (!set_.empty()) {
        const Attribute attribute = set_.back();
        GANTRY_TRY(call_delete(owner, attribute));
        std::erase_if(set_, [&](const Attribute& a) { return a.keyval == attribute.keyval; });
    }
    return success();
}

template <class Handle>
Status Attributes::copy_to(Handle owner, Attributes& target) const {
    // By value: a callback may change this object's attributes.
    const std::vector<Attribute> all = set_;
    for (const Attribute& attribute : all) {
        const Keyval& keyval = *attribute.keyval;
        if (keyval.copy == nullptr) continue;
        void* value = attribute.value;
        int flag = 1;
        if (keyval.copy != kDuplicate) {
            flag = 0;
            auto* function = reinterpret_cast<CopyFunction<Handle>*>(keyval.copy);
            const int code = [&] {
                const LetOthersIn program;
                return function(owner, keyval.number, keyval.extra_state, attribute.value, &value,
                                &flag);
            }();
            if (code != MPI_SUCCESS)
                return failure(code, "the copy function of attribute key {} returned {}",
                               keyval.number, code);
        }
        if (flag != 0) target.set_.push_back({attribute.keyval, value});
    }
    return success();
}

#define GANTRY_ATTRIBUTES_OF(Handle)                                                \
    template Status Attributes::set(Handle, const std::shared_ptr<Keyval>&, void*); \
    template Status Attributes::remove(Handle, int);                                \
    template Status Attributes::remove_all(Handle);                                 \
    template Status Attributes::copy_to(Handle, Attributes&) const;
GANTRY_ATTRIBUTES_OF(MPI_Comm)
GANTRY_ATTRIBUTES_OF(MPI_Datatype)
GANTRY_ATTRIBUTES_OF(MPI_Win)
#undef GANTRY_ATTRIBUTES_OF

int Keyvals::create(KeyvalScope scope, void (*copy)(), void (*remove)(), void* extra_state) {
    const int number = next_++;
    keyvals_[number] =
        std::make_shared<Keyval>(Keyval{scope, number, copy, remove, extra_state, false});
    return number;
}

std::shared_ptr<Keyval> Keyvals::find(KeyvalScope scope, int number) {
    const auto found = keyvals_.find(number);
    if (found == keyvals_.end() || found->second->scope != scope) return nullptr;
    if (found->second->freed && found->second.use_count() == 1) {
        keyvals_.erase(found);  // the last attribute is gone
        return nullptr;
    }
    return found->second;
}

void Keyvals::free(int number) {
    keyvals_.at(number)->freed = true;
}

}  // namespace gantry::mpi
