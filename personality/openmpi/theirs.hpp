// SPDX-License-Identifier: BSD-3-Clause
//
// The types of Open MPI's ABI and how its handles are read. A handle is a pointer: of a predefined
// object to something that this library exports, which begins with a mark and the standard's handle;
// of an object of the program to what the standard's handle points to, which passes as it is.
#pragma once

#include "common/export.hpp"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gantry::personality {

namespace theirs {

using Comm = MPI_Comm;
using Group = MPI_Group;
using Datatype = MPI_Datatype;
using Op = MPI_Op;
using Errhandler = MPI_Errhandler;
using Info = MPI_Info;
using Win = MPI_Win;
using Session = MPI_Session;
using Request = MPI_Request;
using Message = MPI_Message;
using File = MPI_File;

struct Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int cancelled;
    std::size_t bytes;
};
inline Status* const kStatusIgnore = nullptr;

// The same as the standard's; an address that nothing has.
inline void* const kInPlace = MPI_IN_PLACE;
inline void* const kAutomatic = MPI_BUFFER_AUTOMATIC;
inline constexpr std::uintptr_t kFirstMarker = UINTPTR_MAX;

// What a predefined object begins with. No object of the library does: those begin with their own
// address.
inline constexpr std::uint64_t kMark = 0x9d1f5be24c07a683;
struct Predefined {
    std::uint64_t mark;
    std::uintptr_t ours;
};

}  // namespace theirs

template <class Handle>
using Their = Handle;

inline constexpr std::uintptr_t kPredefinedValues = 1024;
// The exported objects by the standard's value.
GANTRY_HIDDEN extern const std::array<void*, kPredefinedValues> predefined_objects;

template <class Handle>
inline Handle to(Their<Handle> theirs) {
    if (theirs == nullptr) return nullptr;
    const auto* object = reinterpret_cast<const theirs::Predefined*>(theirs);
    return object->mark == theirs::kMark ? reinterpret_cast<Handle>(object->ours) : theirs;
}

template <class Handle>
inline Their<Handle> from(Handle ours) {
    const auto value = reinterpret_cast<std::uintptr_t>(ours);
    return value < kPredefinedValues ? static_cast<Handle>(predefined_objects[value]) : ours;
}

// What a call made; null: nothing.
template <class Handle>
inline void give_handle(Handle ours, Their<Handle>* place) {
    if (ours != nullptr) *place = from(ours);
}

// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY.
template <class Weights>
inline Weights weights_of(Weights theirs) {
    const auto value = reinterpret_cast<std::uintptr_t>(theirs);
    if (value == 2) return const_cast<Weights>(MPI_UNWEIGHTED);
    return value == 3 ? const_cast<Weights>(MPI_WEIGHTS_EMPTY) : theirs;
}
inline MPI_T_pvar_handle variable_of(MPI_T_pvar_handle theirs) {
    return reinterpret_cast<std::intptr_t>(theirs) == -1 ? MPI_T_PVAR_ALL_HANDLES : theirs;
}

// What a receive tells, both ways. MPI_ERROR is the caller's (common/arguments.hpp).
inline void status_from(const MPI_Status& ours, theirs::Status& theirs) {
    const auto low = static_cast<unsigned>(ours.MPI_internal[0]);
    const auto high = static_cast<unsigned>(ours.MPI_internal[1]);
    theirs.bytes = std::size_t{high} << 32 | low;
    theirs.cancelled = ours.MPI_internal[2] != 0 ? 1 : 0;
}
inline void status_to(const theirs::Status& theirs, MPI_Status& ours) {
    ours.MPI_internal[0] = static_cast<int>(theirs.bytes & 0xffffffff);
    ours.MPI_internal[1] = static_cast<int>(theirs.bytes >> 32);
    ours.MPI_internal[2] = theirs.cancelled;
}

}  // namespace gantry::personality
