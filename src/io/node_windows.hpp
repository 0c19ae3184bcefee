// SPDX-License-Identifier: BSD-3-Clause
//
// NodeWindows: memory for windows of collective calls that all ranks of a node see (on_node.cpp). An aggregator
// makes a segment for the windows of one call and keeps it for the next call, of any file: pages that are new cost
// more than what is copied into them. The others keep what they have mapped of it. Its pages are reserved, so that a node
// without memory is an error and no signal; what is left behind when a rank dies goes with the last mapping.
#pragma once

#include "base/segment.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace gantry::io {

// Plain data: it travels as bytes.
struct NodeWindowsName {
    SegmentName segment;
    std::uint64_t number = 0;  // of the segments that this rank has made; 0: it has none
    Bytes bytes = 0;
};

class NodeWindows {
  public:
    struct Own {
        gantry::Segment segment;  // not that of a transfer
        SegmentMapping mapping;
        NodeWindowsName name;
    };
    // As an aggregator: so many bytes at least, for one call; and back, when nobody copies from them or into them.
    Result<std::unique_ptr<Own>> take(Bytes bytes);
    void give(std::unique_ptr<Own> own) { spare_ = std::move(own); }
    // Those of another rank, by its number in the job. Stay mapped as long as they are used, or few others of that rank are.
    Result<std::shared_ptr<const SegmentMapping>> map(int rank, const NodeWindowsName& name);

  private:
    struct Mapped {
        int rank;
        std::uint64_t number;
        std::shared_ptr<const SegmentMapping> mapping;
    };
    std::unique_ptr<Own> spare_;
    std::uint64_t last_number_ = 0;
    std::vector<Mapped> mapped_;  // the oldest first
};

}  // namespace gantry::io
