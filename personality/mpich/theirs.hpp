// SPDX-License-Identifier: BSD-3-Clause
//
// The types of the MPICH ABI and how its handles are read. A handle is a 32-bit integer whose upper
// bits say what it is:
//
//     31 30     kind: 01 predefined, 10 predefined pair types, 00 null, 11 ours: an object of the program
//     29..26    what it is a handle to: communicator 1, group 2, datatype 3, ...
//     25..0     of ours: the number of the object's address (common/numbers.hpp)
//
// Files are pointers; ours pass as they are.
#pragma once

#include "common/numbers.hpp"
#include "handles.hpp"

#include <mpi.h>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace gantry::personality {

namespace theirs {

using Comm = int;
using Group = int;
using Datatype = int;
using Op = int;
using Errhandler = int;
using Info = int;
using Win = int;
using Session = int;
using Request = int;
using Message = int;
using File = MPI_File;

// The bits of a 64-bit count, and in the lowest of the upper word whether the operation was
// cancelled.
struct Status {
    int count_low;
    int count_high_and_cancelled;
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
};
inline Status* const kStatusIgnore = reinterpret_cast<Status*>(1);

inline void* const kInPlace = reinterpret_cast<void*>(-1);
inline void* const kAutomatic = reinterpret_cast<void*>(-2);
inline constexpr std::uintptr_t kFirstMarker = static_cast<std::uintptr_t>(-2);

template <class Handle>
struct Integer {
    using type = int;
};
template <>
struct Integer<MPI_File> {
    using type = MPI_File;
};

}  // namespace theirs

template <class Handle>
using Their = typename theirs::Integer<Handle>::type;

template <class Handle>
inline constexpr unsigned kObjectKind = 0;
template <>
inline constexpr unsigned kObjectKind<MPI_Comm> = 1;
template <>
inline constexpr unsigned kObjectKind<MPI_Group> = 2;
template <>
inline constexpr unsigned kObjectKind<MPI_Datatype> = 3;
template <>
inline constexpr unsigned kObjectKind<MPI_Errhandler> = 5;
template <>
inline constexpr unsigned kObjectKind<MPI_Op> = 6;
template <>
inline constexpr unsigned kObjectKind<MPI_Info> = 7;
template <>
inline constexpr unsigned kObjectKind<MPI_Win> = 8;
template <>
inline constexpr unsigned kObjectKind<MPI_Request> = 11;
template <>
inline constexpr unsigned kObjectKind<MPI_Message> = 11;
template <>
inline constexpr unsigned kObjectKind<MPI_Session> = 14;

// The first handle of an object of the program.
template <class Handle>
inline constexpr unsigned kOursOf = 0xc0000000 + (kObjectKind<Handle> << 26);
static_assert(numbers::kBits == 26);
inline constexpr unsigned kTheirWorld = 0x44000000;

namespace detail {

// Predefined handles by their seven lower and two upper bits, which no two of a kind share.
constexpr unsigned place(unsigned handle) {
    return std::rotl(handle, 2) & 0x1ff;
}
template <class Handle>
struct ByPlace {
    PredefinedHandle rows[512] = {};
    constexpr ByPlace() {
        for (const PredefinedHandle& row : Predefined<Handle>::rows)
            rows[place(row.theirs)] = row;
    }
};
template <class Handle>
inline constexpr ByPlace<Handle> kByPlace;

// The other way: by the standard's value; the values of all types differ.
struct ByValue {
    int theirs[1024] = {};
    template <class Handle>
    constexpr void add() {
        for (const PredefinedHandle& row : Predefined<Handle>::rows)
            theirs[row.ours] = static_cast<int>(row.theirs);
    }
    constexpr ByValue() {
        add<MPI_Comm>();
        add<MPI_Group>();
        add<MPI_Datatype>();
        add<MPI_Errhandler>();
        add<MPI_Op>();
        add<MPI_Info>();
        add<MPI_Win>();
        add<MPI_Session>();
        add<MPI_Request>();
        add<MPI_Message>();
    }
};
inline constexpr ByValue kByValue;

}  // namespace detail

// A handle that is none becomes null, which no call takes.
template <class Handle>
inline Handle to(Their<Handle> theirs) {
    if constexpr (sizeof(theirs) == sizeof(Handle)) {
        return theirs == nullptr ? MPI_FILE_NULL : theirs;
    } else {
        const auto bits = static_cast<unsigned>(theirs);
        const auto predefined = [bits]() -> const PredefinedHandle* {
            const PredefinedHandle& row = detail::kByPlace<Handle>.rows[detail::place(bits)];
            return row.theirs == bits ? &row : nullptr;
        };
        const auto ours = [](const PredefinedHandle* row) {
            return row == nullptr ? nullptr : reinterpret_cast<Handle>(std::uintptr_t{row->ours});
        };
        // What comes most often is asked first.
        if constexpr (std::is_same_v<Handle, MPI_Comm>)
            if (bits == kTheirWorld) return MPI_COMM_WORLD;
        if constexpr (std::is_same_v<Handle, MPI_Datatype> || std::is_same_v<Handle, MPI_Op>)
            if (const PredefinedHandle* row = predefined(); row != nullptr) [[likely]]
                return ours(row);
        if (const unsigned number = bits - kOursOf<Handle>; number < numbers::kSeen)
            return reinterpret_cast<Handle>(numbers::near_address(number));
        else if (number < 2 * numbers::kSeen)
            return reinterpret_cast<Handle>(numbers::seen_address(number - numbers::kSeen));
        return ours(predefined());
    }
}

template <class Handle>
inline Their<Handle> from(Handle ours) {
    if constexpr (sizeof(Their<Handle>) == sizeof(Handle)) {
        return ours == MPI_FILE_NULL ? nullptr : ours;
    } else {
        const auto value = reinterpret_cast<std::uintptr_t>(ours);
        if (value < std::size(detail::kByValue.theirs)) return detail::kByValue.theirs[value];
        return static_cast<int>(kOursOf<Handle> + numbers::number(ours));
    }
}

template <class Handle>
[[gnu::noinline]] void give_other(Handle ours, Their<Handle>* place) {
    if (ours != nullptr) *place = from(ours);
}
// What a call made; null: nothing.
template <class Handle>
inline void give_handle(Handle ours, Their<Handle>* place) {
    if constexpr (sizeof(Their<Handle>) != sizeof(Handle))
        if (const std::uintptr_t distance = numbers::distance(ours); distance < numbers::kNear) {
            *place = static_cast<int>(kOursOf<Handle> + static_cast<unsigned>(distance / 8));
            return;
        }
    give_other(ours, place);
}

// These variables have the standard's values (variables.cpp).
template <class Weights>
inline Weights weights_of(Weights theirs) {
    return theirs;
}
inline MPI_T_pvar_handle variable_of(MPI_T_pvar_handle theirs) {
    return theirs;
}

// What a receive tells, both ways. MPI_ERROR is the caller's (common/arguments.hpp).
inline void status_from(const MPI_Status& ours, theirs::Status& theirs) {
    const auto* words = ours.MPI_internal;
    theirs.count_low = words[0];
    theirs.count_high_and_cancelled =
        static_cast<int>(static_cast<unsigned>(words[1]) << 1 | (words[2] != 0 ? 1u : 0u));
}
inline void status_to(const theirs::Status& theirs, MPI_Status& ours) {
    const auto high = static_cast<unsigned>(theirs.count_high_and_cancelled);
    ours.MPI_internal[0] = theirs.count_low;
    ours.MPI_internal[1] = static_cast<int>(high >> 1);
    ours.MPI_internal[2] = static_cast<int>(high & 1);
}

}  // namespace gantry::personality
