// SPDX-License-Identifier: BSD-3-Clause
//
// Direct storage (GPUDirect Storage) of one file: it wants a descriptor of its own, open with O_DIRECT. The
// library is looked for when device memory is first read or written, and the file's answer is kept.
#include "base/log.hpp"
#include "io/file.hpp"

#include <fcntl.h>

namespace gantry::io {
namespace {

constexpr const char* kLibrary = "libcufile.so.0";

Status refused_here() {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "the file is not reached by GPUDirect Storage");
}

}  // namespace

device::DirectStorage* Files::direct_storage() {
    if (std::exchange(storage_asked_, true)) return storage_.get();
    Result<std::unique_ptr<device::DirectStorage>> opened = device::open_direct_storage(kLibrary);
    if (opened.ok())
        storage_ = std::move(*opened);
    else
        log::info("io: no GPUDirect Storage: {}", opened.status().text());
    return storage_.get();
}

Task<Status> File::find_storage(Executor& executor) {
    device::DirectStorage* const storage = files.direct_storage();
    if (storage_handle_ != nullptr) co_return success();
    if (storage == nullptr || std::exchange(storage_asked_, true)) co_return refused_here();
    const int access = (mode & MPI_MODE_RDWR) != 0     ? O_RDWR
                       : (mode & MPI_MODE_WRONLY) != 0 ? O_WRONLY
                                                       : O_RDONLY;
    std::int64_t returned = 0;
    Status asked = co_await files.backend().call(
        executor,
        [this, storage, access](System& system) -> std::int64_t {
            storage_file_ = system.open(path.c_str(), access | O_DIRECT, 0);
            if (storage_file_ < 0) return storage_file_;
            Result<void*> added = storage->add(storage_file_);
            if (!added.ok()) {
                log::info("io: \"{}\": {}", path, added.status().text());
                system.close(std::exchange(storage_file_, -1));
                return -1;
            }
            storage_handle_ = *added;
            return 0;
        },
        &returned);
    GANTRY_CO_TRY(asked);
    if (returned < 0) co_return refused_here();
    co_return success();
}

void File::close_storage(System& system) {
    if (storage_handle_ != nullptr)
        files.direct_storage()->remove(std::exchange(storage_handle_, nullptr));
    if (storage_file_ >= 0) system.close(std::exchange(storage_file_, -1));
}

}  // namespace gantry::io
