// SPDX-License-Identifier: BSD-3-Clause
//
// Ways: asks the planner by which way an operation goes (plan/window_ways.hpp).
#pragma once

#include "plan/window_ways.hpp"
#include "rma/window_part.hpp"

namespace gantry::rma {

class Ways : public WindowPart {
  public:
    explicit Ways(Window& its_window) : WindowPart(its_window) {}

    plan::WindowWay way_of(const Access& access, std::uint64_t address);
    // Of a put or get, as if that were known of its target.
    plan::WindowWay way_by(const Access& access, const plan::WindowFacts& facts);
    plan::WindowFacts ways_to(int of_rank) const;
    void explain_ways() const;

  private:
    plan::WindowQuestion question_of(const Access& access);  // of a put or get
    void price(plan::WindowQuestion& question, const Target& of,
               const device::Location& origin) const;
    Bytes rendezvous_from_of(const Target& of) const;
    bool is_on_device(const Target& of) const;
};

}  // namespace gantry::rma
