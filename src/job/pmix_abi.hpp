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
    kProc = 22,
    kByteObject = 27,
    kPointer = 31,
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
        Proc* proc;
        void* pointer;
        // The longest member of the real union is three words (pmix_envar_t).
        void* words[3];
    } data;
};

struct Info {
    char key[512];
    std::uint32_t flags;
    Value value;
};

// One program of a job to be started.
struct App {
    char* command;
    char** arguments;    // the first is the command, the last is null
    char** environment;  // "NAME=value", the last is null; beside what the launcher passes on
    char* folder;
    int ranks;
    Info* info;
    std::size_t infos;
};

// What was published under a key.
struct Published {
    Proc by;
    char key[512];
    Value value;
};

static_assert(sizeof(Proc) == 260 && sizeof(Value) == 32 && sizeof(Info) == 552);
static_assert(sizeof(App) == 56 && sizeof(Published) == 808);

using Done = void (*)(Code, void*);
using SpawnDone = void (*)(Code, char* nspace, void*);
using LookupDone = void (*)(Code, Published*, std::size_t, void*);
// A handler of events calls `go_on(0, nullptr, 0, nullptr, nullptr, chain)` at its end.
using GoOn = void (*)(Code, Info*, std::size_t, Done, void*, void* chain);
using OnEvent = void (*)(std::size_t handler, Code event, const Proc* source, Info*, std::size_t,
                         Info*, std::size_t, GoOn go_on, void* chain);
using Registered = void (*)(Code, std::size_t handler, void*);

// Events: how a process has ended. The first is that of launchers before PRRTE 2.
constexpr Code kProcAborted = -7, kProcTermWithoutSync = -200, kProcKilledByCommand = -400,
               kProcAbortedBySignal = -402;

// The functions, by the names that the library exports.
struct Functions {
    Code (*PMIx_Init)(Proc*, Info*, std::size_t) = nullptr;
    Code (*PMIx_Finalize)(const Info*, std::size_t) = nullptr;
    Code (*PMIx_Abort)(int, const char*, Proc*, std::size_t) = nullptr;
    Code (*PMIx_Put)(std::uint8_t scope, const char* key, Value*) = nullptr;
    Code (*PMIx_Commit)() = nullptr;
    Code (*PMIx_Fence_nb)(const Proc*, std::size_t, const Info*, std::size_t, Done,
                          void*) = nullptr;
    // Null in a library that has none: then other jobs are not asked for.
    Code (*PMIx_Spawn_nb)(const Info*, std::size_t, const App*, std::size_t, SpawnDone,
                          void*) = nullptr;
    Code (*PMIx_Publish_nb)(const Info*, std::size_t, Done, void*) = nullptr;
    Code (*PMIx_Lookup_nb)(char** keys, const Info*, std::size_t, LookupDone, void*) = nullptr;
    Code (*PMIx_Unpublish_nb)(char** keys, const Info*, std::size_t, Done, void*) = nullptr;
    Code (*PMIx_Register_event_handler)(Code*, std::size_t, Info*, std::size_t, OnEvent, Registered,
                                        void*) = nullptr;
    Code (*PMIx_Get)(const Proc*, const char* key, const Info*, std::size_t, Value**) = nullptr;
    const char* (*PMIx_Error_string)(Code) = nullptr;
    const char* (*PMIx_Get_version)() = nullptr;
};

}  // namespace gantry::job::pmix
