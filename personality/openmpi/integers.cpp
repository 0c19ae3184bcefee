// SPDX-License-Identifier: BSD-3-Clause
//
// Handles as integers, for Fortran and MPI_x_toint: the standard's value of a predefined one, of
// others 4096 plus the number of the object's address. A status is the same words in C and Fortran.
#include "common/arguments.hpp"
#include "common/export.hpp"
#include "common/numbers.hpp"

namespace gantry::personality {
namespace {

constexpr std::uintptr_t kFirstObject = 4096;

template <class Handle>
int integer_of(Handle theirs) {
    const Handle ours = to<Handle>(theirs);
    const auto value = reinterpret_cast<std::uintptr_t>(ours);
    return static_cast<int>(value < kFirstObject ? value : kFirstObject + numbers::number(ours));
}
template <class Handle>
Handle handle_of(int integer) {
    const auto value = static_cast<std::uintptr_t>(integer);
    if (integer >= static_cast<int>(kFirstObject))
        return static_cast<Handle>(
            numbers::address(static_cast<std::uint32_t>(value - kFirstObject)));
    return integer > 0 && value < kPredefinedValues ? from(reinterpret_cast<Handle>(value))
                                                    : nullptr;
}

int copy_status(const void* from, void* to) {
    if (from == nullptr || to == nullptr) return error(MPI_ERR_ARG);
    std::memcpy(to, from, sizeof(theirs::Status));
    return 0;
}

}  // namespace

#define GANTRY_INTEGER(Kind, Handle)                               \
    GANTRY_EXPORT(int, Kind##_c2f, (theirs::Handle handle)) {      \
        return integer_of<MPI_##Handle>(handle);                   \
    }                                                              \
    GANTRY_EXPORT(int, Kind##_toint, (theirs::Handle handle)) {    \
        return integer_of<MPI_##Handle>(handle);                   \
    }                                                              \
    GANTRY_EXPORT(theirs::Handle, Kind##_f2c, (int integer)) {     \
        return handle_of<MPI_##Handle>(integer);                   \
    }                                                              \
    GANTRY_EXPORT(theirs::Handle, Kind##_fromint, (int integer)) { \
        return handle_of<MPI_##Handle>(integer);                   \
    }
GANTRY_INTEGER(Comm, Comm)
GANTRY_INTEGER(Errhandler, Errhandler)
GANTRY_INTEGER(File, File)
GANTRY_INTEGER(Group, Group)
GANTRY_INTEGER(Info, Info)
GANTRY_INTEGER(Message, Message)
GANTRY_INTEGER(Op, Op)
GANTRY_INTEGER(Request, Request)
GANTRY_INTEGER(Session, Session)
GANTRY_INTEGER(Type, Datatype)
GANTRY_INTEGER(Win, Win)
#undef GANTRY_INTEGER

#define GANTRY_STATUS(name)                                           \
    GANTRY_EXPORT(int, Status_##name, (const void* from, void* to)) { \
        return copy_status(from, to);                                 \
    }
GANTRY_STATUS(c2f)
GANTRY_STATUS(f2c)
GANTRY_STATUS(c2f08)
GANTRY_STATUS(f082c)
GANTRY_STATUS(f2f08)
GANTRY_STATUS(f082f)
#undef GANTRY_STATUS

}  // namespace gantry::personality
