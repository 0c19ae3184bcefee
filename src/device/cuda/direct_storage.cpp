// SPDX-License-Identifier: BSD-3-Clause
//
// GPUDirect Storage by libcufile, found at run time. The library stays loaded and its driver open: other
// parts of the program may use it as well.
#include "device/direct_storage.hpp"

#include "device/cuda/cufile_abi.h"

#include <fmt/format.h>

#include <dlfcn.h>

#include <cerrno>

namespace gantry::device {
namespace {

class CufileStorage final : public DirectStorage {
  public:
    Status load(const std::string& name) {
        void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "there is no {}", name);
        PFN_cuFileDriverOpen open = nullptr;
        PFN_cuFileDriverGetProperties properties = nullptr;
        const bool whole = find(library, "cuFileDriverOpen", open) &&
                           find(library, "cuFileDriverGetProperties", properties) &&
                           find(library, "cuFileHandleRegister", register_) &&
                           find(library, "cuFileHandleDeregister", deregister_) &&
                           find(library, "cuFileRead", read_) &&
                           find(library, "cuFileWrite", write_);
        if (!whole)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} lacks functions of cuFile", name);
        // The program may have opened it for itself.
        if (const CufileError error = open(); error.error != 0 && error.error != kCufileAlreadyOpen)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "cuFileDriverOpen: error {}",
                           error.error);
        CufileProperties facts;
        if (const CufileError error = properties(&facts); error.error != 0)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "cuFileDriverGetProperties: error {}",
                           error.error);
        if (facts.kernel_module_major == 0 && (facts.supported >> kCufileNvmeByPci & 1) == 0)
            return failure(
                MPI_ERR_UNSUPPORTED_OPERATION,
                "the kernel module nvidia-fs is not loaded, and the kernel itself copies "
                "nothing between NVMe and GPUs: {} would copy through host memory",
                name);
        return success();
    }

    Result<void*> add(int file) override {
        CufileDescription description;
        description.handle.file = file;
        void* handle = nullptr;
        if (const CufileError error = register_(&handle, &description); error.error != 0)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "cuFileHandleRegister: error {}",
                           error.error);
        return handle;
    }
    void remove(void* handle) override { deregister_(handle); }
    std::int64_t read(void* handle, void* memory, Bytes bytes, std::int64_t offset) override {
        errno = 0;
        return or_error(read_(handle, memory, bytes, offset, 0));
    }
    std::int64_t write(void* handle, const void* memory, Bytes bytes,
                       std::int64_t offset) override {
        errno = 0;
        return or_error(write_(handle, memory, bytes, offset, 0));
    }

  private:
    template <class Function>
    static bool find(void* library, const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        return function != nullptr;
    }
    // -1: errno has the error of the system; below: cuFile's own.
    static std::int64_t or_error(ssize_t returned) {
        if (returned >= 0) return returned;
        return returned == -1 && errno != 0 ? -errno : -EIO;
    }

    PFN_cuFileHandleRegister register_ = nullptr;
    PFN_cuFileHandleDeregister deregister_ = nullptr;
    PFN_cuFileRead read_ = nullptr;
    PFN_cuFileWrite write_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<DirectStorage>> open_direct_storage(const std::string& name) {
    auto storage = std::make_unique<CufileStorage>();
    GANTRY_TRY(storage->load(name));
    return std::unique_ptr<DirectStorage>(std::move(storage));
}

}  // namespace gantry::device
