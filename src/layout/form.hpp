// SPDX-License-Identifier: BSD-3-Clause
//
// Where the data bytes of one element lie, described and not listed: what is regular takes the same
// memory whatever its counts are. A Form is a list of parts in packed order. A part repeats a run of
// bytes, or an inner form, at equal distances:
//
//   contiguous    one part, a run
//   vector        one part, a run repeated
//   a face, a box one part that repeats a form, which repeats a run: one form for each dimension
//   indexed       as many parts as there is no rule between
//
// Forms do not change and are shared: a type made of another holds the other's form. They are made by
// a FormBuilder only, so that equal neighbours are one: adjacent runs are one run, equal runs at
// equal distances one part, and two levels of equal distance one level.
#pragma once

#include "base/units.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace gantry::layout {

// The bytes around an address that something touches.
struct Span {
    std::ptrdiff_t low = 0, high = 0;
    Bytes bytes() const { return static_cast<Bytes>(high - low); }
};

struct Form;
using FormPtr = std::shared_ptr<const Form>;

struct Part {
    std::ptrdiff_t offset = 0;  // of the first repetition
    Bytes packed = 0;           // of the first repetition, in packed memory
    Bytes width = 0;            // data bytes of one repetition
    Bytes count = 1;            // of repetitions
    std::ptrdiff_t stride = 0;  // from one to the next
    FormPtr inner = nullptr;    // null: a repetition is one run

    Bytes bytes() const { return width * count; }
    std::ptrdiff_t offset_of(Bytes repetition) const {
        return offset + static_cast<std::ptrdiff_t>(repetition) * stride;
    }
};

struct Form {
    std::vector<Part> parts;  // none without data
    Bytes size = 0;           // data bytes
    Span span;
    Bytes runs = 0;                   // of bytes, all repetitions counted
    Bytes widest = 0, narrowest = 0;  // of them
    bool flat = true;                 // all parts repeat runs

    bool one_run() const { return runs == 1; }
};

// `count` times the form, `stride` bytes from one to the next.
FormPtr repeated(const FormPtr& form, Bytes count, std::ptrdiff_t stride);

// Puts a form together from others, in packed order. No number that it comes to may overflow: whoever
// knows the counts has checked them.
class FormBuilder {
  public:
    // `count` times the form, `stride` bytes from one to the next.
    void add(std::ptrdiff_t offset, const FormPtr& form, Bytes count = 1,
             std::ptrdiff_t stride = 0);
    void add(const Part& part);
    void add_run(std::ptrdiff_t offset, Bytes bytes);
    // Null: there is no data.
    FormPtr finish();

  private:
    bool joins_last(const Part& part);
    void join_neighbours();

    std::vector<Part> parts_;
};

// What a builder needs at most for each form that it is given: for who asks whether there is room.
inline constexpr Bytes kFormBytes = 8 * sizeof(Part);

}  // namespace gantry::layout
