// SPDX-License-Identifier: BSD-3-Clause
//
// View: which bytes of a file a rank sees, in which order (MPI 5.0 section 14.3). The filetype is
// laid side by side from the displacement on; its data bytes, numbered from 0, are the view.
//
//   file    | displacement |-- filetype --|-- filetype --| ...
//                            ####    ##     ####    ##
//   view                     0123    45     6789    ..
#pragma once

#include "base/status.hpp"
#include "layout/runs.hpp"

#include <cstdint>
#include <limits>

namespace gantry::io {

struct View {
    std::int64_t displacement = 0;
    Bytes etype_bytes = 1;
    layout::Layout filetype = layout::contiguous_layout(1);
    // Of a filetype that is longer than its extent, so that the next one would go back, or into it: only the data
    // of the first one is read and written. Set by check().
    bool one_filetype = false;

    Bytes last() const { return one_filetype ? filetype.size : std::numeric_limits<Bytes>::max(); }
    bool contiguous() const { return filetype.contiguous(); }
    // Where in the file a data byte is.
    std::int64_t position_of(Bytes data_byte) const;
    // How many data bytes lie in front of that place in the file.
    Bytes data_before(std::int64_t position) const;
    // The runs of the data bytes [first, first + bytes), from the displacement on.
    layout::RunWalk runs(Bytes first, Bytes bytes) const { return {filetype, first, bytes}; }
};

// The mean run of so many data bytes of a type; 0: it has no data.
Bytes mean_run(const layout::Layout& type, Bytes bytes);

// What MPI wants of a view; MPI_ERR_ARG, or, of places that go back or meet, MPI_ERR_IO otherwise, as
// ROMIO has it.
Status check(View& view, bool writes);
// Of data bytes [first, first + bytes), which are behind the only filetype.
Status check_reach(const View& view, Bytes first, Bytes bytes);

}  // namespace gantry::io
