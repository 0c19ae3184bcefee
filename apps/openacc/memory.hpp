// SPDX-License-Identifier: BSD-3-Clause
//
// What apps.openacc.so offers, as `apps_openacc_calls`.
#pragma once

#include <cstddef>

namespace gantry::apps {

struct OpenAccCalls {
    int (*devices)();            // of NVIDIA
    void (*choose)(int number);  // one of them, or the host: -1
    void* (*allocate)(std::size_t bytes);
    void (*release)(void* device);
    void (*map)(void* shadow, void* device, std::size_t bytes);
    void (*unmap)(void* shadow);
    // Calls the function with the address that `shadow` has where OpenACC computes.
    void (*use)(void* shadow, void (*function)(void* address, const void* what), const void* what);
    void (*stop)();
};

}  // namespace gantry::apps
