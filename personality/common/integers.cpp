// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_x_c2f and MPI_x_toint; what an integer is, NAME/integers.hpp says. A status is the same words in C
// and in both Fortran forms.
#include "integers.hpp"

#include "common/arguments.hpp"
#include "common/export.hpp"

namespace gantry::personality {

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

namespace {

theirs::Status ignored, all_ignored;

int copy_status(const void* from, void* to) {
    if (from == nullptr || to == nullptr || from == theirs::kStatusIgnore)
        return error(MPI_ERR_ARG);
    std::memcpy(to, from, sizeof(theirs::Status));
    return 0;
}

}  // namespace

// What Fortran ignores; programs name these variables.
GANTRY_VARIABLE(int*, f_ignore, "MPI_F_STATUS_IGNORE") = reinterpret_cast<int*>(&ignored);
GANTRY_VARIABLE(int*, f_ignore_all, "MPI_F_STATUSES_IGNORE") = reinterpret_cast<int*>(&all_ignored);

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
