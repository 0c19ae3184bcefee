// SPDX-License-Identifier: BSD-3-Clause
//
// World: N whole engines in one thread on a described machine - real messengers and protocols over
// fake devices, transports and job, on a virtual clock. A program is a coroutine that every rank
// runs:
//
//     Task<Status> program(Rank& rank);   // a free function: no capturing lambda (base/task.hpp)
//
//     World world({.machine = "c2050-qdr", .ranks = 2, .seed = 7});
//     const Ending ending = world.run(program);
//     EXPECT_TRUE(ending.good()) << ending;
//
// A run ends when every program has ended, or when nothing can move any more. An ending says the
// seed and, when stuck, who waits for what.
//
// The same options and seed give the same run: `trace_hash()` is equal. Jitter, reordering and
// duplicates come from the seed.
#pragma once

#include "device/fake/device.hpp"
#include "job/fake/job.hpp"
#include "model/timeline.hpp"
#include "p2p/messenger.hpp"
#include "transfer/context.hpp"
#include "plan/explain.hpp"
#include "transport/fake/fabric.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace gantry::rma {
class Windows;
}

namespace gantry::world {

enum class Turns : std::uint8_t { of_everybody, of_those_told };

struct Options {
    std::string machine = "c2050-qdr";
    int ranks = 2;
    int ranks_per_node = 1;
    std::uint64_t seed = 1;
    Nanoseconds jitter = 0;  // of copies and links
    // Those that a test is about, as GANTRY_MECHANISMS names them. Null: what the environment says; CI
    // runs the world with none, too.
    const char* mechanisms = nullptr;
    transport::fake::Order network_order = transport::fake::Order::kept;
    // Real rings keep the order; shuffled, this is a network whose messages carry the data.
    transport::fake::Order shared_memory_order = transport::fake::Order::kept;
    bool duplicate_envelopes = false;  // of the network
    bool refuse_pools = false;
    bool copies_through_host =
        false;  // "without GPUDirect v1": one host copy more on each side of the network
    // Whether ranks hear of host memory that a program gives back (Bytebuffer does say so).
    transport::HostPages host_pages = transport::HostPages::noticed;
    std::function<bool(int rank, const transport::Extent& extent)> refuse_registration = {};
    // Ranks record which paths messages took, for `gantry explain`. What runs is the same without.
    bool explain = true;
    // Asked before each message leaves by the network; a failure is its sender's.
    std::function<Status(int rank, transport::MessageKind kind)> on_send = {};
    std::function<Status(int rank, transport::MessageKind kind)> on_send_in_node = {};
    // Messages over the network of at least so much expose host memory (Transport::expose); 0: none.
    Bytes exposes_from = 0;
    // Whether that rank may read the memory of others of its node, on a machine whose shared memory says
    // what that costs (empty: everybody), and which of these reads are refused all the same.
    std::function<bool(int rank)> reads = {};
    std::function<bool(int rank)> refuse_read = {};
    // Whose rails reach device memory, on a machine whose network does; empty: everybody's.
    std::function<bool(int rank)> gpudirect = {};
    // Page-locking takes the time that the machine's description says, which decides about the first
    // message of a process. Without, it takes none, and first messages go the way of later ones.
    bool cold_slots = false;
    // Who takes a turn at each moment. A large world is looked at where something came, and as a whole
    // as often as protocols look at the clock: what ranks see, and when, differs by no more than that.
    Turns turns = Turns::of_everybody;
    // Whether Fabric::trace() tells of each message.
    bool trace = true;
    std::function<void(model::Machine&)> change_machine = {};
    std::function<void(config::Config&)> change_config = {};
};

class World;

class Rank {
  public:
    Rank(World& world, int number);
    ~Rank();

    World& world;
    const int number;
    model::Processor processor;
    Executor executor;
    device::fake::FakeDevice device;
    job::fake::FakeJob job;
    plan::Explain explain;
    transfer::Context transfer;
    p2p::Messenger messenger;
    const std::unique_ptr<rma::Windows> all_windows;  // few tests need their headers
    rma::Windows& windows;
    p2p::Group all;  // every rank, as MPI_COMM_WORLD

    operator Executor&() { return executor; }  // a rank may be a task's first parameter

    // --- for programs ---------------------------------------------------------------------------
    // Device memory on one of the node's GPUs that lives as long as the world.
    std::byte* device_memory(Bytes bytes, int gpu = 0) {
        return static_cast<std::byte*>(device.allocate(gpu, bytes));
    }
    // Goes on after the rank's next turn: what a polling loop awaits.
    struct Turn {
        Rank& rank;
        Resumable waiting{};
        bool await_ready() const { return false; }
        void await_suspend(std::coroutine_handle<> program) {
            waiting.handle = program;
            rank.turns_.push_back(&waiting);
        }
        void await_resume() const {}
    };
    Turn turn() { return Turn{*this}; }
    // Goes on at a later time of the virtual clock.
    Task<Status> sleep(Executor& executor, Nanoseconds time);
    // The processor works: nothing of this rank moves meanwhile.
    void work(Nanoseconds time) { processor.spend(time); }
    // A copy as a program makes it with the driver (cudaMemcpy), outside of Gantry.
    Task<Status> driver_copy(Executor& executor, void* destination, const void* source,
                             Bytes bytes);

  private:
    friend class World;
    int progress();
    std::optional<Task<Status>> program_;
    std::vector<Resumable*> turns_;
    bool dead_ = false, told_ = false;
};

struct Ending {
    std::uint64_t seed = 0;
    bool stuck = false;
    Nanoseconds time = 0;         // virtual time that the run took
    std::vector<Status> results;  // of each rank; a killed one counts as success
    std::string story;            // who waits for what, when stuck
    bool good() const;
    const Status& of(int rank) const { return results[static_cast<std::size_t>(rank)]; }
};
std::ostream& operator<<(std::ostream& out, const Ending& ending);

using Program = std::function<Task<Status>(Rank&)>;

class World {
  public:
    explicit World(Options options);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Ending run(const Program& program);
    // Lets everything under way arrive; false when some engine then still holds something (a leaked
    // message or slot).
    bool settle();

    Rank& rank(int number);
    int ranks() const { return options_.ranks; }
    const Options& options() const { return options_; }
    const model::Machine& machine() const;
    model::Timeline& timeline();
    transport::fake::Fabric& network();
    transport::fake::Fabric& shared_memory();
    std::uint64_t trace_hash() { return timeline().trace_hash(); }
    // The process of that rank dies now; its peers hear of it 100 us later.
    void kill(int number);
    void kill_at(Nanoseconds time, int number);

  private:
    friend class Rank;
    struct State;
    int move_everything();
    int move(const std::vector<int>& told);
    Nanoseconds next_free();
    void tell(int rank);
    void tell_everybody();
    bool pass_time(Nanoseconds& quiet_since);
    std::string who_waits() const;
    Options options_;
    std::unique_ptr<State> state_;
};

}  // namespace gantry::world
