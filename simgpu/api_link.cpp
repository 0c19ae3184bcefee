// SPDX-License-Identifier: BSD-3-Clause
// Linking: PTX texts become one image, which is loaded as any other. Nothing is compiled here, so a text with
// a mistake is found when its kernels are missing.
#include <stdio.h>
#include <string.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "entry.hpp"

namespace {

constexpr int kPtx = 1;  // CU_JIT_INPUT_PTX

struct Link {
    std::string text;
};

// Under way, by the handle that the program has; guarded by the driver's lock.
std::unordered_map<void*, std::unique_ptr<Link>>& links() {
    static auto* all = new std::unordered_map<void*, std::unique_ptr<Link>>;
    return *all;
}

Link* find(void* state) {
    const auto found = links().find(state);
    return found != links().end() ? found->second.get() : nullptr;
}

CUresult create(simgpu::Driver& d, void** state) {
    if (state == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SIM_TRY(simgpu::current_context(d).result);
    auto link = std::make_unique<Link>();
    *state = link.get();
    links()[*state] = std::move(link);
    return CUDA_SUCCESS;
}

CUresult add(void* state, int type, const void* data, std::size_t bytes) {
    Link* link = find(state);
    if (link == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (type != kPtx || data == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto* text = static_cast<const char*>(data);
    link->text.append(text, strnlen(text, bytes));
    link->text += '\n';
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLinkCreate(unsigned int, int*, void**, void** state) {
    SIM_ENTER(cuLinkCreate);
    return create(d, state);
}
CUresult cuLinkCreate_v2(unsigned int, int*, void**, void** state) {
    SIM_ENTER(cuLinkCreate_v2);
    return create(d, state);
}

CUresult cuLinkAddData(void* state, int type, void* data, std::size_t bytes, const char*,
                       unsigned int, int*, void**) {
    SIM_ENTER(cuLinkAddData);
    (void)d;
    return add(state, type, data, bytes);
}
CUresult cuLinkAddData_v2(void* state, int type, void* data, std::size_t bytes, const char*,
                          unsigned int, int*, void**) {
    SIM_ENTER(cuLinkAddData_v2);
    (void)d;
    return add(state, type, data, bytes);
}

CUresult cuLinkComplete(void* state, void** image, std::size_t* bytes) {
    SIM_ENTER(cuLinkComplete);
    (void)d;
    Link* link = find(state);
    if (link == nullptr || image == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *image = link->text.data();
    if (bytes != nullptr) {
        *bytes = link->text.size() + 1;
    }
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(void* state) {
    SIM_ENTER(cuLinkDestroy);
    (void)d;
    return links().erase(state) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleLoad(CUmodule* module, const char* file) {
    std::string image;
    {
        SIM_ENTER(cuModuleLoad);
        (void)d;
        std::FILE* in = file != nullptr ? fopen(file, "rb") : nullptr;
        if (in == nullptr) {
            return CUDA_ERROR_FILE_NOT_FOUND;
        }
        char piece[4096];
        while (const std::size_t got = fread(piece, 1, sizeof piece, in)) {
            image.append(piece, got);
        }
        fclose(in);
    }
    return cuModuleLoadData(module, image.c_str());
}

CUresult cuOccupancyMaxPotentialBlockSize(int* blocks, int* block_size, CUfunction, void*,
                                          std::size_t, int most) {
    SIM_ENTER(cuOccupancyMaxPotentialBlockSize);
    (void)d;
    if (blocks == nullptr || block_size == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *block_size = most > 0 && most < 256 ? most : 256;
    *blocks = 64;
    return CUDA_SUCCESS;
}
