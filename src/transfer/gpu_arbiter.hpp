// SPDX-License-Identifier: BSD-3-Clause
//
// GpuArbiter: GPUs that several ranks of the node use. It knows who else uses one (GpuNeighbours),
// whether a copy inside it pays for this process (SharedGpu), and which of two processes makes a
// copy that both could make (claim words).
#pragma once

#include "transfer/claim_words.hpp"
#include "transfer/endpoint.hpp"
#include "transfer/gpu_neighbours.hpp"
#include "transfer/shared_gpu.hpp"

#include <memory>
#include <vector>

namespace gantry::transfer {

class GpuArbiter {
  public:
    // All references outlive this.
    GpuArbiter(Executor& executor, device::Device& device,
               const std::vector<transport::Transport*>& transports, int world_rank,
               SharedGpu::Limits limits);
    ~GpuArbiter();
    GpuArbiter(const GpuArbiter&) = delete;
    GpuArbiter& operator=(const GpuArbiter&) = delete;

    // This rank copies to or from that GPU: its neighbours look.
    void use(int gpu) { neighbours_.mark(device_, gpu); }
    // What needs the compute queue of that GPU waits for a time slice, as far as is known.
    bool is_time_sliced(int gpu) const;
    // Ranks of other jobs look, too, by a transport that has come later.
    void tell_neighbours(transport::Transport& transport) const {
        neighbours_.mark_all(device_, transport);
    }
    // Says once that this rank shares a GPU while another one, which it sees, has been nobody's: most often
    // the program has forgotten to choose. For the end of a job, when all ranks have used what they use.
    void say_what_stood_idle() const;
    // How this process stands with a GPU that it may share with others.
    SharedGpu& shared(int gpu);

    // A copy whose time matters is in flight while a Watch lives; `absences` counts the times that the
    // program kept this process from looking at such copies.
    class Watch {
      public:
        explicit Watch(GpuArbiter& arbiter);
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        ~Watch() { --arbiter_.watches_; }

      private:
        GpuArbiter& arbiter_;
    };
    std::uint64_t absences() const { return absences_; }
    // The engine is about to ask the device which copies have ended.
    void before_look() {
        if (watches_ > 0) look();
    }

    // --- claims: a message that either end could copy ---
    // Gives the message a claim word in this rank's segment; false: the message goes without.
    bool name_claim(const Endpoint& to, std::uint64_t id);
    void release_claim(std::uint64_t id) { claim_words_.release(id); }
    // Takes the word of message `id`, which this rank sends to that peer, or gets from there; false: the
    // other end has it, or there is no word.
    static bool claim(const Endpoint& peer, std::uint64_t id, Claimant who);
    ClaimClock& claims_later() { return claim_clock_; }

  private:
    void look();

    Executor& executor_;
    device::Device& device_;
    SharedGpu::Limits limits_;
    GpuNeighbours neighbours_;
    std::vector<std::unique_ptr<SharedGpu>> shared_;  // by GPU, from -1 (no GPU) up
    ClaimWords claim_words_;
    ClaimClock claim_clock_;
    Nanoseconds last_look_ = 0;  // at copies in flight
    std::uint64_t absences_ = 0;
    int watches_ = 0;
};

}  // namespace gantry::transfer
