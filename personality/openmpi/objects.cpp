// SPDX-License-Identifier: BSD-3-Clause
//
// The objects whose addresses are Open MPI's predefined handles. A program that is not
// position-independent holds copies of those it names, and then the copy's address is the handle in
// the whole process: it is asked of the loader, in predefined_objects, too.
#include "theirs.hpp"

namespace gantry::personality {

template <std::size_t kBytes>
struct alignas(16) Object {
    theirs::Predefined begin;
    char rest[kBytes - sizeof(theirs::Predefined)];
};

extern "C" {
#define X(symbol, bytes, ours)                                  \
    extern Object<bytes> symbol [[gnu::visibility("default")]]; \
    Object<bytes> symbol = {{theirs::kMark, ours}, {}};
#include "predefined.def"
#undef X
}

namespace {

struct Place {
    std::uintptr_t value;
    void* object;
};
constexpr std::array<void*, kPredefinedValues> by_value() {
    constexpr Place places[] = {
#define X(symbol, bytes, ours) {ours, &symbol},
#include "predefined.def"
#undef X
    };
    std::array<void*, kPredefinedValues> result{};
    // Of two objects for one handle the first counts.
    for (const Place& place : places)
        if (place.value != 0 && result[place.value] == nullptr) result[place.value] = place.object;
    return result;
}

}  // namespace

constinit const std::array<void*, kPredefinedValues> predefined_objects = by_value();

}  // namespace gantry::personality
