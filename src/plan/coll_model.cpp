// SPDX-License-Identifier: BSD-3-Clause
#include "plan/coll_model.hpp"

#include "plan/coll_limits.hpp"

#include <algorithm>
#include <bit>

namespace gantry::plan {
namespace {

double over(Bytes bytes, double bytes_per_second) {
    return bytes_per_second > 0 ? static_cast<double>(bytes) * 1e9 / bytes_per_second : 0;
}

// Two H100s: one message 8.7 us, an exchange about 15.
constexpr double kExchangeOnDevices = 1.8;
// What long messages reach of the rate of one way, in each direction: both ways between two GPUs, and
// between all of several (four H100s: an allgather of 64 MiB so took 1,157 us, by stores 676).
constexpr double kBothWays = 0.85, kAllAtOnce = 0.5;
// Each further message at once, of one: eight H200s, a copy engine for each peer, 45 us for 7 blocks.
constexpr double kFurtherOnDevice = 0.5;
// A vector in device memory is combined in pieces, a launch for each, whose end is seen so much later.
constexpr double kCombinedSeen = 4300;
// Ways of a message of device memory to another node, which is never sent at once: the question, the answer, the
// bytes, and the word that they are there, which waits for the card's (4.5 in worlds of H200s).
constexpr double kOfDevice = 4.5;

double latency(const CollWay& way, Bytes bytes) {
    const auto once = static_cast<double>(way.latency);
    return bytes > way.eager_limit ? 3 * once : once;
}

}  // namespace

double network_rate(const CollFacts& facts, int sharing) {
    const int ranks_of_a_card = (std::max(sharing, 1) + facts.cards - 1) / facts.cards;
    return facts.between.bytes_per_second / ranks_of_a_card;
}

CollAsk::CollAsk(const CollQuestion& q, const CollFacts& f, const CollTuning& t)
    : question(q),
      facts(f),
      tuning(t),
      ranks(std::max(q.shape.ranks, 1)),
      rounds(std::bit_width(static_cast<unsigned>(ranks - 1))),
      bytes(q.bytes),
      crowd(f.processors > 0 ? std::max(1.0, static_cast<double>(q.shape.most) / f.processors)
                             : 1.0),
      turn(crowd > 1 ? static_cast<double>(f.processor_turn) : 0) {}

int CollAsk::lower_power_of_two() const {
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
}

double CollAsk::between_devices(Bytes each, int directions) const {
    const CollGpu& gpu = facts.gpu;
    // Both sides of an exchange are the receiver of one message: two calls, one after the other.
    const double messages = directions > 1 ? kExchangeOnDevices : 1;
    const double of_gpu = question.node_segment.time_sliced ? static_cast<double>(gpu.turn) : 0;
    const double rate = question.node_segment.time_sliced
                            ? gpu.local_bytes_per_second
                            : gpu.peer_bytes_per_second * (directions > 1 ? kBothWays : 1);
    return messages * static_cast<double>(gpu.message) + turn + of_gpu + over(each, rate);
}

double CollAsk::from_device(Bytes each, int others) const {
    return between_devices(each * static_cast<Bytes>(others), 1) +
           (others - 1) * kFurtherOnDevice * static_cast<double>(facts.gpu.message);
}

double CollAsk::to_neighbors(Bytes all) const {
    const auto further = static_cast<double>(neighbor_blocks() - 1);
    if (!on_device())
        return latency(facts.inside, all) + further * static_cast<double>(facts.inside.handling) +
               2 * over(all, facts.inside.bytes_per_second);
    const CollGpu& gpu = facts.gpu;
    // Those of GPUs that ranks share are staged: a copy on each side, which takes no turn.
    if (question.node_segment.time_sliced)
        return static_cast<double>(gpu.out + gpu.copy) * (further + 1) +
               2 * over(all, gpu.host_bytes_per_second);
    return between_devices(all, 2) + further * kFurtherOnDevice * static_cast<double>(gpu.message);
}

double CollAsk::inside(Bytes each, int directions) const {
    if (on_device()) return between_devices(each, directions);
    return turn + crowd * (latency(facts.inside, each) +
                           directions * over(each, facts.inside.bytes_per_second));
}

double CollAsk::to_other_node(Bytes each) const {
    if (each > 0 && on_device()) return kOfDevice * static_cast<double>(facts.between.latency);
    return latency(facts.between, each);
}

double CollAsk::between(Bytes each, int sharing) const {
    return to_other_node(each) + over(each, network_rate(facts, sharing));
}

double CollAsk::shift(Bytes each, int distance) const {
    const CollShape& shape = question.shape;
    if (shape.nodes <= 1) return inside(each, 2);
    const int crossing = shape.in_order ? std::min(distance, shape.most) : shape.most;
    return std::max(between(each, crossing), shape.most > crossing ? inside(each, 2) : 0.0);
}

double CollAsk::further_shift(Bytes each) const {
    const CollShape& shape = question.shape;
    if (shape.nodes <= 1) return shift(each, 1);
    const double wire = over(each, network_rate(facts, shape.in_order ? 1 : shape.most));
    // Pieces that ask first are awaited ahead: one asks while those before it come.
    const double asking = to_other_node(each) - static_cast<double>(facts.between.latency);
    return std::max({wire + asking / kRelayLimits.chain_ahead,
                     2 * static_cast<double>(facts.between.handling),
                     shape.most > 1 ? inside(each, 2) : 0.0});
}

bool CollAsk::may_be_staged() const {
    return question.shape.nodes > 1 && tuning.devices && !facts.network_reaches_devices &&
           bytes >= kKnownMemoryLimits.long_from;
}

double CollAsk::copied_to_host(Bytes bytes_of_copy) const {
    return over(bytes_of_copy, facts.gpu.host_bytes_per_second);
}

double CollAsk::staging(Bytes out, Bytes in) const {
    return 2 * static_cast<double>(facts.gpu.out) + copied_to_host(out + in);
}

double CollAsk::swap(Bytes each, int distance) const {
    const CollShape& shape = question.shape;
    const bool alike = shape.in_order && shape.most == shape.fewest &&
                       std::has_single_bit(static_cast<unsigned>(shape.most));
    if (shape.nodes <= 1 || (alike && distance < shape.most)) return inside(each, 2);
    return between(each, shape.most);
}

double CollAsk::one_way(Bytes each, int distance) const {
    const CollShape& shape = question.shape;
    if (shape.nodes <= 1 || (shape.in_order && distance < shape.fewest)) return inside(each, 1);
    return between(each, 1);
}

double CollAsk::to_all(Bytes each) const {
    const CollShape& shape = question.shape;
    const double near = shape.most - 1, far = ranks - shape.most;
    if (on_device() && shape.nodes <= 1)
        return between_devices(0, 2) +
               (near - 1) * kFurtherOnDevice * static_cast<double>(facts.gpu.message) +
               near * over(each,
                           facts.gpu.peer_bytes_per_second * (near > 1 ? kAllAtOnce : kBothWays));
    const double by_processors = crowd * near *
                                 (2 * static_cast<double>(facts.inside.handling) +
                                  2 * over(each, facts.inside.bytes_per_second));
    const double by_network = far * (2 * static_cast<double>(facts.between.handling) +
                                     over(each, network_rate(facts, shape.most)));
    return (shape.nodes > 1 ? to_other_node(each) : inside(0, 1)) + by_processors + by_network;
}

double CollAsk::at_root(Bytes each) const {
    const CollShape& shape = question.shape;
    const double near = shape.most - 1, far = ranks - shape.most;
    if (on_device() && shape.nodes <= 1) return from_device(each, ranks - 1);
    const double by_processor =
        crowd * near *
        (static_cast<double>(facts.inside.handling) + over(each, facts.inside.bytes_per_second));
    const double by_network = far * (static_cast<double>(facts.between.handling) +
                                     over(each, facts.between.bytes_per_second));
    const double start =
        shape.nodes > 1 ? to_other_node(each) : turn + crowd * latency(facts.inside, each);
    return start + by_processor + by_network;
}

double CollAsk::combine(Bytes vector) const {
    if (on_device()) {
        const auto launches =
            std::max(1.0, static_cast<double>(whole(vector, combined_piece(vector, tuning))));
        return launches * (static_cast<double>(facts.gpu.launch) + kCombinedSeen) +
               over(vector, facts.gpu.local_bytes_per_second);
    }
    return crowd * over(vector, facts.reduce_bytes_per_second);
}

double CollAsk::copy(Bytes moved) const {
    if (on_device())
        return static_cast<double>(facts.gpu.copy) + over(moved, facts.gpu.local_bytes_per_second);
    return crowd * over(moved, facts.copy_bytes_per_second);
}

}  // namespace gantry::plan
