// SPDX-License-Identifier: BSD-3-Clause
//
// A program's library path gets the folders of all personalities, whatever it is: what it starts (a
// shell its commands, Python a module) may be built for another MPI. If the program itself names an
// MPI library, the loader is asked which file that is. One that a run path of the program's puts
// elsewhere is loaded before, so that the program finds it there already.
#include "personality.hpp"

#include <elf.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

namespace gantry::mpiexec {
namespace {

namespace fs = std::filesystem;

struct Personality {
    const char* mpi;
    const char* folder;
    const char* library;
    const char* older_name = nullptr;  // of the same library
};
constexpr Personality kPersonalities[] = {
    {"MPICH, Intel MPI, MVAPICH or Cray MPICH", "mpich", "libmpi.so.12", "libmpich.so.12"},
    {"Open MPI", "openmpi", "libmpi.so.40"},
};

fs::path folder_of_personalities() {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    return self.parent_path().parent_path() / GANTRY_LIBDIR / "gantry";
}

std::string variable(const Options& options, const App& app, const char* name) {
    for (const Variables* set : {&app.variables, &options.variables})
        for (auto at = set->rbegin(); at != set->rend(); ++at)
            if (at->first == name) return at->second;
    const char* inherited = std::getenv(name);
    return inherited != nullptr ? inherited : "";
}

std::string joined(const std::string& first, const std::string& rest) {
    return first.empty() || rest.empty() ? first + rest : first + ":" + rest;
}

// The file that execvp would run; empty: there is none.
fs::path found_in_path(const std::string& program, const std::string& path) {
    if (program.find('/') != std::string::npos) return program;
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        const fs::path candidate = fs::path(path.substr(at, end - at)) / program;
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
        at = end + 1;
    }
    return {};
}

// The loader that a program of this machine's kind asks for; empty for scripts and static programs.
std::string loader_of(const fs::path& program) {
    std::ifstream file(program, std::ios::binary);
    Elf64_Ehdr head{};
    if (!file.read(reinterpret_cast<char*>(&head), sizeof head)) return {};
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
        return {};
    for (int i = 0; i < head.e_phnum; ++i) {
        Elf64_Phdr part{};
        file.seekg(static_cast<std::streamoff>(head.e_phoff) +
                   i * static_cast<std::streamoff>(sizeof part));
        if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) return {};
        if (part.p_type != PT_INTERP || part.p_filesz == 0 || part.p_filesz > 4096) continue;
        std::string name(part.p_filesz - 1, '\0');
        file.seekg(static_cast<std::streamoff>(part.p_offset));
        return file.read(name.data(), static_cast<std::streamsize>(name.size())) ? name : "";
    }
    return {};
}

std::string quoted(const std::string& word) {
    std::string result = "'";
    for (const char letter : word)
        result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    return result + "'";
}

// What the loader would load for a program, "name => file" a line, without running it.
std::string libraries_of(const std::string& loader, const fs::path& program,
                         const std::string& library_path) {
    const std::string command =
        fmt::format("LD_LIBRARY_PATH={} {} --list {} 2>/dev/null", quoted(library_path),
                    quoted(loader), quoted(program.string()));
    std::string text;
    std::FILE* said = popen(command.c_str(), "r");
    if (said == nullptr) return text;
    std::array<char, 4096> piece;
    for (std::size_t got; (got = std::fread(piece.data(), 1, piece.size(), said)) > 0;)
        text.append(piece.data(), got);
    pclose(said);
    return text;
}

// Where a program finds a library; empty: it does not want it.
std::string place_of(const std::string& libraries, const std::string& library) {
    const std::size_t at = libraries.find("\t" + library + " => ");
    if (at == std::string::npos) return {};
    const std::size_t begin = at + 1 + library.size() + std::strlen(" => ");
    const std::size_t end = std::min(libraries.find('\n', begin), libraries.find(" (0x", begin));
    return libraries.substr(begin, end - begin);
}

// Of our libraries those that the program finds under the same name in another place, by a run path.
std::string found_elsewhere(const fs::path& folder, const std::string& libraries) {
    std::string result;
    std::error_code error;
    for (const fs::directory_entry& ours : fs::directory_iterator(folder, error)) {
        const std::string place = place_of(libraries, ours.path().filename().string());
        if (!place.empty() && !fs::equivalent(place, ours.path(), error))
            result = joined(result, ours.path().string());
    }
    return result;
}

class Switch {
  public:
    Switch(Options& options, Switched& result)
        : options_(options), result_(result), base_(folder_of_personalities()) {
        for (const Personality& one : kPersonalities)
            if (fs::exists(base_ / one.folder / one.library))
                folders_ = joined(folders_, (base_ / one.folder).string());
    }
    bool has_any() const { return !folders_.empty(); }

    void look_at(App& app) {
        if (app.command.empty()) return;
        const std::size_t before = app.variables.size();
        bool wanted = !options_.wants_another_launcher();
        const std::string path = joined(folders_, variable(options_, app, "LD_LIBRARY_PATH"));
        app.variables.emplace_back("LD_LIBRARY_PATH", path);
        const fs::path program = found_in_path(app.command[0], variable(options_, app, "PATH"));
        if (program.filename().string().starts_with("python")) {
            // mpi4py looks into its environment's folders before it asks the loader.
            wanted = true;
            const std::string library = (base_ / "mpich" / "libmpi.so.12").string();
            if (variable(options_, app, "MPI4PY_LIBMPI").empty() && fs::exists(library))
                app.variables.emplace_back("MPI4PY_LIBMPI", library);
        }
        const std::string loader = loader_of(program);
        if (!loader.empty())
            wanted |= switch_over(app, program, libraries_of(loader, program, path));
        // Another launcher may start it on machines where these folders mean nothing.
        if (!wanted) app.variables.resize(before);
    }

  private:
    // Whether the program names another MPI.
    bool switch_over(App& app, const fs::path& program, const std::string& libraries) {
        const Personality* wanted = nullptr;
        for (const Personality& one : kPersonalities)
            for (const char* name : {one.library, one.older_name}) {
                const std::string place = name != nullptr ? place_of(libraries, name) : "";
                if (place.empty() || wanted == &one) continue;
                if (wanted != nullptr) {
                    result_.mistake = fmt::format(
                        "{} loads two MPI libraries, {} and {}: parts of it were built for "
                        "different MPIs",
                        program.string(), wanted->library, one.library);
                    return true;
                }
                wanted = &one;
                use(app, one, name, program, libraries);
            }
        return wanted != nullptr;
    }

    void use(App& app, const Personality& one, const char* name, const fs::path& program,
             const std::string& libraries) {
        const fs::path ours = base_ / one.folder / name;
        if (!fs::exists(ours)) {
            note(
                fmt::format("{} is built for {} ({}), which this installation has no library for: "
                            "its ranks will not find each other",
                            program.string(), one.mpi, name));
            return;
        }
        const std::string elsewhere = found_elsewhere(base_ / one.folder, libraries);
        if (!elsewhere.empty())
            app.variables.emplace_back("LD_PRELOAD",
                                       joined(elsewhere, variable(options_, app, "LD_PRELOAD")));
        note(fmt::format(
            "{} is built for {} ({}) and runs on Gantry{}", program.string(), one.mpi, name,
            elsewhere.empty() ? "" : fmt::format(", loaded before {}", place_of(libraries, name))));
    }

    void note(const std::string& line) {
        if (said_.insert(line).second) result_.notes += line + "\n";
    }

    Options& options_;
    Switched& result_;
    fs::path base_;
    std::string folders_;
    std::set<std::string> said_;
};

}  // namespace

Switched use_personalities(Options& options) {
    Switched result;
    Switch to(options, result);
    if (!to.has_any()) return result;
    for (App& app : options.apps)
        to.look_at(app);
    return result;
}

}  // namespace gantry::mpiexec
