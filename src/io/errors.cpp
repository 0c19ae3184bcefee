// SPDX-License-Identifier: BSD-3-Clause
#include "io/errors.hpp"

#include <cerrno>
#include <cstring>

namespace gantry::io {
namespace {

struct Row {
    int error, error_class;
    const char* help;  // null: nothing that we could say
};

constexpr Row kRows[] = {
    {ENOENT, MPI_ERR_NO_SUCH_FILE, "MPI_MODE_CREATE makes a file, but no folder"},
    {EEXIST, MPI_ERR_FILE_EXISTS, "MPI_MODE_EXCL wants that there is none"},
    {EACCES, MPI_ERR_ACCESS, nullptr},
    {EPERM, MPI_ERR_ACCESS, nullptr},
    {EROFS, MPI_ERR_READ_ONLY, "open it with MPI_MODE_RDONLY"},
    {ENOSPC, MPI_ERR_NO_SPACE, nullptr},
    {EDQUOT, MPI_ERR_QUOTA, nullptr},
    {EFBIG, MPI_ERR_NO_SPACE,
     "files of this file system, or of this process (ulimit -f), end before"},
    {ETXTBSY, MPI_ERR_FILE_IN_USE, nullptr},
    {EBUSY, MPI_ERR_FILE_IN_USE, nullptr},
    {EISDIR, MPI_ERR_BAD_FILE, "it is a folder"},
    {ENOTDIR, MPI_ERR_BAD_FILE, nullptr},
    {ENAMETOOLONG, MPI_ERR_BAD_FILE, nullptr},
    {ELOOP, MPI_ERR_BAD_FILE, nullptr},
    {EINVAL, MPI_ERR_IO, nullptr},
    {ENOMEM, MPI_ERR_NO_MEM, nullptr},
    {EOPNOTSUPP, MPI_ERR_UNSUPPORTED_OPERATION, "the file system does not do this"},
    {ENOLCK, MPI_ERR_IO, "atomic mode and sieved writes need a file system with locks"},
};

const Row* row_of(int error) {
    for (const Row& row : kRows)
        if (row.error == error) return &row;
    return nullptr;
}

}  // namespace

int class_of_errno(int error) {
    const Row* row = row_of(error);
    return row != nullptr ? row->error_class : MPI_ERR_IO;
}

std::string words_of_errno(int error) {
    const char* name = strerrorname_np(error);
    const char* text = strerrordesc_np(error);
    if (name == nullptr || text == nullptr) return fmt::format("error {} of the system", error);
    return fmt::format("{} ({})", text, name);
}

Status refused(std::string_view what, std::int64_t returned) {
    const int error = static_cast<int>(-returned);
    const Row* row = row_of(error);
    const char* help = row != nullptr ? row->help : nullptr;
    return failure(class_of_errno(error), "{}: {}{}{}", what, words_of_errno(error),
                   help != nullptr ? "; " : "", help != nullptr ? help : "");
}

}  // namespace gantry::io
