// SPDX-License-Identifier: BSD-3-Clause
//
// Machine to and from JSON. Every field is optional and keeps its default, except the name; a field
// that is not known is an error, since it is almost surely a misspelt one. `Fields` remembers the
// first problem with its place ("gpu.d2h.gap_ns"), so the readers below stay lists of fields.
#include "model/machine.hpp"

#include <mpi.h>
#include <nlohmann/json.hpp>

#include <set>

namespace gantry::model {
namespace {

using Json = nlohmann::ordered_json;

// Walks one object; `visit_*` below name its fields once for reading.
class Fields {
  public:
    Fields(const Json& object, std::string place, Status& problem)
        : object_(object), place_(std::move(place)), problem_(problem) {
        if (!object_.is_object()) complain("", "an object");
    }
    ~Fields() {
        if (!object_.is_object()) return;
        for (const auto& [name, value] : object_.items())
            if (!known_.contains(name)) complain(name, "a known field");
    }
    Fields(const Fields&) = delete;
    Fields& operator=(const Fields&) = delete;

    template <class Integer>
    void integer(const char* name, Integer& value) {
        const Json* json = find(name);
        if (json == nullptr) return;
        // Measured means are not whole numbers; a nanosecond or a byte is as fine as we count.
        if (!json->is_number() || json->get<double>() < 0)
            return complain(name, "a number, 0 or more");
        value = json->is_number_integer() ? static_cast<Integer>(json->get<std::int64_t>())
                                          : static_cast<Integer>(json->get<double>() + 0.5);
    }
    void real(const char* name, double& value) {
        const Json* json = find(name);
        if (json == nullptr) return;
        if (!json->is_number() || json->get<double>() < 0)
            return complain(name, "a number, 0 or more");
        value = json->get<double>();
    }
    void reals(const char* name, std::vector<double>& value) {
        const Json* json = find(name);
        if (json == nullptr) return;
        constexpr const char* wanted = "a list of numbers above 0";
        if (!json->is_array()) return complain(name, wanted);
        std::vector<double> numbers;
        for (const Json& number : *json) {
            if (!number.is_number() || number.get<double>() <= 0) return complain(name, wanted);
            numbers.push_back(number.get<double>());
        }
        value = std::move(numbers);
    }
    void text(const char* name, std::string& value) {
        const Json* json = find(name);
        if (json == nullptr) return;
        if (!json->is_string()) return complain(name, "a text");
        value = json->get<std::string>();
    }
    void flag(const char* name, bool& value) {
        const Json* json = find(name);
        if (json == nullptr) return;
        if (!json->is_boolean()) return complain(name, "true or false");
        value = json->get<bool>();
    }
    // A number, or a list of [bytes, bytes per second] with growing sizes.
    void rate(const char* name, Rate& value) {
        const Json* json = find(name);
        if (json == nullptr) return;
        constexpr const char* wanted =
            "a rate above 0, or a list of [bytes, bytes per second] by growing size";
        if (json->is_number()) {
            if (json->get<double>() <= 0) return complain(name, wanted);
            value = Rate(json->get<double>());
            return;
        }
        if (!json->is_array() || json->empty()) return complain(name, wanted);
        std::vector<Rate::Point> points;
        for (const Json& point : *json) {
            if (!point.is_array() || point.size() != 2 || !point[0].is_number() ||
                !point[1].is_number() || point[0].get<double>() < 0 || point[1].get<double>() <= 0)
                return complain(name, wanted);
            points.push_back({static_cast<Bytes>(point[0].get<double>()), point[1].get<double>()});
            if (points.size() > 1 && points[points.size() - 2].bytes >= points.back().bytes)
                return complain(name, wanted);
        }
        value = Rate(std::move(points));
    }
    void turn_below(const char* name, Bytes& value) {
        const Json* json = find(name);
        if (json == nullptr) return;
        if (json->is_string() && json->get<std::string>() == "always") {
            value = kAlwaysTurn;
            return;
        }
        integer(name, value);
    }
    template <class Reader, class Value>
    void object(const char* name, Value& value, Reader read) {
        const Json* json = find(name);
        if (json == nullptr) return;
        Fields fields(*json, place_.empty() ? name : place_ + "." + name, problem_);
        read(fields, value);
    }
    const Json* find(const char* name) {
        known_.insert(name);
        if (!object_.is_object()) return nullptr;
        const auto found = object_.find(name);
        return found != object_.end() ? &*found : nullptr;
    }
    void complain(const std::string& name, const char* wanted) {
        if (!problem_.ok()) return;
        problem_ = failure(MPI_ERR_ARG, "field {}{}{} is not {}", place_,
                           place_.empty() || name.empty() ? "" : ".", name, wanted);
    }

  private:
    const Json& object_;
    std::string place_;
    Status& problem_;
    std::set<std::string> known_;
};

void read_copy(Fields& fields, CopyCost& copy) {
    fields.integer("latency_ns", copy.latency);
    fields.integer("gap_ns", copy.gap);
    fields.real("row_ns", copy.row);
    fields.turn_below("turn_below", copy.turn_below);
    fields.rate("bytes_per_second", copy.rate);
    if (copy.gap > copy.latency) fields.complain("gap_ns", "at most latency_ns");
}

void read_calls(Fields& fields, CallCost& calls) {
    fields.integer("copy_ns", calls.copy);
    fields.integer("further_copy_ns", calls.further_copy);
    fields.integer("launch_ns", calls.launch);
    fields.integer("event_record_ns", calls.event_record);
    fields.integer("event_query_ns", calls.event_query);
    fields.integer("event_query_vain_ns", calls.event_query_vain);
    // Said nowhere, also not by the half that this one starts from (gpu_under_mps).
    if (calls.event_query_vain == 0) calls.event_query_vain = calls.event_query;
    fields.integer("write_value_ns", calls.write_value);
    fields.integer("event_seen_ns", calls.event_seen);
    fields.integer("d2d_event_seen_ns", calls.d2d_event_seen);
    fields.integer("host_event_seen_ns", calls.host_event_seen);
    fields.integer("classify_host_ns", calls.classify_host);
    fields.integer("classify_device_ns", calls.classify_device);
    fields.integer("allocate_ns", calls.allocate);
    fields.integer("register_host_ns", calls.register_host);
    fields.integer("ipc_export_ns", calls.ipc_export);
    fields.integer("ipc_open_ns", calls.ipc_open);
    fields.integer("ipc_open_peer_ns", calls.ipc_open_peer);
    fields.integer("ipc_pair_ns", calls.ipc_pair);
    fields.integer("ipc_open_large_ns", calls.ipc_open_large);
    fields.integer("ipc_close_ns", calls.ipc_close);
    fields.integer("vmm_open_ns", calls.vmm_open);
    fields.integer("pool_open_ns", calls.pool_open);
    fields.integer("pool_open_peer_ns", calls.pool_open_peer);
    fields.integer("pool_first_ns", calls.pool_first);
}

void read_kernel(Fields& fields, KernelCost& kernel) {
    fields.integer("latency_ns", kernel.latency);
    fields.real("thread_ns", kernel.thread);
    fields.integer("resident_ns", kernel.resident);
    fields.integer("resident_out_ns", kernel.resident_out);
    fields.integer("resident_in_ns", kernel.resident_in);
    fields.integer("worth_bytes", kernel.worth_bytes);
    fields.integer("worth_copies", kernel.worth_copies);
    fields.integer("enough_blocks", kernel.enough_blocks);
    fields.real("peer_stores", kernel.peer_stores);
    fields.real("peer_loads", kernel.peer_loads);
    if (kernel.enough_blocks < 1) fields.complain("enough_blocks", "at least 1");
}

void read_window(Fields& fields, WindowCost& window) {
    fields.integer("open_ns", window.open);
    fields.integer("read_ns", window.read);
    fields.integer("write_ns", window.write);
    fields.real("read_bytes_per_second", window.read_bytes_per_second);
    fields.real("write_bytes_per_second", window.write_bytes_per_second);
}

void read_gpu(Fields& fields, Gpu& gpu) {
    fields.text("name", gpu.name);
    if (const Json* capability = fields.find("compute_capability"); capability != nullptr) {
        if (!capability->is_array() || capability->size() != 2 ||
            !(*capability)[0].is_number_integer() || !(*capability)[1].is_number_integer())
            return fields.complain("compute_capability", "a pair of integers");
        gpu.compute_major = (*capability)[0].get<int>();
        gpu.compute_minor = (*capability)[1].get<int>();
    }
    fields.integer("memory_bytes", gpu.memory);
    fields.integer("copy_engines", gpu.copy_engines);
    if (gpu.copy_engines < 1) fields.complain("copy_engines", "at least 1");
    fields.integer("turn_ns", gpu.turn);
    fields.object("d2h", gpu.d2h, read_copy);
    fields.object("h2d", gpu.h2d, read_copy);
    fields.object("h2d_2d", gpu.h2d_2d, read_copy);
    fields.object("d2d", gpu.d2d, read_copy);
    fields.object("peer", gpu.peer, read_copy);
    fields.object("peer_get", gpu.peer_get, read_copy);
    fields.object("pageable_d2h", gpu.pageable_d2h, read_copy);
    fields.object("pageable_h2d", gpu.pageable_h2d, read_copy);
    fields.object("fill", gpu.fill, read_copy);
    fields.object("kernel", gpu.kernel, read_kernel);
    fields.object("calls", gpu.calls, read_calls);
    fields.object("window", gpu.window, read_window);
}

void read_host(Fields& fields, Host& host) {
    fields.rate("memcpy", host.memcpy);
    fields.real("streaming_bytes_per_second", host.streaming);
    fields.integer("flag_ns", host.flag);
}

void read_link(Fields& fields, Link& link) {
    fields.text("name", link.name);
    fields.integer("rails", link.rails);
    fields.integer("latency_ns", link.latency);
    fields.integer("message_ns", link.message_cost);
    fields.integer("put_ns", link.put_cost);
    fields.integer("register_ns", link.register_cost);
    fields.integer("eager_max_bytes", link.eager_max);
    fields.integer("eager_limit_bytes", link.eager_limit);
    fields.integer("header_bytes", link.header);
    fields.integer("control_max_bytes", link.control_max);
    fields.rate("bytes_per_second", link.rate);
    fields.integer("read_ns", link.read_latency);
    fields.rate("read_bytes_per_second", link.read_rate);
    fields.flag("device_memory", link.device_memory);
    fields.real("device_read_bytes_per_second", link.device_read);
    fields.real("device_write_bytes_per_second", link.device_write);
    fields.reals("rail_bytes_per_second", link.rail_rates);
    fields.real("shared_cap_bytes_per_second", link.shared_cap);
    if (!link.rail_rates.empty() && link.rail_rates.size() != static_cast<std::size_t>(link.rails))
        fields.complain("rail_bytes_per_second", "one rate for each rail");
    if (link.rails < 1) fields.complain("rails", "at least 1");
}

void read_machine(Fields& fields, Machine& machine) {
    fields.text("name", machine.name);
    if (machine.name.empty()) fields.complain("name", "a text that is not empty");
    fields.text("about", machine.about);
    fields.integer("gpus_per_node", machine.gpus_per_node);
    fields.flag("peer_access", machine.peer_access);
    fields.flag("ipc", machine.ipc);
    fields.object("gpu", machine.gpu, read_gpu);
    machine.gpu_under_mps = without_turns(machine.gpu);
    fields.object("gpu_under_mps", machine.gpu_under_mps, read_gpu);  // where it differs
    fields.object("host", machine.host, read_host);
    fields.object("shared_memory", machine.shared_memory, read_link);
    fields.object("network", machine.network, read_link);
}

Json rate_json(const Rate& rate) {
    if (rate.points().size() == 1) return rate.peak();
    Json list = Json::array();
    for (const Rate::Point& point : rate.points())
        list.push_back(Json::array({point.bytes, point.bytes_per_second}));
    return list;
}

Json copy_json(const CopyCost& copy) {
    Json json{{"latency_ns", copy.latency}, {"gap_ns", copy.gap}, {"row_ns", copy.row}};
    json["turn_below"] = copy.turn_below == kAlwaysTurn ? Json("always") : Json(copy.turn_below);
    if (!copy.rate.points().empty()) json["bytes_per_second"] = rate_json(copy.rate);
    return json;
}

Json calls_json(const CallCost& calls) {
    return {{"copy_ns", calls.copy},
            {"further_copy_ns", calls.further_copy},
            {"launch_ns", calls.launch},
            {"event_record_ns", calls.event_record},
            {"event_query_ns", calls.event_query},
            {"event_query_vain_ns", calls.event_query_vain},
            {"write_value_ns", calls.write_value},
            {"event_seen_ns", calls.event_seen},
            {"d2d_event_seen_ns", calls.d2d_event_seen},
            {"host_event_seen_ns", calls.host_event_seen},
            {"classify_host_ns", calls.classify_host},
            {"classify_device_ns", calls.classify_device},
            {"allocate_ns", calls.allocate},
            {"register_host_ns", calls.register_host},
            {"ipc_export_ns", calls.ipc_export},
            {"ipc_open_ns", calls.ipc_open},
            {"ipc_open_peer_ns", calls.ipc_open_peer},
            {"ipc_pair_ns", calls.ipc_pair},
            {"ipc_open_large_ns", calls.ipc_open_large},
            {"ipc_close_ns", calls.ipc_close},
            {"vmm_open_ns", calls.vmm_open},
            {"pool_open_ns", calls.pool_open},
            {"pool_open_peer_ns", calls.pool_open_peer},
            {"pool_first_ns", calls.pool_first}};
}

Json kernel_json(const KernelCost& kernel) {
    return {{"latency_ns", kernel.latency},         {"thread_ns", kernel.thread},
            {"resident_ns", kernel.resident},       {"resident_out_ns", kernel.resident_out},
            {"resident_in_ns", kernel.resident_in}, {"worth_bytes", kernel.worth_bytes},
            {"worth_copies", kernel.worth_copies},  {"enough_blocks", kernel.enough_blocks},
            {"peer_stores", kernel.peer_stores},    {"peer_loads", kernel.peer_loads}};
}

Json window_json(const WindowCost& window) {
    return {{"open_ns", window.open},
            {"read_ns", window.read},
            {"write_ns", window.write},
            {"read_bytes_per_second", window.read_bytes_per_second},
            {"write_bytes_per_second", window.write_bytes_per_second}};
}

Json gpu_json(const Gpu& gpu) {
    return {{"name", gpu.name},
            {"compute_capability", Json::array({gpu.compute_major, gpu.compute_minor})},
            {"memory_bytes", gpu.memory},
            {"copy_engines", gpu.copy_engines},
            {"turn_ns", gpu.turn},
            {"d2h", copy_json(gpu.d2h)},
            {"h2d", copy_json(gpu.h2d)},
            {"h2d_2d", copy_json(gpu.h2d_2d)},
            {"d2d", copy_json(gpu.d2d)},
            {"peer", copy_json(gpu.peer)},
            {"peer_get", copy_json(gpu.peer_get)},
            {"pageable_d2h", copy_json(gpu.pageable_d2h)},
            {"pageable_h2d", copy_json(gpu.pageable_h2d)},
            {"fill", copy_json(gpu.fill)},
            {"kernel", kernel_json(gpu.kernel)},
            {"calls", calls_json(gpu.calls)},
            {"window", window_json(gpu.window)}};
}

Json link_json(const Link& link) {
    Json json{{"name", link.name},
              {"rails", link.rails},
              {"latency_ns", link.latency},
              {"message_ns", link.message_cost},
              {"put_ns", link.put_cost},
              {"register_ns", link.register_cost},
              {"eager_max_bytes", link.eager_max},
              {"eager_limit_bytes", link.eager_limit},
              {"header_bytes", link.header},
              {"control_max_bytes", link.control_max},
              {"device_memory", link.device_memory},
              {"device_read_bytes_per_second", link.device_read},
              {"device_write_bytes_per_second", link.device_write}};
    if (!link.rate.points().empty()) json["bytes_per_second"] = rate_json(link.rate);
    if (!link.read_rate.points().empty()) {
        json["read_ns"] = link.read_latency;
        json["read_bytes_per_second"] = rate_json(link.read_rate);
    }
    if (!link.rail_rates.empty()) json["rail_bytes_per_second"] = link.rail_rates;
    if (link.shared_cap > 0) json["shared_cap_bytes_per_second"] = link.shared_cap;
    return json;
}

template <class Described, class Reader>
Result<Described> parse(std::string_view text, std::string_view origin, Reader read) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded())
        return failure(MPI_ERR_ARG, "machine description {} is not JSON", origin);
    Described described;
    Status problem;
    {
        Fields fields(json, "", problem);
        read(fields, described);
    }
    if (!problem.ok()) return problem.with(fmt::format("machine description {}", origin));
    return described;
}

}  // namespace

Result<Machine> from_json(std::string_view text, std::string_view origin) {
    return parse<Machine>(text, origin, read_machine);
}

Result<Link> link_from_json(std::string_view text, std::string_view origin) {
    return parse<Link>(text, origin, read_link);
}

std::string to_json(const Machine& machine) {
    Json host{{"flag_ns", machine.host.flag},
              {"streaming_bytes_per_second", machine.host.streaming}};
    if (!machine.host.memcpy.points().empty()) host["memcpy"] = rate_json(machine.host.memcpy);
    Json json{{"name", machine.name},
              {"about", machine.about},
              {"gpus_per_node", machine.gpus_per_node},
              {"peer_access", machine.peer_access},
              {"ipc", machine.ipc},
              {"gpu", gpu_json(machine.gpu)}};
    if (machine.gpu_under_mps != without_turns(machine.gpu))
        json["gpu_under_mps"] = gpu_json(machine.gpu_under_mps);
    json["host"] = host;
    json["shared_memory"] = link_json(machine.shared_memory);
    json["network"] = link_json(machine.network);
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gantry::model
