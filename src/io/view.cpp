// SPDX-License-Identifier: BSD-3-Clause
#include "io/view.hpp"

#include <algorithm>

namespace gantry::io {

std::int64_t View::position_of(Bytes data_byte) const {
    if (filetype.size == 0) return displacement;
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
    high = std::min(high, last());
    while (low < high) {
        const Bytes middle = low + (high - low) / 2;
        if (position_of(middle) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Bytes mean_run(const layout::Layout& type, Bytes bytes) {
    if (type.size == 0) return 0;
    return type.contiguous() ? bytes : type.size / type.form->runs;
}

Status check(View& view, bool writes) {
    const layout::Layout& type = view.filetype;
    if (view.etype_bytes == 0)
        return failure(MPI_ERR_ARG, "argument etype has no data: offsets count in etypes");
    // Of a rank that has no part in what the others read and write.
    if (type.size == 0) {
        view.one_filetype = true;
        return success();
    }
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
    if (type.extent < 1 || !layout::never_falls(type, layout::Elements::one))
        return failure(MPI_ERR_IO, "argument filetype goes back: its displacements must not fall");
    if (writes && layout::overlaps(type, layout::Elements::one))
        return failure(MPI_ERR_IO,
                       "argument filetype names bytes twice, and the file is open for writing");
    view.one_filetype = !layout::never_falls(type) || (writes && layout::overlaps(type));
    return success();
}

Status check_reach(const View& view, Bytes first, Bytes bytes) {
    if (first + bytes <= view.last()) return success();
    return failure(
        MPI_ERR_IO,
        "{} bytes from data byte {} of the view on end behind its first filetype ({} "
        "bytes), whose extent of {} is less than it reaches: the next one would lie in it",
        bytes, first, view.filetype.size, view.filetype.extent);
}

}  // namespace gantry::io
