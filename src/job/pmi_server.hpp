// SPDX-License-Identifier: BSD-3-Clause
//
// The side of PMI-1 that serves: a store, a barrier, and who has come and gone. It reads lines such
// as "cmd=get kvsname=k key=a" and writes the answers to the rank's socket. It decides nothing
// about the job: its owner (mpiexec, or rank 0 of a job that no launcher started) looks at what it
// noted.
//
// A rank may run one MPI program after another (mpiexec sh -c "./a; ./b"): the next *round* begins,
// with a store of its own, when every rank has left the last one. Until then who comes early waits
// for the answer to its init.
#pragma once

#include "base/units.hpp"
#include "job/pmi_line.hpp"
#include "job/spawn_lines.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::job {

enum class Membership { outside, inside, finalized };  // before init, between, after finalize

struct AbortCall {
    int rank = 0;
    int code = 0;
    std::string reason;  // empty: the rank gave none
};

// Names and their ports, for all jobs of one launcher.
using Names = std::map<std::string, std::string, std::less<>>;

class PmiServer {
  public:
    // `mapping` is what ranks are told as PMI_process_mapping; empty: they find out themselves.
    PmiServer(int size, std::string job_name, std::string mapping);
    // `app` is the number of the ':' group of that rank.
    void add_rank(int rank, int socket, int app);
    int socket(int rank) const { return clients_[index(rank)].socket; }
    // Reads and answers what the rank has sent. False when its socket was closed.
    bool serve(int rank);
    void close_socket(int rank);

    // That rank has died, and the others go on: no barrier waits for it.
    void lose(int rank);
    // Ranks that ask for it are told of deaths from now on, and of those before.
    void offer_deaths() { offers_deaths_ = true; }
    // Ranks may take a copy of the store with them, which may take so much of all of them together: this server
    // may end before they do.
    void offer_copies(Bytes at_most) { copies_ = at_most; }
    // Of this job (by its number, which its ranks say), or of another one. Nothing waits for whoever does not
    // read.
    void tell_death(std::string_view job, int rank);
    const std::string& number() const { return number_; }
    // Whether a barrier of this round has opened: all ranks have come.
    bool has_begun() const { return has_begun_; }

    // In the current round.
    Membership membership(int rank) const { return clients_[index(rank)].membership; }
    int round() const { return round_; }
    // In no round so far has any rank been a member.
    bool nobody_came() const;
    // Whether it has left this round and waits for the next.
    bool waits_for_round(int rank) const { return clients_[index(rank)].waits_for_round; }
    // From now on no barrier opens: everybody in one, or entering one, is told why.
    void break_barriers(std::string why);
    // What ranks publish goes there, and may be looked up. Without, nothing is published.
    void keep_names(Names& names) { names_ = &names; }
    // This job was spawned: its store begins with that.
    void preput(const std::string& key, const std::string& value) { store_.emplace(key, value); }
    // A job that a rank asks for; who takes it gives the answer. Without a taker requests are refused.
    struct Spawn {
        int rank = 0;
        SpawnRequest request;
    };
    void take_spawns() { takes_spawns_ = true; }
    std::optional<Spawn> next_spawn();
    // `failure` empty: all of its ranks run.
    void answer_spawn(int rank, std::string_view failure);
    const std::optional<AbortCall>& abort_call() const { return abort_call_; }
    // A rank that said what is no PMI; why, as a sentence.
    const std::string& offence() const { return offence_; }

  private:
    struct Client {
        int socket = -1;
        int app = 0;
        Membership membership = Membership::outside;
        bool in_barrier = false;
        bool lost = false;
        bool waits_for_round = false;
        bool watches_deaths = false;
        std::string received;
        SpawnLines spawn;
    };
    static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
    void handle(int rank, std::string_view line);
    void enter(int rank);
    void welcome(int rank);
    void begin_round_if_all_left();
    std::string name_of_round() const;
    void put(int rank, const PmiLine& fields);
    void get(int rank, const PmiLine& fields);
    void enter_barrier(int rank);
    void open_barrier_if_all_came();
    void answer(int rank, std::string_view line);
    void handle_name(int rank, std::string_view verb, const PmiLine& fields);
    void handle_spawn(int rank, std::string_view line);
    void watch_deaths(int rank, const PmiLine& fields);
    void copy_store(int rank, const PmiLine& fields);

    std::string job_name_;
    std::string mapping_;
    int round_ = 0;
    std::vector<Client> clients_;
    std::map<std::string, std::string, std::less<>> store_;
    std::size_t stored_bytes_ = 0;
    int in_barrier_ = 0;
    int lost_ = 0;
    bool has_begun_ = false;
    bool offers_deaths_ = false;
    Bytes copies_ = 0;                 // may take so much; 0: none are offered
    std::string number_;               // of this job, in lines about deaths
    std::vector<std::string> deaths_;  // these lines
    std::string broken_;               // why no barrier opens any more
    Names* names_ = nullptr;
    bool takes_spawns_ = false;
    std::vector<Spawn> spawns_;
    std::optional<AbortCall> abort_call_;
    std::string offence_;
};

}  // namespace gantry::job
