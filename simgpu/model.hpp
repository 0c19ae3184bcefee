// SPDX-License-Identifier: BSD-3-Clause
// What an operation costs on the described machine: the simulator's view of the shared cost model
// (src/model), the only part of the product this library uses. Plain functions; nothing remembers
// anything.
//
//   enqueued     max(engine free, previous end)     end
//      |-- launch --|.......|----- occupancy --------|
//
// Some operations also need a turn of the device's compute queue, which has a price when the last
// user was another process. Host calls cost their caller time as well: see CallCost in
// model/machine.hpp.
#pragma once

#include <cstddef>
#include <string>

#include "lock.hpp"
#include "model/cost.hpp"
#include "model/machine.hpp"

namespace simgpu {

inline constexpr int kNoEngine = -1;
inline constexpr int kEngines = gantry::model::kEngines;

enum class Direction { h2d, d2h, d2d, peer, peer_get, h2h };
enum class HostMemory { pinned, pageable };
enum class Shape { contiguous, strided };

struct Cost {
    int engine = kNoEngine;
    Nanoseconds launch = 0;
    Nanoseconds occupancy = 0;
    bool needs_turn = false;
};

// What a kernel moves, where its twin can tell.
struct Traffic {
    std::size_t device_bytes = 0;
    std::size_t link_bytes = 0;  // over the link to the host
};

class Model {
  public:
    // A described machine by name or by path, as it is under MPS or without; on failure h200, with a
    // complaint.
    static Model load(const std::string& name, double scale, bool mps, std::string* complaint);

    bool timed() const { return scale_ > 0; }
    double scale() const { return scale_; }
    Nanoseconds scaled(Nanoseconds machine_time) const {
        return static_cast<Nanoseconds>(static_cast<double>(machine_time) * scale_);
    }
    const gantry::model::Machine& machine() const { return machine_; }
    const gantry::model::CallCost& calls() const { return machine_.gpu.calls; }

    // All results are scaled.
    Cost copy(Direction direction, std::size_t bytes, std::size_t rows, Shape shape,
              HostMemory host, bool further) const;
    Cost fill(std::size_t bytes) const;
    Cost kernel(std::size_t threads, Traffic traffic) const;
    Cost value_write() const;
    Nanoseconds turn_price() const { return scaled(machine_.gpu.turn); }

  private:
    Cost cost_of(const gantry::model::Work& work) const;

    gantry::model::Machine machine_;
    double scale_ = 0;
};

}  // namespace simgpu
