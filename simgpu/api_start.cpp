// SPDX-License-Identifier: BSD-3-Clause
// Start-up: cuInit, versions, error texts, and the table behind cuGetProcAddress. A base name is
// resolved to the newest symbol not newer than the version asked for; the per-thread default stream
// twins are found here only.
#include <string.h>

#include <type_traits>

#include "entry.hpp"

namespace simgpu {
namespace {

constexpr int kDriverVersion = 13000;

// A per-thread default stream twin: the plain function, with stream 0 meaning the thread's own.
template <auto function>
struct Twin;
template <class... Args, CUresult (*function)(Args...)>
struct Twin<function> {
    static CUresult call(Args... args) {
        bool& flag = this_thread().per_thread_default;
        const bool before = flag;
        flag = true;
        const CUresult result = function(args...);
        flag = before;
        return result;
    }
};

enum class TwinKind { none, ptsz, ptds };

template <auto function, TwinKind kind>
void* twin_of() {
    if constexpr (kind == TwinKind::none) {
        return nullptr;
    } else {
        return reinterpret_cast<void*>(&Twin<function>::call);
    }
}

struct Row {
    const char* base;
    int version;
    void* plain;
    void* per_thread;
};

const Row* rows(int* count) {
    static const Row table[] = {
#define GANTRY_CUDA_FUNCTION(symbol, base, version, twin, args) \
    {base, version, reinterpret_cast<void*>(&symbol), twin_of<&symbol, TwinKind::twin>()},
#include "device/cuda/driver_functions.def"
#include "compiler_functions.def"
#undef GANTRY_CUDA_FUNCTION
    };
    *count = static_cast<int>(std::size(table));
    return table;
}

CUresult look_up(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* found) {
    if (symbol == nullptr || function == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int count = 0;
    const Row* table = rows(&count);
    const Row* best = nullptr;
    bool known = false;
    for (const Row* row = table; row != table + count; ++row) {
        if (strcmp(row->base, symbol) == 0) {
            known = true;
            if (row->version <= version && (best == nullptr || row->version > best->version)) {
                best = row;
            }
        }
    }
    *function = nullptr;
    if (found != nullptr) {
        *found = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                 : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    if (best == nullptr) {
        return CUDA_ERROR_NOT_FOUND;
    }
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    *function = per_thread && best->per_thread != nullptr ? best->per_thread : best->plain;
    return CUDA_SUCCESS;
}

struct ResultName {
    CUresult code;
    const char* name;
};
constexpr ResultName kResultNames[] = {
#define GANTRY_CUDA_RESULT(name, value) {name, #name},
    GANTRY_CUDA_RESULTS(GANTRY_CUDA_RESULT)
#undef GANTRY_CUDA_RESULT
};

CUresult result_name(CUresult code, const char** name) {
    if (name == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *name = nullptr;
    for (const ResultName& known : kResultNames) {
        if (known.code == code) {
            *name = known.name;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace simgpu

using simgpu::Entry;
using simgpu::EntryId;
using simgpu::Needs;

CUresult cuInit(unsigned flags) {
    const Entry entry(EntryId::cuInit, Needs::nothing);
    if (entry.refusal() != CUDA_SUCCESS) {
        return entry.refusal();
    }
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : simgpu::start_driver();
}

CUresult cuDriverGetVersion(int* version) {
    const Entry entry(EntryId::cuDriverGetVersion, Needs::nothing);
    if (version == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = simgpu::kDriverVersion;
    return entry.refusal();
}

CUresult cuGetErrorName(CUresult error, const char** name) {
    const Entry entry(EntryId::cuGetErrorName, Needs::nothing);
    return simgpu::result_name(error, name);
}

CUresult cuGetErrorString(CUresult error, const char** text) {
    const Entry entry(EntryId::cuGetErrorString, Needs::nothing);
    return simgpu::result_name(error, text);
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
    const Entry entry(EntryId::cuGetProcAddress, Needs::nothing);
    return simgpu::look_up(symbol, function, version, flags, nullptr);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* found) {
    const Entry entry(EntryId::cuGetProcAddress_v2, Needs::nothing);
    const CUresult result = simgpu::look_up(symbol, function, version, flags, found);
    // Version 2 reports an unknown name through `found` alone.
    return result == CUDA_ERROR_NOT_FOUND && found != nullptr ? CUDA_SUCCESS : result;
}

CUresult cuGetExportTable(const void** table, const CUuuid*) {
    const Entry entry(EntryId::cuGetExportTable, Needs::nothing);
    if (table != nullptr) {
        *table = nullptr;
    }
    return CUDA_ERROR_NOT_SUPPORTED;  // undocumented interfaces are not imitated
}

CUresult cuModuleGetLoadingMode(int* mode) {
    const Entry entry(EntryId::cuModuleGetLoadingMode);
    if (entry.refusal() != CUDA_SUCCESS) {
        return entry.refusal();
    }
    *mode = 2;  // lazy
    return CUDA_SUCCESS;
}
