// SPDX-License-Identifier: BSD-3-Clause
//
// CudaDevice's copies: which GPU, context and queue make one, what is known of its ends, and what
// becomes of it when its context turns out to be gone.
#include "device/cuda/cuda_device.hpp"

#include "device/cuda/copies.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>

namespace gantry::device::cuda {

CudaDevice::Place CudaDevice::place(const void* address) {
    if (const IpcCache::Mapping* mapping = mappings_.find(address))
        return {true,
                true,
                false,
                mapping->gpu,
                gpus_.number_of(mapping->handle.gpu),
                mapping->context.handle,
                {mapping->address, mapping->handle.size}};
    const Allocation* allocation = pointers_.known(address);
    if (allocation == nullptr) return {};
    const Location& location = allocation->location;
    const bool device = location.kind == MemoryKind::device || location.kind == MemoryKind::managed;
    if (!device) return {};
    return {true,
            false,
            location.kind == MemoryKind::managed,
            location.gpu,
            location.gpu,
            reinterpret_cast<CUcontext>(allocation->context),
            allocation->range()};
}

CudaDevice::Route CudaDevice::route(const Copy& copy, Way* way) {
    Place source = place(copy.source);
    Place destination = place(copy.destination);
    // Nothing is known about an end: ask, rather than touch device memory from the host.
    const auto is_known = [this, &copy](const Place& end, const void* address) {
        return end.device || pins_.cover(address, copy.bytes) ||
               pointers_.known(address) != nullptr;
    };
    bool unknown = false;
    if (copy.engine == Engine::automatic)
        unknown = !is_known(source, copy.source) || !is_known(destination, copy.destination);
    else if (copy.engine == Engine::kernel)
        unknown = !source.device && !destination.device;
    else if (copy.engine == Engine::fused)
        unknown = !source.device || !destination.device;
    if (unknown) {
        (void)classify(copy.source, copy.bytes);
        (void)classify(copy.destination, copy.bytes);
        source = place(copy.source);
        destination = place(copy.destination);
    }
    Route route;
    route.order.copy = copy;
    if (copy.word != nullptr && !pins_.cover(copy.word, sizeof *copy.word))
        route.order.copy.word = nullptr;
    route.gpu = copy.gpu;
    if (copy.gpu < 0 || copy.gpu >= gpus_.count())
        route.gpu = source.device ? source.gpu : std::max(destination.gpu, 0);
    // A mapping works only in the context that opened it; otherwise a pointer's own context is the
    // right one.
    for (const Place* end : {&destination, &source})
        if (route.context == nullptr && end->mapped && end->gpu == route.gpu)
            route.context = end->context;
    for (const Place* end : {&source, &destination})
        if (route.context == nullptr && end->device && !end->mapped && end->gpu == route.gpu)
            route.context = end->context;

    // A kernel copies only what the copying GPU reaches by itself, in one context.
    const auto reached = [&route](const Place& end) {
        return end.device && (end.context == nullptr || end.context == route.context) &&
               (end.mapped || end.home == route.gpu);
    };
    // A call for several would have to say where managed memory is to be.
    const bool one_launch = copy.bytes <= kMostFused && settings_.kernels;
    const bool managed = source.pages || destination.pages;
    if (copy.engine == Engine::fused &&
        !(reached(source) && reached(destination) && (one_launch || !managed)))
        route.order.copy.engine = Engine::automatic;
    route.host_only =
        (copy.engine == Engine::kernel || route.order.copy.engine == Engine::automatic) &&
        !source.device && !destination.device;
    route.order.queue = queue_of(copy, source, destination);
    route.order.unreached = copy.engine == Engine::kernel && source.device && destination.device &&
                            !(reached(source) && reached(destination));
    route.order.from_host = route.order.queue == Queue::h2d && copy.engine != Engine::h2d_2d &&
                            copy.rows.empty() && !source.device && destination.device;
    route.order.may_be_written = route.order.from_host && !destination.pages;
    const bool out = route.order.queue == Queue::d2h;
    const Place& on_device = out ? source : destination;
    if ((out ? !destination.device : route.order.queue == Queue::h2d && !source.device) &&
        copy.bytes <= kMostOfResident && copy.rows.empty() && reached(on_device) &&
        !on_device.pages) {
        // What fits into one slot goes through it anyway.
        const bool page_locked = copy.bytes > CopyRing::kSlotBytes &&
                                 is_page_locked(out ? copy.destination : copy.source, copy.bytes);
        if (page_locked || copy.bytes <= kMostThroughSlots)
            route.order.resident = {out ? Ends::to_host : Ends::from_host, page_locked};
    }
    route.order.may_cut_through =
        (route.order.queue == Queue::d2h || route.order.queue == Queue::h2d) &&
        copy.bytes <= kMostCutThrough && reached(on_device) && !on_device.pages &&
        pins_.cover(out ? copy.destination : copy.source, copy.bytes);
    if (route.order.queue == Queue::peer) {
        route.order.outwards = source.home == route.gpu;
        route.order.peer = route.order.outwards ? destination.home : source.home;
    }
    if ((route.order.queue == Queue::peer || route.order.queue == Queue::d2d) && reached(source) &&
        reached(destination)) {
        if (copy.rows.empty()) route.order.resident = {Ends::devices, false};
        route.order.rows_may_stay = !copy.rows.empty();
    } else if (!copy.rows.empty() && copy.bytes <= kMostOfResident) {
        route.order.rows_may_stay =
            reached(on_device) && !on_device.pages && rows_lie_in_our_pins(copy, out);
    }
    // Between two GPUs of this process the driver is told both contexts: it then needs no peer
    // access. A mapping has its peer access already.
    const bool both_own =
        source.device && destination.device && !source.mapped && !destination.mapped;
    if (both_own && source.gpu != destination.gpu) {
        route.order.source_context = source.context;
        route.order.destination_context = destination.context;
    }
    *way = {nullptr, losses(), copy, route.order, {}, {}};
    remember(*way, source, destination);
    return route;
}

// Its ends, if they say what the next copy's will be: what is neither on a device nor page-locked
// by us may be something else by then.
void CudaDevice::remember(Way& way, const Place& source, const Place& destination) const {
    const Copy& copy = way.asked;
    if (!copy.rows.empty() || (!source.device && !destination.device)) return;
    const bool between_devices = source.device && destination.device;
    if (between_devices && (source.pages || destination.pages)) return;  // the engine goes by size
    const bool engine_is_said =
        copy.engine == Engine::d2h || copy.engine == Engine::h2d || copy.engine == Engine::h2d_2d;
    if (!between_devices && !engine_is_said) return;
    if (copy.word != nullptr) way.word = pins_.around(copy.word, sizeof *copy.word);
    if (copy.word != nullptr && way.word.size == 0) return;
    const Range from = source.device ? source.range : pins_.around(copy.source, copy.bytes);
    const Range to =
        destination.device ? destination.range : pins_.around(copy.destination, copy.bytes);
    if (from.size == 0 || to.size == 0) return;
    way.source = from;
    way.destination = to;
}

// Whether all rows lie in memory that we page-locked, at the host's end.
bool CudaDevice::rows_lie_in_our_pins(const Copy& copy, bool to_host) const {
    return std::ranges::all_of(copy.rows, [&](const Rows& rows) {
        const auto* const first =
            static_cast<const std::byte*>(to_host ? copy.destination : copy.source) +
            (to_host ? rows.destination : rows.source);
        const Bytes pitch = to_host ? rows.destination_pitch : rows.source_pitch;
        const Bytes plane = to_host ? rows.destination_plane : rows.source_plane;
        return pins_.cover(first,
                           (rows.count - 1) * pitch + (rows.planes - 1) * plane + rows.width);
    });
}

// As far as is known; a device's memory is not.
bool CudaDevice::is_page_locked(const void* address, Bytes bytes) const {
    if (pins_.cover(address, bytes)) return true;
    const Allocation* allocation = pointers_.known(address);
    return allocation != nullptr && allocation->location.kind == MemoryKind::pinned &&
           allocation->range().contains(reinterpret_cast<std::uintptr_t>(address), bytes);
}

Queue CudaDevice::queue_of(const Copy& copy, const Place& source, const Place& destination) {
    switch (copy.engine) {
        case Engine::d2h: return Queue::d2h;
        case Engine::h2d:
        case Engine::h2d_2d: return Queue::h2d;
        case Engine::d2d: return Queue::d2d;
        case Engine::peer: return Queue::peer;
        case Engine::automatic:
        case Engine::kernel:
        case Engine::bar:
        case Engine::fused: break;
    }
    if (!source.device) return Queue::h2d;
    if (!destination.device) return Queue::d2h;
    return source.home == destination.home ? Queue::d2d : Queue::peer;
}

CudaDevice::Way& CudaDevice::last_way(const Copy& copy) {
    switch (copy.engine) {
        case Engine::d2h: return last_ways_[1];
        case Engine::h2d:
        case Engine::h2d_2d: return last_ways_[2];
        default: return last_ways_[0];
    }
}

bool CudaDevice::Way::goes_on(const Copy& copy, std::uint64_t losses_now) const {
    const bool by_size = order.queue == Queue::d2h || order.queue == Queue::h2d;
    return (!by_size || asked.bytes == copy.bytes) && carries(copy, losses_now);
}

bool CudaDevice::Way::carries(const Copy& copy, std::uint64_t losses_now) const {
    const auto lies_in = [](const Range& range, const void* address, Bytes bytes) {
        return range.contains(reinterpret_cast<std::uintptr_t>(address), bytes);
    };
    return streams != nullptr && asked.engine == copy.engine && asked.gpu == copy.gpu &&
           losses == losses_now && copy.rows.empty() && lies_in(source, copy.source, copy.bytes) &&
           lies_in(destination, copy.destination, copy.bytes) &&
           (copy.word == nullptr || lies_in(word, copy.word, sizeof *copy.word));
}

void CudaDevice::learn_cut_through(const Copy& copy, const Way& way) {
    if (copy.pieces.size == 0 || !way.order.may_cut_through) return;
    Way& known = cut_through_way(copy.engine);
    const std::uint32_t* const words = copy.engine == Engine::d2h ? copy.pieces.words : nullptr;
    if (known.carries(copy, losses()) && (words == nullptr || known.word.size > 0)) return;
    known = way;
    if (words != nullptr) known.word = pins_.around(words, sizeof *words);
}

bool CudaDevice::would_take_pieces(Engine engine) const {
    const Way& way = cut_through_ways_[engine == Engine::d2h ? 0 : 1];
    return way.streams != nullptr && way.losses == losses() &&
           way.streams->resident().would_cut_through(engine == Engine::d2h ? Ends::to_host
                                                                           : Ends::from_host);
}

bool CudaDevice::cut_through(const Copy& copy, Completion* done) {
    if (done == nullptr) return would_take_pieces(copy.engine);
    settings_.neighbours = neighbours_;
    if (!driver_.ready() || copy.pieces.size == 0 || copy.bytes > kMostCutThrough) return false;
    if (Way& known = cut_through_way(copy.engine); !known.carries(copy, losses())) {
        drop_dead_contexts();
        Way way;
        const Route route = this->route(copy, &way);
        if (!route.order.may_cut_through || way.source.size == 0) return false;
        Result<Streams*> streams = streams_in(route.context, route.gpu);
        if (!streams.ok()) return false;
        way.streams = *streams;
        learn_cut_through(copy, way);
    }
    const Way& way = cut_through_way(copy.engine);
    if (copy.engine == Engine::d2h) {
        const auto first = reinterpret_cast<std::uintptr_t>(copy.pieces.words);
        const auto last = reinterpret_cast<std::uintptr_t>(
            copy.pieces.word(divide_up(copy.bytes, copy.pieces.size) - 1));
        if (!way.word.contains(first, last - first + sizeof(std::uint32_t))) return false;
    }
    Order order = way.order;
    order.copy = copy;
    return way.streams->cut_through(order, *done);
}

void CudaDevice::copy(const Copy& copy, Completion& done) {
    if (copy.bytes == 0) {
        done.complete(success());
        return;
    }
    if (!driver_.ready()) {
        done.complete(failure(
            MPI_ERR_OTHER, "a copy of {} bytes on GPU {}: the CUDA driver is {}", copy.bytes,
            copy.gpu, driver_.gone() ? "shut down already" : "not initialised in this process"));
        return;
    }
    if (copy.engine == Engine::bar) return done.complete(bar_mappings_.copy(copy));
    if (!copy.parts.empty()) return copy_parts(copy, done);
    settings_.neighbours = neighbours_;
    gpus_.fill();
    drop_dead_contexts();
    // A stream that finds its context dead is lost: the whole way below drops it.
    if (Way& last = last_way(copy); last.goes_on(copy, losses())) {
        const Engine engine = last.order.copy.engine;
        last.order.copy = copy;
        last.order.copy.engine = engine;
        if (last.streams->start(last.order, done)) return learn_cut_through(copy, last);
    }
    // The second round is for a context that was reset: the same handle, or the GPU's next context,
    // lives and gets new streams, and what peers share is mapped again.
    Copy order = copy;
    for (int round = 0; round < 2; ++round) {
        Way way;
        Route route = this->route(order, &way);
        // After a context was lost "host memory" may be what its device memory looks like now; and a
        // fused copy was one between devices.
        if (round > 0 || copy.engine == Engine::fused) {
            route.order.from_host = route.order.may_be_written = false;
            route.order.resident.reset();
        }
        if (route.host_only) {
            const bool of_device = copy.engine == Engine::fused || copy.engine == Engine::kernel;
            if (round > 0 || of_device) break;
            std::memmove(copy.destination, copy.source, copy.bytes);
            done.complete(success());
            return;
        }
        Result<Streams*> streams = streams_in(route.context, route.gpu);
        if (!streams.ok()) {
            done.complete(std::move(streams).status());
            return;
        }
        if ((*streams)->start(route.order, done)) {
            way.streams = *streams;
            if (way.source.size > 0 && way.losses == losses()) {
                last_way(copy) = way;
                learn_cut_through(copy, way);
            }
            return;
        }
        const Mapped mapped = mapped_ends(order);
        drop_context((*streams)->context().handle);
        if (!map_again(mapped, order)) break;
    }
    done.complete(context_destroyed(copy));
}

// The rows of all parts, from the ends of the first: a kernel reaches any address by its distance.
std::vector<Rows> CudaDevice::rows_of_parts(std::span<const CopyPart> parts) {
    const auto apart = [](const void* from, const void* to) {
        return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(to) -
                                           reinterpret_cast<std::uintptr_t>(from));
    };
    std::vector<Rows> all;
    for (const CopyPart& part : parts)
        for (Rows rows : part.rows) {
            rows.destination += apart(parts.front().destination, part.destination);
            rows.source += apart(parts.front().source, part.source);
            all.push_back(rows);
        }
    return all;
}

// A context that turns out to be gone is dropped when somebody uses it next.
void CudaDevice::copy_parts(const Copy& copy, Completion& done) {
    gpus_.fill();
    drop_dead_contexts();
    const bool in_rows = copy.engine == Engine::kernel;
    CUcontext context = nullptr;
    Order together;
    bool reached = true, may_stay = true;
    for (const CopyPart& part : copy.parts) {
        for (const void* end : {static_cast<const void*>(part.destination), part.source})
            if (in_rows && !place(end).device) (void)classify(end, 1);
        Copy each = copy;
        each.parts = {};
        each.destination = part.destination;
        each.source = part.source;
        each.bytes = part.bytes;
        each.rows = part.rows;
        Way way;
        const Route route = this->route(each, &way);
        const bool between_devices =
            route.order.queue == Queue::d2d || route.order.queue == Queue::peer;
        reached = reached && route.context != nullptr &&
                  (context == nullptr || context == route.context) &&
                  (in_rows ? between_devices && !route.order.unreached && !route.host_only
                           : route.order.copy.engine == Engine::fused);
        if (!reached) break;
        may_stay = may_stay && route.order.rows_may_stay;
        // To other GPUs, if any part goes there.
        if (context == nullptr || route.order.queue == Queue::peer) together = route.order;
        context = route.context;
    }
    if (reached) {
        Result<Streams*> streams = streams_in(context, copy.gpu);
        if (streams.ok() && !in_rows && (*streams)->copy_parts(copy, done)) return;
        if (streams.ok() && in_rows) {
            const std::vector<Rows> rows = rows_of_parts(copy.parts);
            together.copy = copy;
            together.copy.parts = {};
            together.copy.destination = copy.parts.front().destination;
            together.copy.source = copy.parts.front().source;
            together.copy.rows = rows;
            together.source_context = together.destination_context = nullptr;
            together.rows_may_stay = may_stay;
            if ((*streams)->start(together, done)) return;
        }
    }
    done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} copies on GPU {}: not by one launch",
                          copy.parts.size(), copy.gpu));
}

void CudaDevice::get_ready(const Copy* like) {
    if (like == nullptr) return kept_.reset();
    const Way& last = last_way(*like);
    if (last.streams != nullptr && last.losses == losses() && last.asked.gpu == like->gpu)
        kept_.emplace(driver_, last.streams->context());
}

CudaDevice::Mapped CudaDevice::mapped_ends(const Copy& copy) const {
    const auto around = [this](const void* address) {
        const IpcCache::Mapping* const mapping = mappings_.find(address);
        return mapping != nullptr ? std::optional(*mapping) : std::nullopt;
    };
    return {around(copy.source), around(copy.destination)};
}

// Both ends after a context went, and with it what was known of them. False: one cannot be had again.
bool CudaDevice::map_again(const Mapped& lost, Copy& copy) {
    if (lost.source)
        copy.source = map_again(*lost.source, copy.source);
    else
        (void)classify(copy.source, copy.bytes);
    if (lost.destination)
        copy.destination = const_cast<void*>(map_again(*lost.destination, copy.destination));
    else
        (void)classify(copy.destination, copy.bytes);
    return copy.source != nullptr && copy.destination != nullptr;
}

const void* CudaDevice::map_again(const IpcCache::Mapping& lost, const void* address) {
    if (mappings_.find(address) != nullptr) return address;  // it was another context's
    Result<Context> context = working_context(lost.gpu);
    if (!context.ok()) return nullptr;
    Result<void*> opened = mappings_.open_lost(lost, *context);
    if (!opened.ok()) return nullptr;
    return static_cast<const std::byte*>(*opened) +
           (reinterpret_cast<std::uintptr_t>(address) - lost.address);
}

}  // namespace gantry::device::cuda
