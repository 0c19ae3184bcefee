// SPDX-License-Identifier: BSD-3-Clause
//
// A few elements at a time: from the program's buffer into an image in host memory (its own memory
// where that is the host's), into the form of the file, to the file; and back.
#include "mpi/io/conversion.hpp"

#include "base/program_call.hpp"
#include "transfer/buffer.hpp"
#include "coll/host_image.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/external.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/io/file.hpp"

#include <algorithm>
#include <climits>
#include <memory>
#include <new>

namespace gantry::mpi {
namespace {

constexpr Bytes kPiece = 4 * kMiB;

// One call of a program's conversion function.
struct Conversion {
    const Datarep* datarep;
    io::Direction direction;
    void* memory;
    Bytes count;
    MPI_Datatype datatype;
    std::byte* file;
    int code;
};

void call_program(const void* what) {
    auto& of = *const_cast<Conversion*>(static_cast<const Conversion*>(what));
    const Datarep& rep = *of.datarep;
    const bool reads = of.direction == io::Direction::read;
    const auto count = static_cast<MPI_Count>(of.count);
    if (auto* large = reads ? rep.read_c : rep.write_c; large != nullptr)
        of.code = large(of.memory, of.datatype, count, of.file, 0, rep.extra_state);
    else if (auto* small = reads ? rep.read : rep.write; small != nullptr)
        of.code =
            small(of.memory, of.datatype, static_cast<int>(count), of.file, 0, rep.extra_state);
}

bool has_function(const Datarep& rep, io::Direction direction) {
    return direction == io::Direction::read ? rep.read != nullptr || rep.read_c != nullptr
                                            : rep.write != nullptr || rep.write_c != nullptr;
}

Task<Status> convert(Executor& executor, Conversion of, const Datatype* datatype) {
    const bool reads = of.direction == io::Direction::read;
    if (of.datarep->kind == Datarep::Kind::external32) {
        if (reads) co_return unpack_external_items(of.memory, of.count, *datatype, of.file);
        co_return pack_external_items(of.memory, of.count, *datatype, of.file);
    }
    if (!has_function(*of.datarep, of.direction)) {
        const Bytes bytes = of.count * datatype->size();
        if (reads)
            layout::unpack(datatype->layout, of.memory, 0, bytes, of.file);
        else
            layout::pack(datatype->layout, of.memory, 0, bytes, of.file);
        co_return success();
    }
    ProgramCall call(executor, &call_program, &of);
    co_await call;
    if (of.code != MPI_SUCCESS)
        co_return failure(MPI_ERR_CONVERSION,
                          "the {} conversion function of representation \"{}\" returned {}",
                          reads ? "read" : "write", of.datarep->name, of.code);
    co_return success();
}

}  // namespace

Task<Status> transfer_converted(Executor& executor, File* fh, io::Access access,
                                const Datarep* datarep, const Datatype* datatype, Bytes in_file,
                                Bytes* moved) {
    *moved = 0;
    Engine& engine = *fh->engine;
    const std::uint64_t count = access.buffer.count;
    if (count == 0 || in_file == 0) co_return success();
    const std::uint64_t at_once = std::clamp<std::uint64_t>(
        kPiece / std::max(in_file, datatype->size()), 1, std::min<std::uint64_t>(count, INT_MAX));
    const std::unique_ptr<std::byte[]> external(new (std::nothrow) std::byte[at_once * in_file]);
    if (external == nullptr)
        co_return failure(MPI_ERR_NO_MEM, "out of memory for {} bytes in the form of \"{}\"",
                          at_once * in_file, datarep->name);
    const bool reads = access.direction == io::Direction::read;
    for (std::uint64_t done = 0; done < count; done += at_once) {
        const std::uint64_t elements = std::min(at_once, count - done);
        const p2p::Buffer part = coll::part_of(access.buffer, done, elements);
        const coll::Team alone = engine.alone();
        coll::HostImage image;
        const bool in_place = coll::on_host(alone, part);
        if (in_place)
            image.borrow(part);
        else if (Status none = image.allocate(alone, elements, *part.layout))
            co_return none;
        Conversion conversion{datarep,          access.direction, image.address(), elements,
                              datatype->handle, external.get(),   MPI_SUCCESS};
        io::Access of_bytes = access;
        of_bytes.first = access.first + done * in_file;
        of_bytes.buffer = transfer::bytes_buffer(external.get(), elements * in_file);
        Bytes bytes = 0;
        if (!reads) {
            if (!in_place) {
                Status copied = co_await coll::copy(executor, alone, part, image.buffer());
                GANTRY_CO_TRY(copied);
            }
            Status converted = co_await convert(executor, conversion, datatype);
            GANTRY_CO_TRY(converted);
        }
        Status ended = co_await fh->file->transfer(executor, of_bytes, &bytes);
        GANTRY_CO_TRY(ended);
        const std::uint64_t whole = bytes / in_file;
        if (reads && whole > 0) {
            conversion.count = whole;
            Status converted = co_await convert(executor, conversion, datatype);
            GANTRY_CO_TRY(converted);
            if (!in_place) {
                const p2p::Buffer target = coll::part_of(access.buffer, done, whole);
                const p2p::Buffer source = image.first(whole);
                Status copied = co_await coll::copy(executor, alone, source, target);
                GANTRY_CO_TRY(copied);
            }
        }
        *moved += whole * datatype->size();
        if (whole < elements) break;
    }
    co_return success();
}

}  // namespace gantry::mpi
