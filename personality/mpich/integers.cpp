// SPDX-License-Identifier: BSD-3-Clause
//
// Handles as integers: they are integers, but for files, which have numbers as other ABIs' handles do
// (common/numbers.hpp). A status is the same words in C and in both Fortran forms.
#include "common/arguments.hpp"
#include "common/export.hpp"

namespace gantry::personality {

#define GANTRY_INTEGER(Kind, Handle)                              \
    GANTRY_EXPORT(int, Kind##_c2f, (theirs::Handle handle)) {     \
        return handle;                                            \
    }                                                             \
    GANTRY_EXPORT(theirs::Handle, Kind##_f2c, (int handle)) {     \
        return handle;                                            \
    }                                                             \
    GANTRY_EXPORT(int, Kind##_toint, (theirs::Handle handle)) {   \
        return handle;                                            \
    }                                                             \
    GANTRY_EXPORT(theirs::Handle, Kind##_fromint, (int handle)) { \
        return handle;                                            \
    }
GANTRY_INTEGER(Comm, Comm)
GANTRY_INTEGER(Errhandler, Errhandler)
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

// 0 is MPI_FILE_NULL.
int number_of(theirs::File file) {
    return file == nullptr ? 0 : static_cast<int>(numbers::number(file)) + 1;
}
theirs::File file_of(int number) {
    if (number <= 0) return nullptr;
    void* address = numbers::address(static_cast<unsigned>(number - 1));
    return static_cast<theirs::File>(address);
}

int copy_status(const void* from, void* to) {
    if (from == nullptr || to == nullptr || from == theirs::kStatusIgnore)
        return error(MPI_ERR_ARG);
    std::memcpy(to, from, sizeof(theirs::Status));
    return 0;
}

}  // namespace

GANTRY_EXPORT(int, File_c2f, (theirs::File file)) {
    return number_of(file);
}
GANTRY_EXPORT(theirs::File, File_f2c, (int file)) {
    return file_of(file);
}
GANTRY_EXPORT(int, File_toint, (theirs::File file)) {
    return number_of(file);
}
GANTRY_EXPORT(theirs::File, File_fromint, (int file)) {
    return file_of(file);
}

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
