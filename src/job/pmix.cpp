// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmix.hpp"

#include "base/config.hpp"
#include "base/log.hpp"
#include "job/node_map.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace gantry::job {
namespace {

constexpr int kPatienceSeconds = 60;
constexpr Nanoseconds kTimeToBeKilled = 2 * kSecond;

// Slurm and Debian's Open MPI ask for munge first. A libpmix without that plug-in then refuses to
// start, though it could use the second choice.
constexpr const char* kSecurity = "PMIX_MCA_psec";

pmix::Info directive(const char* key, std::uint16_t type) {
    pmix::Info info{};
    std::strncpy(info.key, key, sizeof info.key - 1);
    info.value.type = type;
    return info;
}

void free_value(pmix::Value* value) {
    if (value->type == pmix::kString) std::free(value->data.string);
    if (value->type == pmix::kByteObject) std::free(value->data.object.bytes);
    std::free(value);
}

std::optional<std::int64_t> number_in(const pmix::Value& value) {
    switch (value.type) {
        case pmix::kSize:
        case pmix::kUint64: return static_cast<std::int64_t>(value.data.uint64);
        case pmix::kInt:
        case pmix::kInt32: return value.data.integer;
        case pmix::kInt64: return value.data.int64;
        case pmix::kUint16: return value.data.uint16;
        case pmix::kUint:
        case pmix::kUint32:
        case pmix::kProcRank: return value.data.uint32;
        default: return std::nullopt;
    }
}

pmix::Code init(const pmix::Library& library, pmix::Proc& self) {
    const auto wished = config::environment(kSecurity);
    const bool munge_first = wished && wished->find("munge") != std::string::npos &&
                             wished->find("native") != std::string::npos;
    // A launcher that insists on munge will say so; most accept what the client chooses.
    if (munge_first) setenv(kSecurity, "native", 1);
    pmix::Code code = library.call.PMIx_Init(&self, nullptr, 0);
    if (munge_first) {
        setenv(kSecurity, wished->c_str(), 1);
        if (code != 0) code = library.call.PMIx_Init(&self, nullptr, 0);
    }
    return code;
}

}  // namespace

Result<std::unique_ptr<Job>> discover_pmix(const std::string& named) {
    const auto space = config::environment("PMIX_NAMESPACE");
    if (!space || space->empty()) return std::unique_ptr<Job>();
    Result<pmix::Library> library = pmix::load(named);
    if (!library.ok())
        return library.status().with(
            fmt::format("a PMIx launcher started this process as a rank of {}", *space));
    return PmixJob::start(std::move(library.value()));
}

Result<std::unique_ptr<Job>> PmixJob::start(pmix::Library library) {
    pmix::Proc self{};
    if (const pmix::Code code = init(library, self); code != 0)
        return failure(MPI_ERR_OTHER,
                       "PMIx_Init of {} ({}): {}. Has the launcher ended, or was the program "
                       "started by something other than a rank? The launcher's own library can be "
                       "named in GANTRY_PMIX_LIBRARY",
                       library.path, library.call.PMIx_Get_version(),
                       library.call.PMIx_Error_string(code));
    std::unique_ptr<PmixJob> job(new PmixJob(std::move(library), self));
    GANTRY_TRY(job->open());
    return std::unique_ptr<Job>(std::move(job));
}

PmixJob::PmixJob(pmix::Library library, const pmix::Proc& self)
    : library_(std::move(library)),
      self_(self),
      rank_(static_cast<int>(self.rank)),
      owner_process_(getpid()),
      id_(self.nspace) {
    // It becomes part of file names.
    for (char& c : id_)
        if (c == '/') c = '_';
}

Status PmixJob::failed(std::string_view attempt, pmix::Code code) const {
    return failure(MPI_ERR_OTHER, "{} on rank {} of PMIx job {}: {}", attempt, rank_, self_.nspace,
                   library_.call.PMIx_Error_string(code));
}

pmix::Proc PmixJob::proc(std::uint32_t rank) const {
    pmix::Proc other = self_;
    other.rank = rank;
    return other;
}

// Only what came with the job: asking the server for what nobody will say may take for ever.
pmix::Value* PmixJob::known(std::uint32_t rank, const char* key) const {
    const pmix::Proc whose = proc(rank);
    pmix::Info optional = directive("pmix.optional", pmix::kBool);
    optional.value.data.flag = true;
    pmix::Value* value = nullptr;
    return library_.call.PMIx_Get(&whose, key, &optional, 1, &value) == 0 ? value : nullptr;
}

bool PmixJob::says(std::uint32_t rank, const char* key) const {
    pmix::Value* value = known(rank, key);
    if (value == nullptr) return false;
    free_value(value);
    return true;
}

std::optional<std::int64_t> PmixJob::number(std::uint32_t rank, const char* key) const {
    pmix::Value* value = known(rank, key);
    if (value == nullptr) return std::nullopt;
    const std::optional<std::int64_t> said = number_in(*value);
    free_value(value);
    return said;
}

std::optional<std::string> PmixJob::text(std::uint32_t rank, const char* key) const {
    pmix::Value* value = known(rank, key);
    if (value == nullptr) return std::nullopt;
    std::optional<std::string> said;
    if (value->type == pmix::kString && value->data.string != nullptr) said = value->data.string;
    free_value(value);
    return said;
}

Status PmixJob::open() {
    const auto size = number(pmix::kEveryRank, "pmix.job.size");
    if (!size || *size < 1 || rank_ < 0 || rank_ >= *size)
        return failure(MPI_ERR_OTHER, "PMIx job {} says that this is rank {} of {}", self_.nspace,
                       rank_, size.value_or(-1));
    size_ = static_cast<int>(*size);
    app_number_ = static_cast<int>(number(self_.rank, "pmix.appnum").value_or(-1));
    universe_size_ = static_cast<int>(number(pmix::kEveryRank, "pmix.univ.size").value_or(-1));
    return read_nodes();
}

Status PmixJob::read_nodes() {
    std::vector<std::string> marks;
    marks.reserve(static_cast<std::size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) {
        const auto other = static_cast<std::uint32_t>(rank);
        if (const auto node = number(other, "pmix.nodeid"))
            marks.push_back(std::to_string(*node));
        else if (auto host = text(other, "pmix.hname"))
            marks.push_back(std::move(*host));
        else
            return exchange_hosts();
    }
    nodes_ = number_nodes(marks);
    return success();
}

// The launcher does not say who is where: every rank tells its host, once, while it starts.
Status PmixJob::exchange_hosts() {
    GANTRY_TRY(put("host", host_mark()));
    GANTRY_TRY(start_fence());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    // Pairs with the release in the library's callback.
    while (!fence_->done.load(std::memory_order_acquire)) {
        if (std::chrono::steady_clock::now() > limit)
            return failure(MPI_ERR_OTHER, "not every rank of PMIx job {} came within {} s",
                           self_.nspace, kPatienceSeconds);
        std::this_thread::yield();
    }
    if (fence_->code != 0) return failed("PMIx_Fence_nb", fence_->code);
    std::vector<std::string> hosts;
    for (int rank = 0; rank < size_; ++rank) {
        Result<std::string> host = get(rank, "host");
        GANTRY_TRY(host.status());
        hosts.push_back(std::move(host.value()));
    }
    nodes_ = number_nodes(hosts);
    return success();
}

Status PmixJob::put(std::string_view key, std::string_view value) {
    pmix::Value object{};
    object.type = pmix::kByteObject;
    // The library copies.
    object.data.object.bytes = const_cast<char*>(value.data());
    object.data.object.size = value.size();
    const std::string name = fmt::format("gantry-{}", key);
    const pmix::Code code = library_.call.PMIx_Put(pmix::kGlobal, name.c_str(), &object);
    return code == 0 ? success() : failed(fmt::format("PMIx_Put of '{}'", key), code);
}

Status PmixJob::start_fence() {
    if (const pmix::Code code = library_.call.PMIx_Commit(); code != 0)
        return failed("PMIx_Commit", code);
    fence_ = std::make_shared<Question>();
    const pmix::Proc everybody = proc(pmix::kEveryRank);
    pmix::Info collect = directive("pmix.collect", pmix::kBool);
    collect.value.data.flag = true;
    auto* held = new std::shared_ptr<Question>(fence_);
    const pmix::Code code =
        library_.call.PMIx_Fence_nb(&everybody, 1, &collect, 1, &Question::answered, held);
    if (code != 0) {
        delete held;
        return failed("PMIx_Fence_nb", code);
    }
    return success();
}

Task<Status> PmixJob::fence(Executor& executor) {
    GANTRY_CO_TRY(start_fence());
    Completion arrived(executor);
    fenced_ = &arrived;
    Status together = co_await arrived;
    GANTRY_CO_TRY(together);
    co_return success();
}

int PmixJob::progress() {
    int events = 0;
    // Pairs with the release in the library's callback.
    if (fenced_ != nullptr && fence_->done.load(std::memory_order_acquire)) {
        std::exchange(fenced_, nullptr)
            ->complete(fence_->code == 0 ? success() : failed("PMIx_Fence_nb", fence_->code));
        ++events;
    }
    if (answered_ != nullptr && asked_->done.load(std::memory_order_acquire)) {
        std::exchange(answered_, nullptr)->complete(success());
        ++events;
    }
    return events;
}

Result<std::string> PmixJob::get(int rank, std::string_view key) {
    const std::string name = fmt::format("gantry-{}", key);
    const std::string known = fmt::format("{}-{}", rank, key);
    if (const auto found = cache_.find(known); found != cache_.end()) return found->second;
    const pmix::Proc whose = proc(static_cast<std::uint32_t>(rank));
    // The fence has brought everything, so what is not here is nowhere: no waiting for it.
    pmix::Info immediate = directive("pmix.immediate", pmix::kBool);
    immediate.value.data.flag = true;
    pmix::Value* value = nullptr;
    const pmix::Code code = library_.call.PMIx_Get(&whose, name.c_str(), &immediate, 1, &value);
    if (code != 0 || value == nullptr)
        return failed(fmt::format("job store: '{}' of rank {}", key, rank), code);
    std::optional<std::string> bytes;
    if (value->type == pmix::kByteObject)
        bytes.emplace(value->data.object.bytes, value->data.object.size);
    free_value(value);
    if (!bytes)
        return failure(MPI_ERR_INTERN, "job store: '{}' of rank {} is not bytes", key, rank);
    cache_.emplace(known, *bytes);
    return std::move(*bytes);
}

void PmixJob::abort(int exit_code, std::string_view reason) {
    if (getpid() != owner_process_ || finalized_) return;
    const std::string message(reason);
    if (library_.call.PMIx_Abort(exit_code, message.c_str(), nullptr, 0) == 0)
        std::this_thread::sleep_for(std::chrono::nanoseconds(kTimeToBeKilled));
}

Status PmixJob::finalize() {
    if (finalized_ || getpid() != owner_process_) return success();
    finalized_ = true;
    const pmix::Code code = library_.call.PMIx_Finalize(nullptr, 0);
    forget_deaths();  // nobody tells any more
    return code == 0 ? success() : failed("PMIx_Finalize", code);
}

}  // namespace gantry::job
