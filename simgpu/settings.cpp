// SPDX-License-Identifier: BSD-3-Clause
#include "settings.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace simgpu {
namespace {

std::size_t parse_bytes(const std::string& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    switch (*end) {
        case 'k':
        case 'K': value *= 1024.0; break;
        case 'm':
        case 'M': value *= 1024.0 * 1024.0; break;
        case 'g':
        case 'G': value *= 1024.0 * 1024.0 * 1024.0; break;
        default: break;
    }
    return static_cast<std::size_t>(value);
}

void apply(Settings& settings, const std::string& key, const std::string& value) {
    const auto number = [&] {
        char* end = nullptr;
        const long read = std::strtol(value.c_str(), &end, 10);
        if (value.empty() || *end != '\0') {
            settings.complaint += key + " takes a whole number, not '" + value + "'; ";
        }
        return read;
    };
    if (key == "machine") {
        settings.machine = value;
    } else if (key == "dev") {
        settings.devices = static_cast<int>(number());
    } else if (key == "mem") {
        settings.device_bytes = parse_bytes(value);
    } else if (key == "scale") {
        settings.scale = std::strtod(value.c_str(), nullptr);
    } else if (key == "help") {
        settings.help = number() != 0 ? Help::inline_on_caller : Help::off;
    } else if (key == "hidden") {
        settings.hidden = value == "refused" ? Hidden::refused : Hidden::mapped;
        if (value != "refused" && value != "mapped") {
            settings.complaint += "hidden must be mapped or refused; ";
        }
    } else if (key == "run") {
        settings.run = value;
    } else if (key == "suballoc") {
        settings.suballocation = static_cast<std::size_t>(number());
    } else if (key == "mps") {
        settings.mps = number() != 0;
    } else if (key == "poison") {
        settings.poison = number() != 0;
    } else if (key == "leaks") {
        settings.report_leaks = number() != 0;
    } else if (key == "trace") {
        settings.trace_file = value;
    } else if (key == "counts") {
        settings.counts_file = value;
    } else {
        settings.complaint += "there is no key '" + key +
                              "' (machine, scale, dev, hidden, mem, run, mps, help, suballoc, "
                              "poison, leaks, trace, counts); ";
    }
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t cut = text.find(separator);
        if (cut != 0) {
            parts.emplace_back(text.substr(0, cut));
        }
        text.remove_prefix(cut == std::string_view::npos ? text.size() : cut + 1);
    }
    return parts;
}

// "GPU-67616e74-7279-...": as much of it as tells a device from the others; -1: none, or several.
int device_named(const std::string& name, int devices) {
    int found = -1;
    for (int device = 0; device < devices; ++device) {
        std::string full = "GPU-";
        const Uuid uuid = uuid_of(device);
        for (std::size_t byte = 0; byte < uuid.size(); ++byte) {
            constexpr char kDigits[] = "0123456789abcdef";
            if (byte == 4 || byte == 6 || byte == 8 || byte == 10) {
                full += '-';
            }
            full += {kDigits[uuid[byte] >> 4], kDigits[uuid[byte] & 15]};
        }
        if (full.compare(0, name.size(), name) == 0) {
            if (found >= 0) {
                return -1;
            }
            found = device;
        }
    }
    return found;
}

int device_of(const std::string& name, int devices) {
    if (name.compare(0, 4, "GPU-") == 0) {
        return device_named(name, devices);
    }
    const long ordinal = std::strtol(name.c_str(), nullptr, 10);
    return ordinal >= 0 && ordinal < devices ? static_cast<int>(ordinal) : -1;
}

}  // namespace

Uuid uuid_of(int physical_device) {
    Uuid uuid{};
    std::memcpy(uuid.data(), "gantry-simgpu-", 14);
    uuid[15] = static_cast<unsigned char>(physical_device + 1);
    return uuid;
}

Settings parse_settings(const char* text, const char* visible_devices) {
    Settings settings;
    bool machine_named = false;
    bool scale_given = false;
    for (const std::string& part : split(text != nullptr ? text : "", ',')) {
        const std::size_t equals = part.find('=');
        const std::string key = part.substr(0, equals);
        apply(settings, key, equals == std::string::npos ? "1" : part.substr(equals + 1));
        machine_named |= key == "machine";
        scale_given |= key == "scale";
    }
    if (machine_named && !scale_given) {
        settings.scale = 1.0;
    }
    if (settings.devices < 0 || settings.devices > 16) {
        settings.complaint += "dev must be 0 to 16; ";
        settings.devices = 1;
    }
    if (visible_devices != nullptr) {
        for (const std::string& part : split(visible_devices, ',')) {
            const int device = device_of(part, settings.devices);
            if (device < 0) {
                break;  // the driver stops at the first one that it does not know
            }
            settings.visible.push_back(device);
        }
    } else {
        for (int ordinal = 0; ordinal < settings.devices; ++ordinal) {
            settings.visible.push_back(ordinal);
        }
    }
    return settings;
}

}  // namespace simgpu
