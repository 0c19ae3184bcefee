// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/world.hpp"

#include "p2p/wire.hpp"
#include "rma/windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

namespace gantry::world {
namespace {

using transport::fake::Fabric;
using transport::fake::FabricOptions;
using transport::fake::Medium;

// Protocols also wait by the clock (claims, timeouts): engines look at it at least this often.
constexpr Nanoseconds kLook = 5 * kMicrosecond;
// Longer than any time-out of a protocol: a world that is quiet for so long is stuck.
constexpr Nanoseconds kQuietForEver = 60 * kSecond;
constexpr Nanoseconds kDeathNotice = 100 * kMicrosecond;

bool is_envelope(transport::MessageKind kind) {
    return kind == p2p::wire::kEager || kind == p2p::wire::kEagerSynchronous ||
           kind == p2p::wire::kRts || kind == p2p::wire::kSigned || kind >= rma::wire::kPut;
}

model::Machine machine_of(const Options& options) {
    Result<model::Machine> machine = model::load(options.machine);
    GANTRY_ASSERT(machine.ok());
    if (!options.cold_slots) machine->gpu.calls.register_host = 0;
    if (options.change_machine) options.change_machine(machine.value());
    return std::move(machine).value();
}

config::Config config_of(const Options& options) {
    config::Config config;
    config.idle_timeout =
        0;  // whether a kernel stays depends on what was before, and most tests count
    if (options.mechanisms != nullptr)
        config.mechanisms = options.mechanisms;
    else if (const auto mechanisms = config::environment("GANTRY_MECHANISMS"))
        config.mechanisms = *mechanisms;
    if (options.change_config) options.change_config(config);
    return config;
}

std::vector<int> nodes_of(const Options& options) {
    std::vector<int> nodes;
    for (int rank = 0; rank < options.ranks; ++rank)
        nodes.push_back(rank / options.ranks_per_node);
    return nodes;
}

// Worlds with coroutines that will never end: their frames must not be destroyed (base/task.hpp).
std::vector<std::shared_ptr<void>>& graveyard() {
    static auto* const graves = new std::vector<std::shared_ptr<void>>;
    return *graves;
}

}  // namespace

struct World::State {
    explicit State(const Options& options)
        : machine(machine_of(options)),
          config(config_of(options)),
          timeline(options.seed),
          nodes(nodes_of(options)),
          gpus(timeline, machine, nodes.back() + 1),
          key_value_space(nodes),
          shared_memory(timeline, fabric_options(options, Medium::shared_memory), nodes),
          network(timeline, fabric_options(options, Medium::network), nodes) {
        gpus.set_jitter(options.jitter);
    }
    FabricOptions fabric_options(const Options& options, Medium medium) {
        FabricOptions fabric;
        fabric.medium = medium;
        fabric.link = medium == Medium::network ? machine.network : machine.shared_memory;
        fabric.jitter = options.jitter;
        fabric.refuse_pools = options.refuse_pools;
        fabric.host_pool = config.host_pool;
        fabric.device_pool = config.device_pool;
        fabric.order =
            medium == Medium::network ? options.network_order : options.shared_memory_order;
        fabric.on_send = medium == Medium::network ? options.on_send : options.on_send_in_node;
        fabric.reads = options.reads;
        fabric.refuse_read = options.refuse_read;
        if (medium == Medium::network) {
            fabric.exposes_from = options.exposes_from;
            if (options.duplicate_envelopes) fabric.duplicate = &is_envelope;
            if (options.copies_through_host)
                fabric.bounce = model::Rate(machine.host.memcpy.peak());
        }
        fabric.trace = options.trace;
        fabric.on_arrival = [this](int rank) { on_told(rank); };
        fabric.registrations = {static_cast<std::size_t>(config.registration_entries),
                                config.registration_bytes};
        fabric.host_pages = options.host_pages;
        fabric.refuse_registration = options.refuse_registration;
        fabric.gpudirect = options.gpudirect;
        fabric.spend = [this](int rank, Nanoseconds time) {
            if (time > 0) ranks[static_cast<std::size_t>(rank)]->processor.spend(time);
        };
        fabric.behind = [this](int rank, const void* address, Bytes bytes) -> std::byte* {
            std::byte* stored =
                ranks[static_cast<std::size_t>(rank)]->device.behind(address, bytes);
            return stored == address ? nullptr : stored;
        };
        return fabric;
    }
    model::Machine machine;
    config::Config config;
    model::Timeline timeline;
    std::vector<int> nodes;
    device::fake::Gpus gpus;
    job::fake::KeyValueSpace key_value_space;
    Fabric shared_memory, network;
    std::vector<std::unique_ptr<Rank>> ranks;
    bool has_unfinished_frames = false;

    // Of Turns::of_those_told: whose progress() has something to see, who waits for its next turn, and
    // which processors work until when.
    using Free = std::pair<Nanoseconds, int>;
    std::vector<int> told, pollers;
    std::priority_queue<Free, std::vector<Free>, std::greater<>> free_at;
    Nanoseconds everybody_at = 0;  // looked at
    std::function<void(int rank)> on_told;
};

// --- Rank ---------------------------------------------------------------------------------------

Rank::Rank(World& its_world, int its_number)
    : world(its_world),
      number(its_number),
      processor(its_world.timeline()),
      executor(processor),
      device(processor, its_world.state_->gpus, number,
             its_world.state_->nodes[static_cast<std::size_t>(number)]),
      job(its_world.state_->key_value_space, number),
      explain(its_world.options_.explain),
      transfer(executor, device,
               {&its_world.shared_memory().end(number), &its_world.network().end(number)}, number,
               its_world.ranks(), its_world.state_->config, explain),
      messenger(transfer),
      all_windows(std::make_unique<rma::Windows>(transfer, messenger)),
      windows(*all_windows) {
    all.context = 1;
    all.rank = number;
    all.peers.resize(static_cast<std::size_t>(its_world.ranks()));
    std::iota(all.peers.begin(), all.peers.end(), 0);
    const config::Config& config = its_world.state_->config;
    device.let_kernels(config.kernels, config.idle_timeout);
    device.on_flush = [this] { world.network().settle(number); };
    device.on_end = [this] { world.tell(number); };
    for (Fabric* fabric : {&world.shared_memory(), &world.network()}) {
        const Status opened = fabric->end(number).open(job, transfer.messages);
        GANTRY_ASSERT(opened.ok());
    }
}

Rank::~Rank() = default;

Task<Status> Rank::sleep(Executor& its_executor, Nanoseconds time) {
    Completion awake(its_executor);
    world.timeline().at(processor.now() + time, [this, &awake] {
        awake.complete(success());
        world.tell(number);
    });
    Status status = co_await awake;
    co_return status;
}

Task<Status> Rank::driver_copy(Executor& its_executor, void* destination, const void* source,
                               Bytes bytes) {
    Completion done(its_executor);
    device.copy({destination, source, bytes, 0, device::Engine::automatic}, done);
    Status status = co_await done;
    co_return status;
}

int Rank::progress() {
    if (dead_ || processor.busy()) return 0;
    return messenger.progress() + windows.progress();
}

// --- Ending -------------------------------------------------------------------------------------

bool Ending::good() const {
    return !stuck && std::all_of(results.begin(), results.end(),
                                 [](const Status& status) { return status.ok(); });
}

std::ostream& operator<<(std::ostream& out, const Ending& ending) {
    out << "seed " << ending.seed << ", " << ending.time << " ns";
    for (std::size_t rank = 0; rank < ending.results.size(); ++rank)
        if (!ending.results[rank].ok())
            out << "\n  rank " << rank << ": " << ending.results[rank].text();
    if (ending.stuck) out << "\n  nothing can move any more:\n" << ending.story;
    return out;
}

// --- World --------------------------------------------------------------------------------------

World::World(Options options)
    : options_(std::move(options)), state_(std::make_unique<State>(options_)) {
    state_->on_told = [this](int rank) { tell(rank); };
    for (int number = 0; number < options_.ranks; ++number)
        state_->ranks.push_back(std::make_unique<Rank>(*this, number));
}

World::~World() {
    for (const auto& rank : state_->ranks) {
        if (rank->program_ && !rank->program_->done()) state_->has_unfinished_frames = true;
        if (!rank->messenger.idle()) state_->has_unfinished_frames = true;
    }
    if (state_->has_unfinished_frames) graveyard().emplace_back(state_.release());
}

Rank& World::rank(int number) {
    return *state_->ranks[static_cast<std::size_t>(number)];
}
const model::Machine& World::machine() const {
    return state_->machine;
}
model::Timeline& World::timeline() {
    return state_->timeline;
}
Fabric& World::network() {
    return state_->network;
}
Fabric& World::shared_memory() {
    return state_->shared_memory;
}

void World::kill(int number) {
    rank(number).dead_ = true;
    rank(number).device.kill();
    state_->key_value_space.kill(number);
    state_->shared_memory.kill(number, kDeathNotice);
    state_->network.kill(number, kDeathNotice);
}

void World::kill_at(Nanoseconds time, int number) {
    timeline().at(time, [this, number] { kill(number); });
}

// What comes to a rank, those of its node may see, too: they share memory.
void World::tell(int number) {
    if (options_.turns == Turns::of_everybody) return;
    const int first = number / options_.ranks_per_node * options_.ranks_per_node;
    const int end =
        std::min(first + options_.ranks_per_node, static_cast<int>(state_->ranks.size()));
    for (int each = first; each < end; ++each)
        if (!std::exchange(rank(each).told_, true)) state_->told.push_back(each);
}

void World::tell_everybody() {
    state_->everybody_at = timeline().now();
    state_->told.resize(state_->ranks.size());
    std::iota(state_->told.begin(), state_->told.end(), 0);
    for (const auto& rank : state_->ranks)
        rank->told_ = true;
}

// A turn for each of them; who comes first is a matter of the seed.
int World::move(const std::vector<int>& told) {
    int all_events = 0;
    const auto first = static_cast<std::size_t>(timeline().random(told.size()));
    for (std::size_t i = 0; i < told.size(); ++i) {
        Rank& moved = rank(told[(first + i) % told.size()]);
        const int events = moved.progress();
        all_events += events;
        if (options_.turns == Turns::of_everybody) continue;
        if (!moved.turns_.empty()) state_->pollers.push_back(moved.number);
        if (moved.processor.busy())
            state_->free_at.emplace(moved.processor.busy_until(), moved.number);
        // What it did, others of its node may see now; itself when it is free again.
        if (events > 0 || (moved.executor.has_ready() && !moved.processor.busy()))
            tell(moved.number);
    }
    return all_events;
}

// Turns until nobody has anything left to do at this moment.
int World::move_everything() {
    const bool all = options_.turns == Turns::of_everybody;
    if (all || timeline().now() - state_->everybody_at >= kLook) tell_everybody();
    for (const int number : std::exchange(state_->pollers, {}))
        tell(number);
    for (const int number : state_->told) {
        Rank& each = rank(number);
        if (each.dead_ || each.processor.busy()) continue;
        for (Resumable* waiting : std::exchange(each.turns_, {}))
            each.executor.make_ready(*waiting);
    }
    int all_events = 0;
    while (!state_->told.empty()) {
        const std::vector<int> told = std::exchange(state_->told, {});
        for (const int number : told)
            rank(number).told_ = false;
        const int events = move(told);
        all_events += events;
        if (all && events > 0) tell_everybody();
    }
    return all_events;
}

// When the first processor that works now is done; those that are done are told of.
Nanoseconds World::next_free() {
    auto& free_at = state_->free_at;
    for (; !free_at.empty() && free_at.top().first <= timeline().now(); free_at.pop())
        tell(free_at.top().second);
    return free_at.empty() ? std::numeric_limits<Nanoseconds>::max() : free_at.top().first;
}

// To the next event, or a little further for those who wait by the clock. False when it has been
// quiet for too long.
bool World::pass_time(Nanoseconds& quiet_since) {
    model::Timeline& timeline = state_->timeline;
    Nanoseconds next = timeline.now() + kLook;
    // Nothing is planned: time-outs are all that is left, so look less and less often.
    if (timeline.empty())
        next = timeline.now() + std::max(kLook, (timeline.now() - quiet_since) / 8);
    for (const auto& rank : state_->ranks) {
        if (options_.turns == Turns::of_those_told) break;
        if (!rank->dead_ && rank->processor.busy())
            next = std::min(next, rank->processor.busy_until());
    }
    next = std::min(next, next_free());
    if (timeline.empty() || timeline.next_time() > next) {
        timeline.advance_to(next);
        next_free();
        return timeline.now() - quiet_since < kQuietForEver;
    }
    const Nanoseconds now = timeline.next_time();
    while (!timeline.empty() && timeline.next_time() == now)
        timeline.run_next();
    next_free();
    quiet_since = now;
    return true;
}

Ending World::run(const Program& program) {
    Ending ending;
    ending.seed = options_.seed;
    const Nanoseconds begin = timeline().now();
    for (const auto& rank : state_->ranks) {
        if (rank->dead_) continue;
        rank->program_.emplace(program(*rank));
        rank->program_->start();
        tell(rank->number);
    }
    const auto running = [this] {
        return std::any_of(state_->ranks.begin(), state_->ranks.end(), [](const auto& rank) {
            return !rank->dead_ && rank->program_ && !rank->program_->done();
        });
    };
    Nanoseconds quiet_since = begin;
    for (move_everything(); running(); move_everything()) {
        if (pass_time(quiet_since)) continue;
        ending.stuck = true;
        ending.story = who_waits();
        break;
    }
    ending.time = timeline().now() - begin;
    for (const auto& rank : state_->ranks) {
        const bool ended = !rank->dead_ && rank->program_ && rank->program_->done();
        ending.results.push_back(ended ? rank->program_->take() : success());
    }
    return ending;
}

bool World::settle() {
    Nanoseconds quiet_since = timeline().now();
    for (;;) {
        const int events = move_everything();
        const bool waiting =
            std::any_of(state_->ranks.begin(), state_->ranks.end(),
                        [](const auto& rank) { return !rank->dead_ && rank->processor.busy(); });
        if (events == 0 && timeline().empty() && !waiting) break;
        if (!pass_time(quiet_since)) break;
    }
    return std::all_of(state_->ranks.begin(), state_->ranks.end(), [](const auto& rank) {
        return rank->dead_ || (rank->messenger.idle() && rank->windows.idle());
    });
}

std::string World::who_waits() const {
    std::string story;
    for (const auto& rank : state_->ranks) {
        story += fmt::format("    rank {}: {}", rank->number,
                             rank->dead_                                 ? "dead"
                             : !rank->program_ || rank->program_->done() ? "program ended"
                                                                         : "program waits");
        story += fmt::format(", {} copies in flight, {} tasks alive\n", rank->device.in_flight(),
                             rank->executor.live_frames());
        // Slots of the slab are reused last, so a short world has its requests in the first few
        // hundred.
        for (std::uint32_t index = 0; index < 1024; ++index) {
            const p2p::Request* request = rank->messenger.at(index);
            if (request == nullptr || request->done) continue;
            story += request->kind == p2p::RequestKind::receive
                         ? fmt::format("      receive of up to {} bytes from {} with tag {}\n",
                                       request->buffer.bytes(), request->source, request->tag)
                         : std::string("      a send\n");
        }
    }
    return story;
}

}  // namespace gantry::world
