// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack_external and its kin (MPI 5.0 section 5.3): packed data that every machine reads, in the
// representation "external32". The processor converts, item by item, so data of devices goes
// through a copy in host memory.
#include "coll/host_image.hpp"
#include "layout/external32.hpp"
#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/external.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "transfer/local_move.hpp"

#include <array>
#include <memory>
#include <new>
#include <string_view>

namespace gantry::mpi {
namespace {

using layout::Element;
using layout::ExternalForm;
using layout::ExternalItem;
using Memory = std::unique_ptr<std::byte[]>;

// A predefined type as items: those of a pair lie apart.
struct Items {
    std::array<ExternalItem, 2> items{};
    std::array<std::ptrdiff_t, 2> offsets{};
    int number = 1;

    Bytes external() const {
        Bytes bytes = 0;
        for (int i = 0; i < number; ++i)
            bytes += items[static_cast<std::size_t>(i)].external *
                     items[static_cast<std::size_t>(i)].count;
        return bytes;
    }
};

constexpr Bytes kExternalLong = 4, kExternalWideCharacter = 2, kExternalExtended = 16;

ExternalItem item_of(MPI_Datatype handle, Element element, Bytes bytes) {
    if (handle == MPI_LONG || (handle == MPI_LONG_INT && bytes == sizeof(long)))
        return {ExternalForm::integer, bytes, kExternalLong};
    if (handle == MPI_UNSIGNED_LONG) return {ExternalForm::natural, bytes, kExternalLong};
    if (handle == MPI_WCHAR) return {ExternalForm::natural, bytes, kExternalWideCharacter};
    switch (element) {
        case Element::long_double: return {ExternalForm::extended, bytes, kExternalExtended};
        case Element::complex_long_double:
            return {ExternalForm::extended, bytes / 2, kExternalExtended, 2};
        case Element::long_double_int:
            if (bytes == sizeof(long double))
                return {ExternalForm::extended, bytes, kExternalExtended};
            break;
        case Element::complex64:
        case Element::complex128:
        case Element::complex256: return {ExternalForm::reversed, bytes / 2, bytes / 2, 2};
        default: break;
    }
    return {ExternalForm::reversed, bytes, bytes};
}

Items items_of(const Datatype& predefined) {
    Items found;
    found.number = static_cast<int>(predefined.item_sizes.size());
    Bytes end = 0;
    for (std::size_t i = 0; i < predefined.item_sizes.size(); ++i) {
        const Bytes bytes = predefined.item_sizes[i];
        found.items[i] = item_of(predefined.handle, predefined.element, bytes);
        end = round_up(end, bytes);
        found.offsets[i] = static_cast<std::ptrdiff_t>(end);
        end += bytes;
    }
    return found;
}

}  // namespace

Bytes external_size(const Datatype& datatype) {
    if (datatype.pieces.empty()) return items_of(datatype).external();
    Bytes bytes = 0;
    for (const Piece& piece : datatype.pieces)
        bytes += piece.elements() * external_size(*piece.type);
    return bytes;
}

namespace {

// The items of elements in the order of the type map, between `native` memory and `external`.
class Conversion {
  public:
    Conversion(std::byte* external, bool packs) : external_(external), packs_(packs) {}

    // False: a value does not fit.
    bool run(const Datatype& datatype, std::byte* native, Bytes count) {
        if (datatype.pieces.empty()) return convert(datatype, native, count);
        for (Bytes i = 0; i < count; ++i, native += datatype.extent())
            for (const Piece& piece : datatype.pieces) {
                std::byte* place = native + piece.displacement;
                for (Bytes again = 0; again < piece.repeats; ++again, place += piece.stride)
                    if (!run(*piece.type, place, piece.count)) return false;
            }
        return true;
    }

  private:
    bool convert(const Datatype& predefined, std::byte* native, Bytes count) {
        const Items of = items_of(predefined);
        for (Bytes i = 0; i < count; ++i, native += predefined.extent())
            for (int each = 0; each < of.number; ++each) {
                const auto at = static_cast<std::size_t>(each);
                const ExternalItem& item = of.items[at];
                std::byte* place = native + of.offsets[at];
                if (!packs_)
                    layout::from_external32(item, external_, place);
                else if (!layout::to_external32(item, place, external_))
                    return false;
                external_ += item.external * item.count;
            }
        return true;
    }

    std::byte* external_;
    const bool packs_;
};

Status convert(const p2p::Buffer& data, const Datatype& datatype, std::byte* external, bool packs) {
    Conversion conversion(external, packs);
    if (conversion.run(datatype, static_cast<std::byte*>(data.address), data.count))
        return success();
    return failure(MPI_ERR_CONVERSION,
                   "a value does not fit its external32 form: 4 bytes of MPI_LONG and "
                   "MPI_UNSIGNED_LONG, 2 of MPI_WCHAR; MPI_INT64_T has 8");
}

}  // namespace

Status pack_external_items(const void* native, Bytes count, const Datatype& datatype,
                           std::byte* external) {
    return convert({const_cast<void*>(native), count, &datatype.layout}, datatype, external, true);
}

Status unpack_external_items(void* native, Bytes count, const Datatype& datatype,
                             const std::byte* external) {
    return convert({native, count, &datatype.layout}, datatype, const_cast<std::byte*>(external),
                   false);
}

namespace {

Task<Status> pack_through_host(Executor& executor, coll::Team team, p2p::Buffer data,
                               const Datatype* datatype, p2p::Buffer sink, Memory external,
                               MPI_Count* position) {
    coll::HostImage image;
    Status status = image.allocate(team, data.count, *data.layout);
    GANTRY_CO_TRY(status);
    status = co_await coll::copy(executor, team, data, image.buffer());
    GANTRY_CO_TRY(status);
    status = convert(image.buffer(), *datatype, external.get(), true);
    GANTRY_CO_TRY(status);
    const p2p::Buffer source = transfer::bytes_buffer(external.get(), sink.bytes());
    status = co_await transfer::copy_local(executor, *team.context, source, sink);
    if (status.ok()) *position += static_cast<MPI_Count>(sink.bytes());
    co_return status;
}

Task<Status> unpack_through_host(Executor& executor, coll::Team team, p2p::Buffer source,
                                 Memory external, p2p::Buffer data, const Datatype* datatype,
                                 MPI_Count* position) {
    coll::HostImage image;
    Status status = image.allocate(team, data.count, *data.layout);
    GANTRY_CO_TRY(status);
    const p2p::Buffer sink = transfer::bytes_buffer(external.get(), source.bytes());
    status = co_await transfer::copy_local(executor, *team.context, source, sink);
    GANTRY_CO_TRY(status);
    status = convert(image.buffer(), *datatype, external.get(), false);
    GANTRY_CO_TRY(status);
    status = co_await coll::copy(executor, team, image.buffer(), data);
    if (status.ok()) *position += static_cast<MPI_Count>(source.bytes());
    co_return status;
}

Status check_representation(const char* datarep) {
    if (std::string_view(datarep) == "external32") return success();
    return failure(MPI_ERR_ARG, "argument datarep is \"{}\"; packing knows \"external32\"",
                   datarep);
}

Result<Memory> memory_for(Bytes bytes) {
    Memory memory(new (std::nothrow) std::byte[bytes > 0 ? bytes : 1]);
    if (memory == nullptr)
        return failure(MPI_ERR_NO_MEM, "out of memory for {} bytes in external32 form", bytes);
    return memory;
}

Engine& engine() {
    return *process().engine;
}

}  // namespace

Status pack_external_size(const char* datarep, MPI_Count incount, Datatype& datatype,
                          MPI_Count* size) {
    GANTRY_TRY(check_representation(datarep));
    *size = static_cast<MPI_Count>(static_cast<Bytes>(incount) * external_size(datatype));
    return success();
}

Pending pack_external(const char* datarep, const void* inbuf, MPI_Count incount, Datatype& datatype,
                      void* outbuf, MPI_Count outsize, MPI_Count* position) {
    GANTRY_TRY(check_representation(datarep));
    const p2p::Buffer data = buffer(inbuf, incount, datatype);
    const Bytes bytes = data.count * external_size(datatype);
    GANTRY_TRY(check_packed(outsize, *position, bytes));
    std::byte* packed = static_cast<std::byte*>(outbuf) + *position;
    if (!engine().device().active()) {
        GANTRY_TRY(convert(data, datatype, packed, true));
        *position += static_cast<MPI_Count>(bytes);
        return success();
    }
    Result<Memory> external = memory_for(bytes);
    GANTRY_TRY(external.status());
    return Pending(engine(), pack_through_host(engine().executor(), engine().alone(), data,
                                               &datatype, transfer::bytes_buffer(packed, bytes),
                                               std::move(*external), position));
}

Pending unpack_external(const char* datarep, const void* inbuf, MPI_Count insize,
                        MPI_Count* position, void* outbuf, MPI_Count outcount, Datatype& datatype) {
    GANTRY_TRY(check_representation(datarep));
    const p2p::Buffer data = buffer(outbuf, outcount, datatype);
    const Bytes bytes = data.count * external_size(datatype);
    GANTRY_TRY(check_packed(insize, *position, bytes));
    const std::byte* packed = static_cast<const std::byte*>(inbuf) + *position;
    if (!engine().device().active()) {
        GANTRY_TRY(convert(data, datatype, const_cast<std::byte*>(packed), false));
        *position += static_cast<MPI_Count>(bytes);
        return success();
    }
    Result<Memory> external = memory_for(bytes);
    GANTRY_TRY(external.status());
    return Pending(engine(), unpack_through_host(engine().executor(), engine().alone(),
                                                 transfer::bytes_buffer(packed, bytes),
                                                 std::move(*external), data, &datatype, position));
}

}  // namespace gantry::mpi
