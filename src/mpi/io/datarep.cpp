// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/io/datarep.hpp"

#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/external.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/io/file_form.hpp"

#include <cstring>

namespace gantry::mpi {
namespace {

// Whether every basic item takes as many bytes in the file as in memory.
bool same_sizes(const Datarep& datarep, const Datatype& datatype) {
    if (!datatype.pieces.empty()) {
        for (const Piece& piece : datatype.pieces)
            if (!same_sizes(datarep, *piece.type)) return false;
        return true;
    }
    Result<Bytes> size = datarep.size_of(datatype);
    return size.ok() && *size == datatype.size();
}

}  // namespace

Result<Bytes> Datarep::size_of(const Datatype& datatype) const {
    if (!converts()) return datatype.size();
    if (kind == Kind::external32) return external_size(datatype);
    if (!datatype.pieces.empty()) {
        Bytes bytes = 0;
        for (const Piece& piece : datatype.pieces) {
            Result<Bytes> each = size_of(*piece.type);
            GANTRY_TRY(each.status());
            bytes += piece.elements() * *each;
        }
        return bytes;
    }
    MPI_Aint bytes = 0;
    const int code = [&] {
        const LetOthersIn program;
        return extent(datatype.handle, &bytes, extra_state);
    }();
    if (code != MPI_SUCCESS || bytes < 0)
        return failure(MPI_ERR_CONVERSION,
                       "the extent function of representation \"{}\" returned {} for {}", name,
                       code, datatype.name);
    return static_cast<Bytes>(bytes);
}

Result<layout::Layout> Datarep::layout_of(const Datatype& datatype) const {
    if (!converts() || same_sizes(*this, datatype)) return datatype.layout;
    return layout_in_file(*this, datatype);
}

Datareps::Datareps() {
    for (const char* name : {"native", "internal", "external32"}) {
        auto datarep = std::make_unique<Datarep>();
        datarep->name = name;
        if (std::strcmp(name, "external32") == 0) datarep->kind = Datarep::Kind::external32;
        all_.push_back(std::move(datarep));
    }
}

const Datarep* Datareps::find(std::string_view name) const {
    for (const auto& each : all_)
        if (each->name == name) return each.get();
    return nullptr;
}

Status Datareps::add(Datarep datarep) {
    if (find(datarep.name) != nullptr)
        return failure(MPI_ERR_DUP_DATAREP,
                       "argument datarep: there is a representation \"{}\" already", datarep.name);
    all_.push_back(std::make_unique<const Datarep>(std::move(datarep)));
    return success();
}

Status register_datarep(const char* datarep, MPI_Datarep_conversion_function* read_conversion_fn,
                        MPI_Datarep_conversion_function_c* read_conversion_fn_c,
                        MPI_Datarep_conversion_function* write_conversion_fn,
                        MPI_Datarep_conversion_function_c* write_conversion_fn_c,
                        MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state) {
    if (*datarep == '\0' || std::strlen(datarep) >= MPI_MAX_DATAREP_STRING)
        return failure(MPI_ERR_ARG,
                       "argument datarep must have 1 to {} characters (MPI_MAX_DATAREP_STRING)",
                       MPI_MAX_DATAREP_STRING - 1);
    Datarep made;
    made.name = datarep;
    made.kind = Datarep::Kind::registered;
    made.read = read_conversion_fn;
    made.read_c = read_conversion_fn_c;
    made.write = write_conversion_fn;
    made.write_c = write_conversion_fn_c;
    made.extent = dtype_file_extent_fn;
    made.extra_state = extra_state;
    if (made.converts() && made.extent == nullptr)
        return failure(MPI_ERR_ARG,
                       "argument dtype_file_extent_fn is a null pointer; who converts must tell "
                       "how many bytes a datatype has in the file");
    return process().datareps.add(std::move(made));
}

}  // namespace gantry::mpi
