/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What tests may ask the simulated driver beyond the driver's own interface. Found with dlsym in
 * libcuda.so.1: a real driver does not have these, and nothing but tests and tools may depend on
 * them.
 */
#ifndef SIMGPU_SIMGPU_H
#define SIMGPU_SIMGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls of an entry point (its exact symbol, "cuMemAlloc_v2") since the start or the last reset, in
 * this process. A name the simulator does not have gives UINT64_MAX. "*" counts all. */
uint64_t simgpu_calls(const char* symbol);
void simgpu_reset_calls(void);

/* Modelled time: nanoseconds of the clock that operations are placed on. */
int64_t simgpu_now(void);

/* Adds faults ("cuMemAlloc_v2:2:2,event:3:never", see README.md); NULL clears all. 0, or -1 when
 * not understood. */
int simgpu_fault(const char* text);

/* Operations that completed, oldest first, since the start or the last clear; at most 65536 are
 * kept. */
enum simgpu_kind {
    SIMGPU_COPY,
    SIMGPU_FILL,
    SIMGPU_KERNEL,
    SIMGPU_HOST_FUNCTION,
    SIMGPU_VALUE_WRITE,
    SIMGPU_VALUE_WAIT,
    SIMGPU_EVENT,
    SIMGPU_MARKER
};
struct simgpu_operation {
    int kind;
    int device;
    uint64_t stream;
    size_t bytes;
    int64_t enqueued, start, end; /* modelled nanoseconds */
};
size_t simgpu_operations(struct simgpu_operation* out, size_t capacity);
void simgpu_clear_operations(void);

/* What is still allocated: device, pinned, registered, managed, imported ranges; live streams and
 * events. */
struct simgpu_census {
    size_t device_ranges, device_bytes;
    size_t host_ranges, imported_ranges;
    size_t streams, events;
};
void simgpu_take_census(struct simgpu_census* out);

/* The host's view of device memory, for tests that look without a copy; NULL when it is not device
 * memory. */
void* simgpu_peek(uint64_t device_address);

/* The memory of cuMemAlloc in [begin, begin + bytes), for the simulated libgdrapi (gdr/): blocks of
 * pages of a file. Gives how many there are and writes at most `capacity`; none where device memory
 * of another kind lies there as well. */
struct simgpu_pages {
    uint64_t begin;
    size_t bytes;
    int fd;
    uint64_t offset;
};
size_t simgpu_find_pages(uint64_t begin, size_t bytes, struct simgpu_pages* out, size_t capacity);
/* What opening a window on such memory, reading or writing through it costs its caller on the
 * modelled machine, in scaled nanoseconds. */
enum simgpu_window { SIMGPU_WINDOW_OPEN, SIMGPU_WINDOW_READ, SIMGPU_WINDOW_WRITE };
int64_t simgpu_window_time(int what, size_t bytes);
/* Called before such memory is freed, with the driver's lock held; one for the whole process. */
void simgpu_on_free(void (*callback)(uint64_t begin, size_t bytes));

/* In libgdrapi.so.2: calls of "open", "pin", "map", "unmap", "unpin", "read" and "write" so far,
 * or "mapped bytes" now; and settings like SIMGPU_GDR ("refuse=pin,bar=65536", NULL: none). */
uint64_t simgpu_gdr_calls(const char* what);
void simgpu_gdr_settings(const char* text);

#ifdef __cplusplus
}
#endif
#endif
