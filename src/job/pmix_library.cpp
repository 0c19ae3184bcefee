// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmix_library.hpp"

#include "base/config.hpp"
#include "base/log.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace gantry::job::pmix {
namespace {

constexpr const char* kName = "libpmix.so.2";
constexpr int kAncestors = 4;  // shells and wrappers may stand between the launcher and us

// One line of a file of /proc at a time; false at its end or when it cannot be read.
class Lines {
  public:
    explicit Lines(const std::string& path) : file_(std::fopen(path.c_str(), "re")) {}
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;
    ~Lines() {
        if (file_ != nullptr) std::fclose(file_);
    }
    bool next(std::string& line) {
        if (file_ == nullptr || std::fgets(buffer_, sizeof buffer_, file_) == nullptr) return false;
        line = buffer_;
        while (!line.empty() && line.back() == '\n')
            line.pop_back();
        return true;
    }

  private:
    std::FILE* file_;
    char buffer_[4352];
};

int parent_of(int process) {
    Lines status(fmt::format("/proc/{}/status", process));
    for (std::string line; status.next(line);) {
        int parent = 0;
        if (std::sscanf(line.c_str(), "PPid: %d", &parent) == 1) return parent;
    }
    return 0;
}

// The libpmix that this process has mapped; empty when it has none or we may not look.
std::string mapped_library(int process) {
    Lines maps(fmt::format("/proc/{}/maps", process));
    for (std::string line; maps.next(line);)
        if (const std::size_t path = line.find('/');
            path != std::string::npos && line.find("/libpmix.so.", path) != std::string::npos)
            return line.substr(path);
    return {};
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

}  // namespace

std::vector<std::string> candidates(const std::string& named) {
    if (!named.empty()) return {named};
    std::vector<std::string> paths;
    int process = getppid();
    for (int i = 0; i < kAncestors && process > 1; ++i, process = parent_of(process))
        if (std::string path = mapped_library(process); !path.empty()) {
            paths.push_back(std::move(path));
            break;
        }
    if (const auto prefix = config::environment("PMIX_PREFIX"); prefix && !prefix->empty())
        paths.push_back(fmt::format("{}/lib/{}", *prefix, kName));
    paths.emplace_back(kName);
    return paths;
}

Result<Library> load(const std::string& named) {
    std::string refusals;
    for (const std::string& path : candidates(named)) {
        void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        Library library;
        library.path = path;
        const char* missing = nullptr;
        if (loaded != nullptr) {
            Functions& call = library.call;
#define GANTRY_FIND(name) \
    if (!find(loaded, #name, call.name)) missing = #name
            GANTRY_FIND(PMIx_Init);
            GANTRY_FIND(PMIx_Finalize);
            GANTRY_FIND(PMIx_Abort);
            GANTRY_FIND(PMIx_Put);
            GANTRY_FIND(PMIx_Commit);
            GANTRY_FIND(PMIx_Fence_nb);
            GANTRY_FIND(PMIx_Get);
            GANTRY_FIND(PMIx_Error_string);
            GANTRY_FIND(PMIx_Get_version);
#undef GANTRY_FIND
            find(loaded, "PMIx_Spawn_nb", call.PMIx_Spawn_nb);
            find(loaded, "PMIx_Publish_nb", call.PMIx_Publish_nb);
            find(loaded, "PMIx_Lookup_nb", call.PMIx_Lookup_nb);
            find(loaded, "PMIx_Unpublish_nb", call.PMIx_Unpublish_nb);
            find(loaded, "PMIx_Register_event_handler", call.PMIx_Register_event_handler);
            if (missing == nullptr) {
                log::debug("job: {} is {}", path, call.PMIx_Get_version());
                return library;
            }
        }
        const char* why = loaded == nullptr ? dlerror() : missing;
        refusals += fmt::format(
            "{}{}", refusals.empty() ? "" : "; ",
            loaded == nullptr ? std::string(why) : fmt::format("{} has no {}", path, why));
    }
    return failure(MPI_ERR_OTHER,
                   "loading the PMIx library: {}. Install it (apt-get install libpmix2), or name "
                   "the launcher's own in GANTRY_PMIX_LIBRARY",
                   refusals);
}

}  // namespace gantry::job::pmix
