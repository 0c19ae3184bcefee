// SPDX-License-Identifier: BSD-3-Clause
#include "io/hints.hpp"

#include <charconv>
#include <climits>

namespace gantry::io {
namespace {

using plan::IoSwitch;

bool take_switch(std::string_view value, IoSwitch& into) {
    if (value == "automatic")
        into = IoSwitch::automatic;
    else if (value == "enable" || value == "true")
        into = IoSwitch::enable;
    else if (value == "disable" || value == "false")
        into = IoSwitch::disable;
    else
        return false;
    return true;
}

template <class T>
bool take_number(std::string_view value, T least, T most, T& into) {
    T number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) return false;
    if (number < least || number > most) return false;
    into = number;
    return true;
}

const char* word(IoSwitch of) {
    switch (of) {
        case IoSwitch::enable: return "enable";
        case IoSwitch::disable: return "disable";
        default: return "automatic";
    }
}

constexpr Bytes kLargestWindow = 1 * kGiB;
constexpr Bytes kLargestStripe = 1 * kGiB;

}  // namespace

bool Hints::take(std::string_view key, std::string_view value) {
    if (key == "romio_cb_read") return take_switch(value, collective_read);
    if (key == "romio_cb_write") return take_switch(value, collective_write);
    if (key == "romio_ds_read") return take_switch(value, sieve_read);
    if (key == "gantry_direct_storage") return take_switch(value, direct_storage);
    if (key == "gantry_io_uring") {
        IoSwitch its = IoSwitch::automatic;
        if (!take_switch(value, its)) return false;
        io_uring = its != IoSwitch::disable;
        return true;
    }
    if (key == "collective_buffering") {
        IoSwitch both;
        if (!take_switch(value, both)) return false;
        // The standard's word allows it; ROMIO's commands it.
        collective_read = collective_write =
            both == IoSwitch::disable ? IoSwitch::disable : IoSwitch::automatic;
        return true;
    }
    if (key == "cb_nodes") return take_number(value, 1, INT_MAX, aggregators);
    if (key == "cb_buffer_size") return take_number(value, 4 * kKiB, kLargestWindow, window);
    if (key == "striping_unit" || key == "cb_block_size")
        return take_number(value, Bytes{1}, kLargestStripe, stripe);
    return false;
}

std::vector<std::pair<std::string, std::string>> Hints::told() const {
    std::vector<std::pair<std::string, std::string>> all{
        {"romio_cb_read", word(collective_read)},   {"romio_cb_write", word(collective_write)},
        {"romio_ds_read", word(sieve_read)},        {"romio_ds_write", "disable"},
        {"cb_buffer_size", std::to_string(window)},
    };
    if (direct_storage != IoSwitch::automatic)
        all.emplace_back("gantry_direct_storage", word(direct_storage));
    if (!io_uring) all.emplace_back("gantry_io_uring", word(IoSwitch::disable));
    if (aggregators > 0) all.emplace_back("cb_nodes", std::to_string(aggregators));
    if (stripe > 0) all.emplace_back("striping_unit", std::to_string(stripe));
    return all;
}

}  // namespace gantry::io
