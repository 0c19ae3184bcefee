// SPDX-License-Identifier: BSD-3-Clause
#include "io/view.hpp"

namespace gantry::io {

std::int64_t View::position_of(Bytes data_byte) const {
    if (contiguous()) return displacement + static_cast<std::int64_t>(data_byte);
    return displacement + layout::offset_of(filetype, data_byte);
}

// Positions rise with the number of the data byte, so it is found by halving.
Bytes View::data_before(std::int64_t position) const {
    if (position <= displacement || filetype.size == 0) return 0;
    const Bytes reach = static_cast<Bytes>(position - displacement);
    if (contiguous()) return reach;
    // Before the end of the last element that can begin in front of it.
    const Bytes extent = static_cast<Bytes>(filetype.extent);
    Bytes low = 0, high = (extent > 0 ? reach / extent + 1 : 1) * filetype.size;
    while (low < high) {
        const Bytes middle = low + (high - low) / 2;
        if (position_of(middle) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Status check(const View& view, bool writes) {
    const layout::Layout& type = view.filetype;
    if (view.etype_bytes == 0)
        return failure(MPI_ERR_ARG, "argument etype has no data: offsets count in etypes");
    if (type.size == 0)
        return failure(MPI_ERR_ARG, "argument filetype has no data: nothing of the file is seen");
    if (type.size % view.etype_bytes != 0)
        return failure(MPI_ERR_ARG,
                       "argument filetype has {} bytes of data, which is no multiple of the {} "
                       "bytes of etype",
                       type.size, view.etype_bytes);
    if (type.form->span.low < 0)
        return failure(MPI_ERR_IO,
                       "argument filetype has data at byte {}; displacements of a filetype must "
                       "not be negative",
                       type.form->span.low);
    if (type.extent < 1 || !layout::never_falls(type))
        return failure(MPI_ERR_IO,
                       "argument filetype goes back: its displacements must not fall, from one "
                       "filetype to the next neither");
    if (writes && layout::overlaps(type))
        return failure(MPI_ERR_IO,
                       "argument filetype names bytes twice, and the file is open for writing");
    return success();
}

}  // namespace gantry::io
