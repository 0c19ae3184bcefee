// SPDX-License-Identifier: BSD-3-Clause
// Linking PTX, as run-time libraries of compilers do at their start.
#include "harness.hpp"

namespace {

constexpr char kFirst[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry first() { ret; }\n";
constexpr char kSecond[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry second() { ret; }\n";
constexpr int kPtx = 1, kObject = 3;  // CUjitInputType

template <class Function>
Function* entry(const char* name) {
    void* found = nullptr;
    EXPECT_EQ(cuda().cuGetProcAddress_v2(name, &found, 12000, 0, nullptr), CUDA_SUCCESS) << name;
    return reinterpret_cast<Function*>(found);
}

using Create = CUresult(unsigned, int*, void**, void**);
using Add = CUresult(void*, int, void*, std::size_t, const char*, unsigned, int*, void**);
using Complete = CUresult(void*, void**, std::size_t*);
using Destroy = CUresult(void*);

CUresult add(void* link, int type, const char* text) {
    return entry<Add>("cuLinkAddData")(link, type, const_cast<char*>(text),
                                       std::string(text).size() + 1, "text", 0, nullptr, nullptr);
}

}  // namespace

TEST(Linking, TheKernelsOfAllTextsAreInTheImage) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        void *link = nullptr, *image = nullptr;
        std::size_t bytes = 0;
        OK(entry<Create>("cuLinkCreate")(0, nullptr, nullptr, &link));
        OK(add(link, kPtx, kFirst));
        OK(add(link, kPtx, kSecond));
        OK(entry<Complete>("cuLinkComplete")(link, &image, &bytes));
        EXPECT_GT(bytes, sizeof kFirst);
        CUmodule module = nullptr;
        OK(cuda().cuModuleLoadData(&module, image));
        OK(entry<Destroy>("cuLinkDestroy")(link));
        for (const char* name : {"first", "second"}) {
            CUfunction function = nullptr;
            OK(cuda().cuModuleGetFunction(&function, module, name));
        }
    });
}

TEST(Linking, WhatIsNoTextAndWhatIsNoLinkAreRefused) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        void* link = nullptr;
        OK(entry<Create>("cuLinkCreate")(0, nullptr, nullptr, &link));
        EXPECT_EQ(add(link, kObject, kFirst), CUDA_ERROR_INVALID_VALUE);
        OK(entry<Destroy>("cuLinkDestroy")(link));
        EXPECT_EQ(entry<Destroy>("cuLinkDestroy")(link), CUDA_ERROR_INVALID_HANDLE);
        EXPECT_EQ(add(link, kPtx, kFirst), CUDA_ERROR_INVALID_HANDLE);
    });
}
