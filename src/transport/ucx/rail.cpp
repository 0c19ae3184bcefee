// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/rail.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace gantry::transport::ucx {
namespace {

// Settings of one context. An unknown name is an error in new releases and ignored by old ones, so
// a refusal is only noted.
void set(const Library& library, ucp_config_t* settings, const char* name,
         const std::string& value) {
    const ucs_status_t status = library->ucp_config_modify(settings, name, value.c_str());
    if (status != UCS_OK)
        log::debug("ucx: setting {} to {}: {}", name, value, library.text(status));
}

void set_unless_given(const Library& library, ucp_config_t* settings, const char* name,
                      const std::string& value) {
    if (!config::environment((std::string("UCX_") + name).c_str()))
        set(library, settings, name, value);
}

// Transports that end inside a node lead to no card, whatever UCX_TLS lets in besides.
bool leads_out(const std::string& resource) {
    constexpr std::string_view kInside[] = {"self",     "posix",    "sysv",      "mm",
                                            "cma",      "xpmem",    "knem",      "cuda_copy",
                                            "cuda_ipc", "gdr_copy", "rocm_copy", "rocm_ipc",
                                            "rocm_gdr", "ze_copy",  "ze_ipc"};
    return std::ranges::find(kInside, resource.substr(0, resource.find('/'))) == std::end(kInside);
}

// `messages`: no transport of the context writes into memory without the peer's processor.
enum class Medium : std::uint8_t { unknown, messages };

Result<ucp_context_h> open_context(const Library& library, const std::string& devices,
                                   Medium medium) {
    ucp_config_t* settings = nullptr;
    ucs_status_t status = library->ucp_config_read(nullptr, nullptr, &settings);
    if (status != UCS_OK) return library.failed("reading the configuration of UCX", status);
    // Ranks of a node have our own shared memory; UCX's would drop out with the error mode that we
    // need (UCP_ERR_HANDLING_MODE_PEER), so it is never a candidate.
    set_unless_given(library, settings, "TLS", "^sm");
    // TCP of UCX 1.13 aborts the process when a connection breaks while it sends straight from our
    // memory; out of its own buffer it does not, and is faster for our sizes.
    if (medium == Medium::messages) set_unless_given(library, settings, "ZCOPY_THRESH", "inf");
    // Where cards connect we look ourselves whether a peer is there (card_keepalive.cpp). With UCX's keepalive
    // an endpoint gets a lane of datagrams, by which its connecting message goes; when the way is gone
    // before that is answered, 1.13 ends the process by an assertion.
    set_unless_given(library, settings, "KEEPALIVE_INTERVAL",
                     medium == Medium::messages ? "1s" : "inf");
    // Device memory is registered where we say: UCX would look for the allocation around it, and without
    // its CUDA modules 1.14 to 1.22 find address 0, which ends the process the second time.
    set_unless_given(library, settings, "MEMTYPE_REG_WHOLE_ALLOC_TYPES", "");
    if (!devices.empty()) set(library, settings, "NET_DEVICES", devices);
    ucp_params_t wanted{};
    wanted.field_mask = UCP_PARAM_FIELD_FEATURES;
    wanted.features = UCP_FEATURE_AM | UCP_FEATURE_RMA;
    ucp_context_h context = nullptr;
    status = library->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &wanted, settings, &context);
    library->ucp_config_release(settings);
    if (status != UCS_OK) {
        const auto tls = config::environment("UCX_TLS");
        return library.failed(fmt::format("opening the network ({}{}{})",
                                          devices.empty() ? "all devices" : "devices " + devices,
                                          tls ? ", UCX_TLS=" : "", tls.value_or("")),
                              status);
    }
    return context;
}

}  // namespace

Rail::Rail(Rail&& other) noexcept
    : library_(std::exchange(other.library_, nullptr)),
      context_(std::exchange(other.context_, nullptr)),
      worker_(std::exchange(other.worker_, nullptr)),
      address_(std::move(other.address_)),
      card_keepalive_key_(std::move(other.card_keepalive_key_)),
      card_keepalive_word_(std::move(other.card_keepalive_word_)),
      card_keepalive_memory_(std::exchange(other.card_keepalive_memory_, nullptr)),
      resources_(std::move(other.resources_)) {}

Rail::~Rail() {
    if (card_keepalive_memory_ != nullptr)
        (*library_)->ucp_mem_unmap(context_, card_keepalive_memory_);
    if (worker_ != nullptr) (*library_)->ucp_worker_destroy(worker_);
    if (context_ != nullptr) (*library_)->ucp_cleanup(context_);
}

Result<Rail> Rail::open(const Library& library, const std::string& devices) {
    Rail rail;
    rail.library_ = &library;
    Result<ucp_context_h> context = open_context(library, devices, Medium::unknown);
    if (!context.ok()) return context.status();
    rail.context_ = *context;
    rail.read_resources();
    if (rail.only_messages()) {  // known only now, and settings are read only at the start
        library->ucp_cleanup(std::exchange(rail.context_, nullptr));
        context = open_context(library, devices, Medium::messages);
        if (!context.ok()) return context.status();
        rail.context_ = *context;
    }
    ucp_worker_params_t wanted{};
    wanted.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    wanted.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // whoever holds the engine drives it
    const ucs_status_t status = library->ucp_worker_create(rail.context_, &wanted, &rail.worker_);
    if (status != UCS_OK) return library.failed("starting the network", status);
    GANTRY_TRY(rail.read_address());
    if (!rail.only_messages()) GANTRY_TRY(rail.offer_card_keepalive_word());
    return rail;
}

Status Rail::offer_card_keepalive_word() {
    card_keepalive_word_ = std::make_unique<std::uint64_t>(0);
    ucp_mem_map_params_t wanted{};
    wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    wanted.address = card_keepalive_word_.get();
    wanted.length = sizeof *card_keepalive_word_;
    wanted.memory_type = UCS_MEMORY_TYPE_HOST;
    ucs_status_t status = (*library_)->ucp_mem_map(context_, &wanted, &card_keepalive_memory_);
    void* packed = nullptr;
    std::size_t length = 0;
    if (status == UCS_OK)
        status = (*library_)->ucp_rkey_pack(context_, card_keepalive_memory_, &packed, &length);
    if (status != UCS_OK)
        return library_->failed("registering a word for card keepalives of peers", status);
    card_keepalive_key_.assign(static_cast<const char*>(packed), length);
    (*library_)->ucp_rkey_buffer_release(packed);
    return success();
}

Status Rail::read_address() {
    ucp_address_t* bytes = nullptr;
    std::size_t length = 0;
    const ucs_status_t status = (*library_)->ucp_worker_get_address(worker_, &bytes, &length);
    if (status != UCS_OK) return library_->failed("asking for our network address", status);
    address_.assign(reinterpret_cast<const char*>(bytes), length);
    (*library_)->ucp_worker_release_address(worker_, bytes);
    return success();
}

// Only the printed form names transports in every release: lines that end in "transport/device".
void Rail::read_resources() {
    char* text = nullptr;
    std::size_t length = 0;
    std::FILE* file = open_memstream(&text, &length);
    if (file == nullptr) return;
    (*library_)->ucp_context_print_info(context_, file);
    std::fclose(file);
    std::string_view rest(text, length);
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const std::size_t slash = line.rfind('/');
        if (line.find("resource") == line.npos || slash == line.npos) continue;
        const std::size_t start = line.rfind(' ', slash);
        std::string_view name = line.substr(start == line.npos ? 0 : start + 1);
        name = name.substr(0, name.find(' '));
        if (name.find('/') != name.npos) resources_.emplace_back(name);
    }
    std::free(text);
}

std::vector<std::string> Rail::devices() const {
    std::vector<std::string> devices;
    std::ranges::copy_if(resources_, std::back_inserter(devices), leads_out);
    return devices;
}

bool Rail::only_tcp() const {
    return std::ranges::all_of(resources_, [](const std::string& resource) {
        return resource.starts_with("tcp/") || !leads_out(resource);
    });
}

bool Rail::only_messages() const {
    return std::ranges::all_of(resources_, [](const std::string& resource) {
        return resource.starts_with("tcp/") || resource.starts_with("ud_") || !leads_out(resource);
    });
}

Result<std::vector<Rail>> open_rails(const Library& library, const config::Config& config) {
    std::vector<std::string> names;
    for (std::string_view rest = config.rails; !rest.empty();) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        if (end > 0) names.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (names.empty()) names.emplace_back();
    std::vector<Rail> rails;
    for (const std::string& name : names) {
        Result<Rail> rail = Rail::open(library, name);
        if (!rail.ok()) return rail.status();
        // UCX opens a name that it does not know without a word, and reaches nobody then.
        if (!name.empty() && rail->devices().empty())
            return failure(
                MPI_ERR_ARG,
                "GANTRY_RAILS names {}, but UCX finds no such network device that is up "
                "on this machine; without the variable, gantry doctor lists those that it finds",
                name);
        for (const std::string& resource : rail->resources())
            log::info("ucx: rail {} has {}", rails.size(), resource);
        rails.push_back(std::move(*rail));
    }
    return rails;
}

}  // namespace gantry::transport::ucx
