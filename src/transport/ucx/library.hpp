// SPDX-License-Identifier: BSD-3-Clause
//
// UCX as it is found on this machine: libucp, loaded at run time and never linked.
// Compiled against the headers of 1.13; every function used here is in all releases since.
//
// Looked for: GANTRY_UCX (a library or its folder), a UCX that is in the process already, the
// loader's own search, and the PyPI wheel libucx-cu13 beside us or in the active virtual
// environment. While it loads and starts, UCX reads its UCX_* variables; ours are set around that
// and the program's put back (they would else reach its child processes).
#pragma once

#include "base/config.hpp"

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <vector>

namespace gantry::transport::ucx {

// The functions that Gantry calls.
struct Calls {
#define GANTRY_UCX_CALL(name) decltype(&::name) name = nullptr;
#include "transport/ucx/library.def"
#undef GANTRY_UCX_CALL
};

struct Version {
    unsigned major = 0, minor = 0, release = 0;
    // Releases of one minor number understand each other; others do not: keys are refused, shared
    // memory hangs.
    bool speaks_with(const Version& other) const {
        return major == other.major && minor == other.minor;
    }
    std::string text() const { return fmt::format("{}.{}.{}", major, minor, release); }
};

class Library {
  public:
    static Result<std::unique_ptr<Library>> load(const config::Config& config);
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    const Calls* operator->() const { return &calls_; }
    const Version& version() const { return version_; }
    const std::string& path() const { return path_; }
    // A function that not every UCX has; null when this one has not.
    void* find(const char* function) const;
    std::string text(ucs_status_t status) const { return calls_.ucs_status_string(status); }
    // An MPI error with what UCX said.
    Status failed(std::string_view attempt, ucs_status_t status) const;

  private:
    Library() = default;
    void* handle_ = nullptr;
    Calls calls_;
    Version version_;
    std::string path_;
};

// Variables of UCX that hold while it loads and opens its workers. What the user has set stays.
// Transports' settings go this way too: 1.13 takes them from nowhere else.
class QuietStart {
  public:
    explicit QuietStart(const config::Config& config);
    ~QuietStart();
    QuietStart(const QuietStart&) = delete;
    QuietStart& operator=(const QuietStart&) = delete;

  private:
    std::vector<const char*> ours_;
};

// Where a library may be, in the order of trying; names without a slash are the loader's to find.
std::vector<std::string> places(const config::Config& config);

}  // namespace gantry::transport::ucx
