// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic/handshake.hpp"

#include "base/log.hpp"
#include "coll/exchange.hpp"
#include "transfer/buffer.hpp"
#include "job/node_map.hpp"
#include "mpi/dynamic/joint_job.hpp"
#include "mpi/dynamic/outsiders.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace gantry::mpi {
namespace {

// What a process says about itself. Plain data: it travels as bytes, the outsiders it knows behind it.
struct Card {
    Identity self;
    std::uint64_t host = 0;
    std::int32_t shares_memory = 0;
    std::int32_t known = 0;
};

struct Person {
    Card card;
    std::vector<Identity> knows;
    bool knows_of(const Identity& other) const {
        return other.job == card.self.job || std::ranges::find(knows, other) != knows.end();
    }
};

// All of both groups, those of the group that goes first before the others.
struct Everybody {
    std::vector<Person> persons;
    std::size_t border = 0;
    bool mine_first = false;
    std::size_t first_of_mine() const { return mine_first ? 0 : border; }
    std::size_t first_of_theirs() const { return mine_first ? border : 0; }
    std::size_t count_of_theirs() const { return mine_first ? persons.size() - border : border; }
};

std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const char each : text)
        hash = (hash ^ static_cast<unsigned char>(each)) * 1099511628211u;
    return hash;
}

std::string card_of(Engine& engine) {
    std::vector<Identity> known;
    const Outsiders& outsiders = engine.outsiders();
    for (int peer = engine.size(); peer < engine.transfer().endpoints.size(); ++peer)
        if (const Identity identity = outsiders.identity(peer); identity.job != 0)
            known.push_back(identity);
    Card card;
    card.self = outsiders.identity(engine.rank());
    card.host = hash_of(job::host_mark());
    card.shares_memory = engine.config().shm ? 1 : 0;
    card.known = static_cast<std::int32_t>(known.size());
    std::string text(reinterpret_cast<const char*>(&card), sizeof card);
    if (!known.empty())
        text.append(reinterpret_cast<const char*>(known.data()), known.size() * sizeof(Identity));
    return text;
}

std::optional<Person> person_of(const std::string& text) {
    Person person;
    if (text.size() < sizeof person.card) return std::nullopt;
    std::memcpy(&person.card, text.data(), sizeof person.card);
    const auto known = static_cast<std::size_t>(person.card.known);
    if (text.size() != sizeof person.card + known * sizeof(Identity)) return std::nullopt;
    person.knows.resize(known);
    if (known > 0)
        std::memcpy(person.knows.data(), text.data() + sizeof person.card,
                    known * sizeof(Identity));
    return person;
}

// The first letter says how the leader's part went: "+", or "-" and why not.
std::string failed_letter(const Status& why) {
    return fmt::format("-{} {}", why.error_class(), why.text());
}

Status status_of_letter(std::string_view letter) {
    if (!letter.empty() && letter.front() == '+') return success();
    const std::size_t blank = letter.find(' ');
    if (letter.empty() || blank == std::string_view::npos)
        return failure(MPI_ERR_INTERN, "a leader sent a letter of {} bytes", letter.size());
    const int error_class = std::atoi(std::string(letter.substr(1, blank)).c_str());
    return failure(error_class, "{}", letter.substr(blank + 1));
}

// One round. `mine_first`: whether my group's texts come first in `all`.
Task<Status> gather_texts(Executor& executor, Handshake* handshake, std::string mine,
                          std::vector<std::string>* texts) {
    const coll::Team team = handshake->local;
    texts->assign(1, mine);
    if (team.rank() != handshake->leader) {
        std::uint64_t length = mine.size();
        const p2p::Buffer head = transfer::bytes_buffer(&length, sizeof length);
        Status sent = co_await coll::send(executor, team, head, handshake->leader);
        GANTRY_CO_TRY(sent);
        const p2p::Buffer body = transfer::bytes_buffer(mine.data(), mine.size());
        sent = co_await coll::send(executor, team, body, handshake->leader);
        co_return sent;
    }
    texts->assign(static_cast<std::size_t>(team.size()), std::string());
    for (int rank = 0; rank < team.size(); ++rank) {
        std::string& text = (*texts)[static_cast<std::size_t>(rank)];
        if (rank == team.rank()) {
            text = mine;
            continue;
        }
        std::uint64_t length = 0;
        const p2p::Buffer head = transfer::bytes_buffer(&length, sizeof length);
        Status received = co_await coll::receive(executor, team, head, rank);
        GANTRY_CO_TRY(received);
        text.resize(length);
        const p2p::Buffer body = transfer::bytes_buffer(text.data(), text.size());
        received = co_await coll::receive(executor, team, body, rank);
        GANTRY_CO_TRY(received);
    }
    co_return success();
}

// The leaders' part: `letter` is what all of this group are to hear.
Task<Status> exchange_letters(Executor& executor, Handshake* handshake, std::string ours,
                              std::string* letter) {
    std::string theirs;
    Status met = handshake->judged;
    if (met.ok()) met = co_await handshake->bridge->exchange(executor, ours, &theirs);
    if (!met.ok()) {
        *letter = failed_letter(met);
        co_return success();
    }
    const std::vector<std::string> both{ours, theirs};
    *letter = "+" + packed(both);
    co_return success();
}

// Everybody says something and hears what all say: first those of my own group, then the others.
Task<Status> round_of(Executor& executor, Handshake* handshake, std::string mine,
                      std::vector<std::string>* own, std::vector<std::string>* others) {
    std::vector<std::string> texts;
    Status gathered = co_await gather_texts(executor, handshake, std::move(mine), &texts);
    GANTRY_CO_TRY(gathered);
    std::string letter;
    if (handshake->local.rank() == handshake->leader) {
        std::string ours = packed(texts);
        Status met = co_await exchange_letters(executor, handshake, std::move(ours), &letter);
        GANTRY_CO_TRY(met);
    }
    Status told = co_await tell(executor, handshake->local, handshake->leader, &letter);
    GANTRY_CO_TRY(told);
    Status judged = status_of_letter(letter);
    GANTRY_CO_TRY(judged);
    const std::vector<std::string> both = unpacked(std::string_view(letter).substr(1));
    *own = unpacked(both[0]);
    *others = unpacked(both[1]);
    co_return success();
}

Result<Everybody> everybody_of(const std::vector<std::string>& own,
                               const std::vector<std::string>& others) {
    std::vector<Person> mine, theirs;
    for (const auto& [texts, persons] : {std::pair{&own, &mine}, std::pair{&others, &theirs}})
        for (const std::string& text : *texts) {
            std::optional<Person> person = person_of(text);
            if (!person)
                return failure(MPI_ERR_OTHER,
                               "a process introduces itself by {} bytes: all must run the same "
                               "version of Gantry",
                               text.size());
            persons->push_back(std::move(*person));
        }
    if (mine.empty() || theirs.empty())
        return failure(MPI_ERR_OTHER, "a group without processes wants to be connected");
    for (const Person& person : mine)
        for (const Person& other : theirs)
            if (person.card.self == other.card.self)
                return failure(MPI_ERR_COMM,
                               "process {} of the job is in both groups; those of an "
                               "inter-communicator have no process in common",
                               person.card.self.rank);
    Everybody all;
    all.mine_first = mine.front().card.self < theirs.front().card.self;
    all.persons = all.mine_first ? mine : theirs;
    all.border = all.persons.size();
    const std::vector<Person>& behind = all.mine_first ? theirs : mine;
    all.persons.insert(all.persons.end(), behind.begin(), behind.end());
    return all;
}

bool are_connected(const Person& one, const Person& other) {
    return one.knows_of(other.card.self) && other.knows_of(one.card.self);
}

// The same answer for all: whether some of one group do not know some of the other.
Result<bool> must_connect(const Everybody& all) {
    bool must = false;
    for (std::size_t i = 0; i < all.border; ++i)
        for (std::size_t j = all.border; j < all.persons.size(); ++j) {
            const Person &one = all.persons[i], &other = all.persons[j];
            if (are_connected(one, other)) continue;
            must = true;
            if (one.card.host != other.card.host)
                return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                               "processes of different jobs are connected by shared memory so far, "
                               "and two of these run on different hosts");
            if (one.card.shares_memory == 0 || other.card.shares_memory == 0)
                return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                               "processes of different jobs are connected by shared memory, which "
                               "GANTRY_SHM=off forbids one of these");
        }
    return must;
}

// Those of the other group that this process does not know get numbers; what the transport calls each
// place follows.
struct Places {
    std::vector<int> peers;     // by place; -1: reached another way
    std::vector<int> reserved;  // of them, new outsiders
};

Places places_for(Engine& engine, const Everybody& all, std::size_t me) {
    Places places;
    places.peers.assign(all.persons.size(), -1);
    places.peers[me] = engine.rank();
    for (std::size_t i = 0; i < all.count_of_theirs(); ++i) {
        const std::size_t place = all.first_of_theirs() + i;
        if (are_connected(all.persons[me], all.persons[place])) continue;
        places.peers[place] = engine.outsiders().reserve();
        places.reserved.push_back(places.peers[place]);
    }
    return places;
}

struct Proposal {
    std::uint32_t context = 0;
};

template <class Plain>
std::string bytes_of(const Plain& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Rounds 3 and 4. `mine` is how this process has fared; the first failure is everybody's.
Task<Status> agree_on_context(Executor& executor, Handshake* handshake, Status mine,
                              std::uint32_t* context) {
    while (true) {
        const Proposal proposal{handshake->engine->propose_shared_context()};
        std::string said = mine.ok() ? "+" + bytes_of(proposal) : failed_letter(mine);
        std::vector<std::string> own, others;
        Status heard = co_await round_of(executor, handshake, std::move(said), &own, &others);
        GANTRY_CO_TRY(heard);
        own.insert(own.end(), others.begin(), others.end());
        std::uint32_t largest = 0;
        for (const std::string& text : own) {
            Status status = status_of_letter(text);
            GANTRY_CO_TRY(status);
            Proposal theirs;
            if (text.size() == 1 + sizeof theirs)
                std::memcpy(&theirs, text.data() + 1, sizeof theirs);
            largest = std::max(largest, theirs.context);
        }
        const bool taken = handshake->engine->take_shared_context(largest);
        std::string vote = taken ? "+" : "-";
        heard = co_await round_of(executor, handshake, std::move(vote), &own, &others);
        GANTRY_CO_TRY(heard);
        own.insert(own.end(), others.begin(), others.end());
        *context = largest;
        const auto agrees = [](const std::string& text) { return text == "+"; };
        if (std::ranges::all_of(own, agrees)) co_return success();
    }
}

// Round 2. `made` gets transports between all.
Task<Status> connect(Executor& executor, Handshake* handshake, const Everybody* all, std::size_t me,
                     const Places* places, std::shared_ptr<Connection> made) {
    Engine& engine = *handshake->engine;
    JointJob joint(static_cast<int>(me), static_cast<int>(all->persons.size()));
    std::unique_ptr<transport::Transport> transport;
    Status so_far = co_await engine.make_way(executor, places->peers, &transport);
    if (so_far.ok()) so_far = transport->publish(joint);
    std::vector<std::string> own, others;
    std::string published = joint.published();
    Status heard = co_await round_of(executor, handshake, std::move(published), &own, &others);
    GANTRY_CO_TRY(heard);
    GANTRY_CO_TRY(so_far);
    std::vector<std::string>& first = all->mine_first ? own : others;
    const std::vector<std::string>& behind = all->mine_first ? others : own;
    first.insert(first.end(), behind.begin(), behind.end());
    joint.hear(std::move(first));
    Status opened = transport->open(joint, engine.transfer().messages);
    GANTRY_CO_TRY(opened);
    made->transports.push_back(std::move(transport));
    engine.transfer().add_transport(*made->transports.back());
    co_return success();
}

}  // namespace

Task<Status> meet(Executor& executor, Handshake* handshake, Met* met) {
    Engine& engine = *handshake->engine;
    std::vector<std::string> own, others;
    std::string card = card_of(engine);
    Status heard = co_await round_of(executor, handshake, std::move(card), &own, &others);
    GANTRY_CO_TRY(heard);
    Result<Everybody> all = everybody_of(own, others);
    GANTRY_CO_TRY(all.status());
    const std::size_t me = all->first_of_mine() + static_cast<std::size_t>(handshake->local.rank());
    Result<bool> must = must_connect(*all);
    GANTRY_CO_TRY(must.status());
    Places places = places_for(engine, *all, me);
    auto connection = std::make_shared<Connection>();
    Status connected;
    if (*must) connected = co_await connect(executor, handshake, &*all, me, &places, connection);
    Status agreed = co_await agree_on_context(executor, handshake, connected, &met->context);
    if (!agreed.ok()) {
        for (const auto& transport : connection->transports)
            engine.transfer().remove_transport(*transport);
        for (const int number : places.reserved)
            engine.outsiders().give_up(number);
        co_return agreed;
    }
    if (places.reserved.empty())
        for (const auto& transport : connection->transports) {
            // It is the others' to each other.
            Status closed = co_await transport->close(executor);
            if (!closed.ok()) log::info("mpi: {}", closed.text());
            engine.transfer().remove_transport(*transport);
        }
    met->mine_first = all->mine_first;
    for (std::size_t i = 0; i < all->count_of_theirs(); ++i) {
        const std::size_t place = all->first_of_theirs() + i;
        const Identity& identity = all->persons[place].card.self;
        if (places.peers[place] >= 0)
            engine.outsiders().admit(places.peers[place], identity, connection);
        met->theirs.push_back(engine.outsiders().find(identity));
    }
    co_return success();
}

}  // namespace gantry::mpi
