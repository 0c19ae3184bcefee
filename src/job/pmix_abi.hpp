// SPDX-License-Identifier: BSD-3-Clause
//
// The part of the PMIx interface that Gantry calls, written down from the PMIx standard, so that no
// PMIx header is needed to build. The layouts are those of SONAME libpmix.so.2, checked with 4.2.2
// and 5.0.11. Only pmix*.cpp includes this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gantry::job::pmix {

using Code = int;  // pmix_status_t: 0 is success, failures are negative

struct Proc {
    char nspace[256];
    std::uint32_t rank;
};

constexpr std::uint32_t kEveryRank = UINT32_MAX - 1;  // PMIX_RANK_WILDCARD
constexpr std::uint8_t kGlobal = 3;                   // PMIX_GLOBAL

enum Type : std::uint16_t {
    kBool = 1,
    kString = 3,
    kSize = 4,
    kInt = 6,
    kInt32 = 9,
    kInt64 = 10,
    kUint = 11,
    kUint16 = 13,
    kUint32 = 14,
    kUint64 = 15,
    kByteObject = 27,
    kProcRank = 40,
};

struct Value {
    std::uint16_t type;
    union {
        bool flag;
        char* string;
        std::size_t size;
        int integer;
        std::int64_t int64;
        std::uint16_t uint16;
        std::uint32_t uint32;
        std::uint64_t uint64;
        struct {
            char* bytes;
            std::size_t size;
        } object;
        // The longest member of the real union is three words (pmix_envar_t).
        void* words[3];
    } data;
};

struct Info {
    char key[512];
    std::uint32_t flags;
    Value value;
};

static_assert(sizeof(Proc) == 260 && sizeof(Value) == 32 && sizeof(Info) == 552);

using FenceDone = void (*)(Code, void*);

// The functions, by the names that the library exports.
struct Functions {
    Code (*PMIx_Init)(Proc*, Info*, std::size_t) = nullptr;
    Code (*PMIx_Finalize)(const Info*, std::size_t) = nullptr;
    Code (*PMIx_Abort)(int, const char*, Proc*, std::size_t) = nullptr;
    Code (*PMIx_Put)(std::uint8_t scope, const char* key, Value*) = nullptr;
    Code (*PMIx_Commit)() = nullptr;
    Code (*PMIx_Fence_nb)(const Proc*, std::size_t, const Info*, std::size_t, FenceDone,
                          void*) = nullptr;
    Code (*PMIx_Get)(const Proc*, const char* key, const Info*, std::size_t, Value**) = nullptr;
    const char* (*PMIx_Error_string)(Code) = nullptr;
    const char* (*PMIx_Get_version)() = nullptr;
};

}  // namespace gantry::job::pmix
