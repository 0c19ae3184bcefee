// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmi.hpp"

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/yield.hpp"
#include "job/node_map.hpp"
#include "job/store_text.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace gantry::job {
namespace {

constexpr Nanoseconds kTimeToBeKilled = 2 * kSecond;

Result<int> number_variable(const char* name) {
    const std::optional<std::string> text = config::environment(name);
    if (!text)
        return failure(MPI_ERR_OTHER, "the launcher set PMI_FD or PMI_PORT but not {}", name);
    int value = -1;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size() || value < 0)
        return failure(MPI_ERR_OTHER, "{} is '{}', but a launcher sets it to a number", name,
                       *text);
    return value;
}

bool is_socket(int descriptor) {
    struct stat about {};
    return fstat(descriptor, &about) == 0 && S_ISSOCK(about.st_mode);
}

// PMI_PORT: the process connects, says its PMI_ID, and is told its rank and size.
Result<std::unique_ptr<Job>> start_over_port(const std::string& port) {
    const Result<int> id = number_variable("PMI_ID");
    GANTRY_TRY(id.status());
    Result<PmiWire> wire = PmiWire::connect(port);
    GANTRY_TRY(wire.status());
    GANTRY_TRY(wire->send(fmt::format("cmd=initack pmiid={}\n", id.value())));
    const Result<Welcome> welcome = read_welcome(wire.value(), id.value(), PmiWire::kPatience);
    GANTRY_TRY(welcome.status());
    return PmiJob::start(std::move(wire.value()), welcome.value().rank, welcome.value().size);
}

}  // namespace

Result<Welcome> read_welcome(PmiWire& wire, int rank, Nanoseconds patience) {
    Result<PmiLine> first = wire.wait_for_answer("cmd=initack", patience);
    GANTRY_TRY(first.status());
    if (first->command() != "initack")
        return failure(MPI_ERR_OTHER, "what answers there does not speak PMI. Check host and port");
    if (!first->accepted()) return failure(MPI_ERR_OTHER, "{}", first->text("msg"));
    Welcome welcome;
    welcome.rank = rank;
    for (bool all_told = false; !all_told;) {
        const Result<PmiLine> told = wire.wait_for_answer("cmd=initack");
        GANTRY_TRY(told.status());
        if (told.value().has("size")) welcome.size = told.value().number("size").value_or(-1);
        if (told.value().has("rank")) welcome.rank = told.value().number("rank").value_or(-1);
        all_told = told.value().has("debug");
    }
    return welcome;
}

Result<std::unique_ptr<Job>> discover_pmi() {
    if (const std::optional<std::string> port = config::environment("PMI_PORT");
        port && !port->empty())
        return start_over_port(*port);
    if (!config::environment("PMI_FD")) return std::unique_ptr<Job>();
    const Result<int> socket = number_variable("PMI_FD");
    GANTRY_TRY(socket.status());
    if (!is_socket(socket.value())) {
        // A program started by a rank inherits the variables but not the descriptor: it is a job of
        // its own.
        log::info("job: PMI_FD {} is no open socket here, so this process runs alone",
                  socket.value());
        return std::unique_ptr<Job>();
    }
    const Result<int> rank = number_variable("PMI_RANK");
    GANTRY_TRY(rank.status());
    const Result<int> size = number_variable("PMI_SIZE");
    GANTRY_TRY(size.status());
    return PmiJob::start(PmiWire(socket.value()), rank.value(), size.value());
}

PmiJob::PmiJob(PmiWire wire, int rank, int size)
    : wire_(std::move(wire)), rank_(rank), size_(size), owner_process_(getpid()) {}

PmiJob::~PmiJob() = default;

Result<std::unique_ptr<Job>> PmiJob::start(PmiWire wire, int rank, int size) {
    if (size < 1 || rank < 0 || rank >= size)
        return failure(MPI_ERR_OTHER, "the launcher says that this is rank {} of {}", rank, size);
    std::unique_ptr<PmiJob> job(new PmiJob(std::move(wire), rank, size));
    GANTRY_TRY(job->open());
    return std::unique_ptr<Job>(std::move(job));
}

Status PmiJob::open() {
    const auto opened = wire_.ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init");
    GANTRY_TRY(opened.status());
    takes_abort_text_ = opened.value().has("abort_text");
    offers_deaths_ = opened.value().has("deaths");
    offers_copies_ = opened.value().has("copies");
    const auto longest = wire_.ask("cmd=get_maxes\n", "maxes");
    GANTRY_TRY(longest.status());
    longest_key_ =
        static_cast<std::size_t>(std::max(32, longest.value().number("keylen_max").value_or(64)));
    longest_value_ =
        static_cast<std::size_t>(std::max(64, longest.value().number("vallen_max").value_or(1024)));
    const auto number = wire_.ask("cmd=get_appnum\n", "appnum");
    GANTRY_TRY(number.status());
    app_number_ = number.value().number("appnum").value_or(-1);
    const auto universe = wire_.ask("cmd=get_universe_size\n", "universe_size");
    GANTRY_TRY(universe.status());
    universe_size_ = universe.value().number("size").value_or(-1);
    const auto name = wire_.ask("cmd=get_my_kvsname\n", "my_kvsname");
    GANTRY_TRY(name.status());
    kvs_ = name.value().text("kvsname");
    return read_nodes();
}

Status PmiJob::read_nodes() {
    GANTRY_TRY(wire_.send(fmt::format("cmd=get kvsname={} key=PMI_process_mapping\n", kvs_)));
    const Result<PmiLine> answer = wire_.wait_for_answer("cmd=get key=PMI_process_mapping");
    GANTRY_TRY(answer.status());
    if (std::optional<std::vector<int>> nodes =
            parse_process_mapping(answer.value().text("value"), size_)) {
        nodes_ = std::move(*nodes);
        return success();
    }
    return exchange_hosts();
}

// The launcher does not say who is where: every rank tells its host, once, while it starts.
Status PmiJob::exchange_hosts() {
    const std::string ours = base64(host_mark());
    const auto stored = wire_.ask(fmt::format("cmd=put kvsname={} key={} value={}\n", kvs_,
                                              piece_name(rank_, "host", 0), ours),
                                  "put_result");
    GANTRY_TRY(stored.status());
    const auto together = wire_.ask("cmd=barrier_in\n", "barrier_out");
    GANTRY_TRY(together.status());
    std::vector<std::string> hosts;
    for (int rank = 0; rank < size_; ++rank) {
        const auto told =
            wire_.ask(fmt::format("cmd=get kvsname={} key={}\n", kvs_, piece_name(rank, "host", 0)),
                      "get_result");
        GANTRY_TRY(told.status());
        hosts.emplace_back(told.value().text("value"));
    }
    nodes_ = number_nodes(hosts);
    return success();
}

std::string PmiJob::piece_name(int rank, std::string_view key, std::size_t piece) const {
    return fmt::format("gantry-{}-{}-{}", rank, key, piece);
}

Status PmiJob::put(std::string_view key, std::string_view value) {
    // Both limits count the end of a C string.
    std::vector<std::string> pieces = split_value(value, longest_value_ - 1);
    const std::string longest_name = piece_name(rank_, key, pieces.size() - 1);
    if (longest_name.size() >= longest_key_)
        return failure(MPI_ERR_INTERN,
                       "job store: key '{}' is longer than the {} characters of this launcher",
                       longest_name, longest_key_ - 1);
    for (std::size_t i = 0; i < pieces.size(); ++i)
        pending_.emplace_back(piece_name(rank_, key, i), std::move(pieces[i]));
    return success();
}

Task<Status> PmiJob::consult(Executor& executor, std::string line) {
    while (asking_)
        co_await Yield(executor);
    asking_ = true;
    answer_.reset();
    Status sent = wire_.send(line);
    if (sent.ok()) {
        Completion answered(executor);
        answered_ = &answered;
        sent = co_await answered;
    }
    asking_ = false;
    co_return sent;
}

Task<Status> PmiJob::ask(Executor& executor, std::string line, std::string_view expected) {
    Status arrived = co_await consult(executor, line);
    GANTRY_CO_TRY(arrived);
    if (answer_->command() != expected || !answer_->accepted())
        co_return failure(MPI_ERR_OTHER, "the launcher answered '{}' with cmd={} rc={} {}",
                          std::string_view(line).substr(0, line.size() - 1), answer_->command(),
                          answer_->text("rc"), answer_->text("msg"));
    co_return success();
}

int PmiJob::progress() {
    if (answered_ == nullptr || getpid() != owner_process_) return 0;
    Result<std::optional<PmiLine>> answer = wire_.poll();
    if (answer.ok() && !answer->has_value()) return 0;
    if (answer.ok()) answer_ = std::move(*answer);
    std::exchange(answered_, nullptr)->complete(answer.status());
    return 1;
}

Task<Status> PmiJob::fence(Executor& executor) {
    for (const auto& [name, value] : pending_) {
        std::string line = fmt::format("cmd=put kvsname={} key={} value={}\n", kvs_, name, value);
        Status stored = co_await ask(executor, std::move(line), "put_result");
        GANTRY_CO_TRY(stored);
    }
    pending_.clear();
    std::string barrier = "cmd=barrier_in\n";
    Status together = co_await ask(executor, std::move(barrier), "barrier_out");
    GANTRY_CO_TRY(together);
    if (offers_copies_) together = co_await copy_store(executor);
    co_return together;
}

// So that ranks find each other also when the one that serves the store has died.
Task<Status> PmiJob::copy_store(Executor& executor) {
    copied_.clear();
    std::string last;
    for (bool whole = false; !whole;) {
        std::string line = fmt::format("cmd=copy_store after={}\n", last);
        Status answered = co_await consult(executor, std::move(line));
        GANTRY_CO_TRY(answered);
        if (!answer_->accepted()) co_return success();  // too large: pieces are asked for
        for (const auto& [name, value] : answer_->fields())
            if (name != "cmd" && name != "rc" && name != "last") {
                last = std::max(last, name);
                copied_.emplace(name, value);
            }
        whole = answer_->number("last") != 0;
    }
    co_return success();
}

Result<std::string> PmiJob::get(int rank, std::string_view key) {
    GANTRY_ASSERT(answered_ == nullptr);  // one question at a time: no get during a fence
    if (const auto found = cache_.find(piece_name(rank, key, 0)); found != cache_.end())
        return found->second;
    std::string text;
    std::size_t pieces = 1;
    for (std::size_t i = 0; i < pieces; ++i) {
        Result<std::string> told = get_piece(piece_name(rank, key, i));
        if (!told.ok())
            return told.status().with(fmt::format("job store: '{}' of rank {}", key, rank));
        std::string_view piece = *told;
        if (i == 0) {
            const std::optional<std::size_t> count = take_piece_count(piece);
            if (!count)
                return failure(MPI_ERR_INTERN, "job store: '{}' of rank {} is '{}'", key, rank,
                               piece);
            pieces = *count;
        }
        text.append(piece);
    }
    std::optional<std::string> value = from_base64(text);
    if (!value)
        return failure(MPI_ERR_INTERN, "job store: '{}' of rank {} is damaged: {}", key, rank,
                       text);
    cache_.emplace(piece_name(rank, key, 0), *value);
    return std::move(*value);
}

Result<std::string> PmiJob::get_piece(const std::string& name) {
    if (const auto found = copied_.find(name); found != copied_.end()) return found->second;
    if (!served_)
        return failure(MPI_ERR_PROC_ABORTED,
                       "rank {}, which kept what ranks tell each other, has died", serving_rank());
    const auto answer =
        wire_.ask(fmt::format("cmd=get kvsname={} key={}\n", kvs_, name), "get_result");
    GANTRY_TRY(answer.status());
    return std::string(answer.value().text("value"));
}

void PmiJob::abort(int exit_code, std::string_view reason) {
    if (getpid() != owner_process_ || finalized_) return;
    const std::string text =
        takes_abort_text_ ? fmt::format(" text={}", base64(reason)) : std::string();
    if (wire_.send(fmt::format("cmd=abort exitcode={}{}\n", exit_code, text)).ok())
        wire_.wait_for_end(kTimeToBeKilled);
}

Status PmiJob::finalize() {
    if (finalized_ || getpid() != owner_process_) return success();
    finalized_ = true;
    if (!served_) return success();
    const Status left = wire_.ask("cmd=finalize\n", "finalize_ack").status();
    return serving_rank() < 0 ? left : success();  // who served may have died
}

}  // namespace gantry::job
