// SPDX-License-Identifier: BSD-3-Clause
#include "twins.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

namespace simgpu {
namespace {

std::map<std::string, simgpu_twin, std::less<>>& table() {
    static auto* twins = new std::map<std::string, simgpu_twin, std::less<>>;
    return *twins;
}

bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

std::string_view word_at(std::string_view text, std::size_t* at) {
    while (*at < text.size() && std::isspace(static_cast<unsigned char>(text[*at]))) {
        ++*at;
    }
    const std::size_t start = *at;
    while (*at < text.size() && is_name(text[*at])) {
        ++*at;
    }
    return text.substr(start, *at - start);
}

std::size_t number_before(std::string_view text, char close) {
    const std::size_t end = text.rfind(close);
    std::size_t start = end;
    while (start > 0 && std::isdigit(static_cast<unsigned char>(text[start - 1]))) {
        --start;
    }
    return strtoull(std::string(text.substr(start, end - start)).c_str(), nullptr, 10);
}

// ".param .u64 name" or ".param .align 8 .b8 name[24]"
std::size_t parameter_bytes(std::string_view declaration) {
    std::size_t element = 0;
    for (const char* type : {".u64", ".s64", ".b64", ".f64"}) {
        element = declaration.find(type) != std::string_view::npos ? 8 : element;
    }
    for (const char* type : {".u32", ".s32", ".b32", ".f32"}) {
        element = declaration.find(type) != std::string_view::npos ? 4 : element;
    }
    for (const char* type : {".u16", ".s16", ".b16", ".f16"}) {
        element = declaration.find(type) != std::string_view::npos ? 2 : element;
    }
    for (const char* type : {".u8", ".s8", ".b8"}) {
        element = declaration.find(type) != std::string_view::npos ? 1 : element;
    }
    const bool array = declaration.find('[') != std::string_view::npos;
    return array ? element * number_before(declaration, ']') : element;
}

void load(const std::string& path) {
    void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) {
        fprintf(stderr, "simgpu: kernel twins %s cannot be loaded: %s\n", path.c_str(), dlerror());
        return;
    }
    using Register = void (*)(simgpu_add_twin);
    if (auto* all = reinterpret_cast<Register>(dlsym(object, "simgpu_twins"))) {
        all(&add_twin);
    } else {
        fprintf(stderr, "simgpu: %s exports no simgpu_twins\n", path.c_str());
    }
}

std::vector<std::string> twins_beside_this_library() {
    std::vector<std::string> found;
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&add_twin), &self) == 0 || self.dli_fname == nullptr) {
        return found;
    }
    std::string folder = self.dli_fname;
    folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
    DIR* directory = opendir(folder.empty() ? "." : folder.c_str());
    if (directory == nullptr) {
        return found;
    }
    while (const dirent* item = readdir(directory)) {
        const std::string_view name = item->d_name;
        if (name.ends_with(".twins.so")) {
            found.push_back(folder + std::string(name));
        }
    }
    closedir(directory);
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

bool looks_like_ptx(const char* image) {
    // A comment or a blank may come first; an ELF or a fat binary starts with other bytes.
    const unsigned char first = static_cast<unsigned char>(image[0]);
    return (first == '.' || first == '/' || first == '\n' || first == '\r' || first == ' ') &&
           strstr(image, ".version") != nullptr;
}

std::vector<KernelDeclaration> declared_kernels(const char* ptx) {
    std::vector<KernelDeclaration> kernels;
    const std::string_view text = ptx;
    constexpr std::string_view kEntry = ".entry";
    for (std::size_t at = text.find(kEntry); at != std::string_view::npos;
         at = text.find(kEntry, at)) {
        at += kEntry.size();
        KernelDeclaration kernel;
        kernel.name = word_at(text, &at);
        const std::size_t body = std::min(text.find('{', at), text.size());
        const std::size_t open = text.find('(', at);
        if (open < body) {
            const std::size_t close = std::min(text.find(')', open), body);
            std::string_view list = text.substr(open + 1, close - open - 1);
            while (list.find(".param") != std::string_view::npos) {
                const std::size_t comma = std::min(list.find(','), list.size());
                kernel.parameter_bytes.push_back(parameter_bytes(list.substr(0, comma)));
                list.remove_prefix(std::min(comma + 1, list.size()));
            }
        }
        kernels.push_back(std::move(kernel));
    }
    return kernels;
}

void add_twin(const simgpu_twin* twin) {
    if (twin != nullptr && twin->name != nullptr && twin->run != nullptr) {
        table()[twin->name] = *twin;
    }
}

const simgpu_twin* find_twin(const std::string& name) {
    const auto found = table().find(name);
    return found == table().end() ? nullptr : &found->second;
}

void load_twins_once() {
    static bool loaded = false;
    if (loaded) {
        return;
    }
    loaded = true;
    if (const char* list = getenv("SIMGPU_KERNELS")) {
        std::string_view paths = list;
        while (!paths.empty()) {
            const std::size_t cut = std::min(paths.find(':'), paths.size());
            if (cut > 0) {
                load(std::string(paths.substr(0, cut)));
            }
            paths.remove_prefix(std::min(cut + 1, paths.size()));
        }
        return;
    }
    for (const std::string& path : twins_beside_this_library()) {
        load(path);
    }
}

}  // namespace simgpu
