// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/unmap_watch.hpp"

#include <ucm/api/ucm.h>

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace gantry::transport::ucx {
namespace {

// Among the first to be called, while the memory is still there.
constexpr int kBeforeOthers = -1000;

// This thread raises the event itself, of device memory.
thread_local bool telling = false;

void on_unmapped(ucm_event_type_t, ucm_event_t* event, void* notes) {
    if (telling) return;
    static_cast<UnmapNotes*>(notes)->note(
        reinterpret_cast<std::uintptr_t>(event->vm_unmapped.address), event->vm_unmapped.size);
}

auto set_handler(const Library& library) {
    return reinterpret_cast<decltype(&::ucm_set_event_handler)>(
        library.find("ucm_set_event_handler"));
}
auto unset_handler(const Library& library) {
    return reinterpret_cast<decltype(&::ucm_unset_event_handler)>(
        library.find("ucm_unset_event_handler"));
}

bool hears_of_a_page(UnmapNotes& notes) {
    const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* page = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    const auto address = reinterpret_cast<std::uintptr_t>(page);
    notes.watch(address, bytes);
    munmap(page, bytes);
    bool heard = false;
    notes.take([&](std::uintptr_t begin, Bytes length) {
        heard = heard || (begin <= address && address + bytes <= begin + length);
    });
    return heard;
}

}  // namespace

// What UCX's own hook of munmap() does, without unmapping. Not in its headers, but exported by 1.13 to
// 1.22.
Status tell_unmapped(const Library& library, const void* address, Bytes bytes) {
    const auto enter = reinterpret_cast<void (*)()>(library.find("ucm_event_enter"));
    const auto leave = reinterpret_cast<void (*)()>(library.find("ucm_event_leave"));
    const auto dispatch = reinterpret_cast<void (*)(ucm_event_type_t, ucm_event_t*)>(
        library.find("ucm_event_dispatch"));
    if (enter == nullptr || leave == nullptr || dispatch == nullptr)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "UCX {} cannot be told that device memory is gone",
                       library.version().text());
    ucm_event_t event{};
    event.vm_unmapped.address = const_cast<void*>(address);
    event.vm_unmapped.size = bytes;
    telling = true;
    enter();
    dispatch(UCM_EVENT_VM_UNMAPPED, &event);
    leave();
    telling = false;
    return success();
}

UnmapWatch::~UnmapWatch() {
    stop();
}

void UnmapWatch::stop() {
    if (const Library* library = std::exchange(library_, nullptr))
        unset_handler (*library)(UCM_EVENT_VM_UNMAPPED, &on_unmapped, notes_);
}

Status UnmapWatch::start(const Library& library, UnmapNotes& notes) {
    const auto set = set_handler(library);
    if (set == nullptr || unset_handler(library) == nullptr)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION, "this UCX has no hooks for unmapping");
    const ucs_status_t status = set(UCM_EVENT_VM_UNMAPPED, kBeforeOthers, &on_unmapped, &notes);
    if (status != UCS_OK) return library.failed("watching what the program unmaps", status);
    library_ = &library;
    notes_ = &notes;
    if (hears_of_a_page(notes)) return success();
    stop();
    return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                   "UCX's hooks do not see what is unmapped (UCX_MEM_EVENTS)");
}

}  // namespace gantry::transport::ucx
