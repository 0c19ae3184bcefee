// SPDX-License-Identifier: BSD-3-Clause
//
// Layouts on their way to a target: a layout is described to each rank once, then named by a number.
// A description lists the parts of a form, depth first:
//
//   [extent] form: [number of parts] part: [offset][width][count][stride][1: an inner form follows]
#pragma once

#include "layout/layout.hpp"
#include "rma/wire.hpp"

#include <string>
#include <unordered_map>
#include <vector>

namespace gantry::rma {

// The form of a layout as bytes.
std::string describe(const layout::Layout& layout);
// Null data: an empty layout. Fails on bytes that describe() never made.
Result<layout::Layout> layout_from(std::string_view description, std::ptrdiff_t extent);

// What one peer was told.
class ToldLayouts {
  public:
    struct Number {
        std::uint32_t layout = 0;
        bool is_new = false;  // it has to be told
    };
    Number number_of(const std::string& description, std::ptrdiff_t extent);

  private:
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

// What one peer told.
class HeardLayouts {
  public:
    Status hear(const wire::Layout& part, transport::ConstSpan bytes);
    // Null: it never told of that.
    const layout::Layout* find(std::uint32_t layout) const;

  private:
    std::string partial_;
    std::unordered_map<std::uint32_t, layout::Layout> layouts_;
};

}  // namespace gantry::rma
