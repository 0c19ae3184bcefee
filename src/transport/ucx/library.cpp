// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/library.hpp"

#include "base/log.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>

namespace gantry::transport::ucx {
namespace {

constexpr const char* kName = "libucp.so.0";
constexpr Version kOldest{1, 13, 0};

constexpr struct {
    const char* name;
    const char* value;
} kSettings[] = {
    // Signal handlers belong to the program; device memory is classified by us.
    {"UCX_HANDLE_ERRORS", "none"},
    {"UCX_MEMTYPE_CACHE", "n"},
    // What fails comes back as an MPI error, so UCX need not print it too.
    {"UCX_WARN_UNUSED_ENV_VARS", "n"},
    {"UCX_LOG_LEVEL", "fatal"},
    // An unreachable host must not block the call that connects.
    {"UCX_TCP_CONN_NB", "y"},
    // One buffer of TCP holds our largest message: one system call, and nothing to put together.
    {"UCX_TCP_TX_SEG_SIZE", "80k"},
    {"UCX_TCP_RX_SEG_SIZE", "80k"},
};

bool is_folder(const std::string& path) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

std::string file_of(const void* function) {
    Dl_info found{};
    if (dladdr(function, &found) == 0 || found.dli_fname == nullptr) return {};
    return found.dli_fname;
}

std::string parent(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

void* open_one(const std::string& place) {
    // NODELETE: UCX starts a thread and registers functions for the end of the process.
    return dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

}  // namespace

QuietStart::QuietStart(const config::Config& config) {
    const auto set = [this](const char* name, const char* value) {
        if (config::environment(name)) return;
        setenv(name, value, 1);
        ours_.push_back(name);
    };
    for (const auto& setting : kSettings) {
        const bool wants_to_see =
            std::string_view(setting.name) == "UCX_LOG_LEVEL" && log::level() >= log::Level::info;
        if (!wants_to_see) set(setting.name, setting.value);
    }
    // UCX's CUDA modules would initialise the driver and may end the process.
    if (config.gpudirect != "on") set("UCX_MODULES", "^cuda");
    // Since 1.22.
    set("UCX_TCP_USER_TIMEOUT", fmt::format("{}ms", config.peer_timeout / kMillisecond).c_str());
}

QuietStart::~QuietStart() {
    for (const char* name : ours_)
        unsetenv(name);
}

std::vector<std::string> places(const config::Config& config) {
    if (!config.ucx.empty()) return {is_folder(config.ucx) ? config.ucx + "/" + kName : config.ucx};
    std::vector<std::string> list{kName};
    // The wheel lies in site-packages/libucx/lib; an installed Gantry may lie beside it.
    const std::string site = parent(parent(parent(file_of(reinterpret_cast<void*>(&places)))));
    if (!site.empty()) list.push_back(site + "/libucx/lib/" + kName);
    for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        const auto prefix = config::environment(variable);
        if (!prefix) continue;
        for (int minor = 9; minor < 20; ++minor) {
            const std::string folder =
                fmt::format("{}/lib/python3.{}/site-packages/libucx/lib", *prefix, minor);
            if (is_folder(folder)) list.push_back(folder + "/" + kName);
        }
    }
    return list;
}

Result<std::unique_ptr<Library>> Library::load(const config::Config& config) {
    void* handle = config.ucx.empty() ? dlopen(kName, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    std::string why;
    for (const std::string& place : places(config)) {
        if (handle != nullptr) break;
        handle = open_one(place);
        if (handle == nullptr) why += fmt::format("{}{}", why.empty() ? "" : "; ", dlerror());
    }
    if (handle == nullptr)
        return failure(MPI_ERR_OTHER,
                       "the network needs UCX, which was not found ({}); install it "
                       "(`apt install libucx0`, or `pip install libucx-cu13`), or name its library "
                       "in GANTRY_UCX",
                       why);
    std::unique_ptr<Library> library(new Library);
    library->handle_ = handle;
    const char* missing = nullptr;
#define GANTRY_UCX_CALL(name)                                                         \
    library->calls_.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
    if (library->calls_.name == nullptr) missing = #name;
#include "transport/ucx/library.def"
#undef GANTRY_UCX_CALL
    if (library->calls_.ucp_get_version != nullptr) {
        Version& version = library->version_;
        library->calls_.ucp_get_version(&version.major, &version.minor, &version.release);
        library->path_ = file_of(reinterpret_cast<const void*>(library->calls_.ucp_get_version));
    }
    const Version& version = library->version_;
    if (missing != nullptr || version.major != kOldest.major || version.minor < kOldest.minor)
        return failure(MPI_ERR_OTHER,
                       "UCX {} in {} cannot be used{}{}; Gantry needs 1.{} or a later 1.x: install "
                       "one, or name its library in GANTRY_UCX",
                       version.text(), library->path_, missing != nullptr ? ": it has no " : "",
                       missing != nullptr ? missing : "", kOldest.minor);
    log::info("ucx: version {} from {}", version.text(), library->path_);
    return library;
}

void* Library::find(const char* function) const {
    return dlsym(handle_, function);  // looks in what libucp needs, too
}

Status Library::failed(std::string_view attempt, ucs_status_t status) const {
    const int error_class = status == UCS_ERR_NO_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
    return failure(error_class, "{}: UCX says '{}'", attempt, text(status));
}

}  // namespace gantry::transport::ucx
