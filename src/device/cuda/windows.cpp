// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/windows.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gantry::device::cuda {
namespace {

std::uintptr_t value_of(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

Status no_window(const void* address, Bytes bytes) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "no window on {} bytes at {}", bytes,
                   fmt::ptr(address));
}

}  // namespace

bool Windows::possible() {
    if (library_.ready()) return true;
    if (!std::exchange(said_absence_, true))
        log::info("cuda: no windows on device memory (GDRCopy): {}", library_.refusal());
    return false;
}

WindowUses::Part Windows::part_of(const Location& location, const void* address) {
    return {location.buffer_id, (value_of(address) - location.base) / kPart};
}

Windows::Iterator Windows::find(const Location& location, const void* address, Bytes bytes) {
    const std::uintptr_t begin = value_of(address);
    const auto found = std::find_if(windows_.begin(), windows_.end(), [&](const Window& window) {
        return window.part.buffer_id == location.buffer_id && begin >= window.begin &&
               begin < window.end && bytes <= window.end - begin;
    });
    if (found != windows_.end() && found != windows_.begin())
        windows_.splice(windows_.begin(), windows_, found);
    return found;
}

bool Windows::open(const Location& location, const void* address, Bytes bytes) {
    if (!possible() || bytes > kLargest) return false;
    drop_freed();
    const WindowUses::Part part = part_of(location, address);
    const std::uintptr_t limit = location.base + location.size;
    Window window;
    window.part = part;
    window.begin = location.base + part.number * kPart;
    window.end = std::min(limit, window.begin + kPart + kLargest);
    const std::uintptr_t first_page = window.begin / GdrLibrary::kPage * GdrLibrary::kPage;
    const std::uintptr_t last_page = round_up(window.end, GdrLibrary::kPage);
    if (!make_room(last_page - first_page)) {
        uses_.refuse(part);
        return false;
    }
    Result<GdrLibrary::Mapping> mapping = library_.map(first_page, last_page - first_page);
    if (!mapping.ok()) {
        uses_.refuse(part);
        if (!std::exchange(said_refusal_, true))
            log::info(
                "cuda: a window on device memory was refused, copies stay with the copy "
                "engines: {}",
                mapping.status().text());
        return false;
    }
    uses_.forget(part);
    window.mapping = *mapping;
    bytes_ += window.mapping.bytes;
    windows_.push_front(window);
    log::debug("cuda: window on {} bytes of device memory at {:#x}", window.end - window.begin,
               window.begin);
    return true;
}

// Each is asked about, which costs a tenth of a microsecond; an opening costs a thousand times
// that.
void Windows::drop_freed() {
    for (auto window = windows_.begin(); window != windows_.end();)
        window = query_.buffer_id(window->begin) == window->part.buffer_id ? std::next(window)
                                                                           : close(window);
}

bool Windows::make_room(Bytes bytes) {
    if (limits_.entries == 0 || bytes > limits_.bytes) return false;
    while (windows_.size() >= limits_.entries || bytes_ + bytes > limits_.bytes)
        close(std::prev(windows_.end()));
    return true;
}

Windows::Iterator Windows::close(Iterator window) {
    library_.unmap(window->mapping);
    bytes_ -= window->mapping.bytes;
    return windows_.erase(window);
}

Status Windows::read(const Location& location, const void* address, void* to, Bytes bytes) {
    const Iterator window = find(location, address, bytes);
    if (window == windows_.end()) return no_window(address, bytes);
    return library_.read(window->mapping, value_of(address), to, bytes);
}

Status Windows::write(const Location& location, void* address, const void* from, Bytes bytes) {
    const Iterator window = find(location, address, bytes);
    if (window == windows_.end()) return no_window(address, bytes);
    if (query_.buffer_id(value_of(address)) != location.buffer_id) {
        close(window);
        return no_window(address, bytes);
    }
    return library_.write(window->mapping, value_of(address), from, bytes);
}

void Windows::clear() {
    for (auto window = windows_.begin(); window != windows_.end();)
        window = close(window);
    library_.close();
}

void Windows::abandon() {
    windows_.clear();
    bytes_ = 0;
    library_.abandon();
}

}  // namespace gantry::device::cuda
