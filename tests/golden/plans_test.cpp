// SPDX-License-Identifier: BSD-3-Clause
//
// Plans pinned as a table that people can read and review: plans.txt holds, for each scene, which
// way each message goes. A choice that changes shows as a diff of that file; GANTRY_GOLDEN_UPDATE=1 rewrites it.
#include "golden/pinned.hpp"
#include "golden/scenes.hpp"
#include "plan/text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::test {
namespace {

using device::MemoryKind;

const char* letter(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::host: return "H";
        case MemoryKind::pinned: return "P";
        case MemoryKind::device: return "D";
        case MemoryKind::managed: return "M";
    }
    return "?";
}

// The choice alone: what follows from prices (how many chunks, how deep, how long it takes) is not pinned.
std::string way_text(plan::Plan plan, Bytes bytes) {
    plan.why = "";
    plan.chunk = bytes;
    plan.depth = 1;
    std::string text = plan::describe(plan, bytes);
    if (const std::string one = fmt::format("1 chunk of {}, ", plan::bytes_text(bytes));
        text.find(one) != std::string::npos)
        text.erase(text.find(one), one.size());
    return text;
}

// Neighbouring sizes that go alike are one line.
std::string ways(const Scene& scene, MemoryKind source, std::optional<MemoryKind> sink) {
    std::string text, said;
    for (Bytes bytes : {Bytes{8}, 16 * kKiB, 64 * kKiB, kMiB, 4 * kMiB, 64 * kMiB}) {
        plan::Question question{.bytes = bytes, .source = end(source, scene.ipc), .sink = {}};
        if (sink) question.sink = end(*sink, scene.ipc);
        question.sink_known = sink.has_value();
        question.source.contiguous = !(scene.strided && question.source.on_device());
        question.sink.contiguous = !(scene.strided && question.sink.on_device());
        const plan::Choice choice = choose(question, scene.facts, scene.tuning);
        const std::string way = way_text(choice.plan, bytes);
        if (way != std::exchange(said, way))
            text += fmt::format("  from {:>6}  {}\n", plan::bytes_text(bytes), way);
    }
    return text;
}

using Ends = std::pair<MemoryKind, std::optional<MemoryKind>>;

// Those that differ from others only by what kind of host or device memory an end is.
std::vector<Ends> ends_where_they_matter(const Scene& scene) {
    constexpr std::string_view kScenes[] = {
        "one shared GPU (H200), busy: nobody copied in it lately",
        "two GPUs with peer access (H200), mapping not open yet",
        "two GPUs with peer access (H200), mappings open",
        "two GPUs, GANTRY_IPC=off (H200)",
        "two nodes, C2050 and QDR",
        "two nodes, PCIe 5 and 400 Gb/s (H200)",
    };
    if (std::ranges::find(kScenes, scene.name) == std::end(kScenes)) return {};
    return {{MemoryKind::pinned, std::nullopt},
            {MemoryKind::pinned, MemoryKind::host},
            {MemoryKind::device, MemoryKind::managed}};
}

std::vector<Ends> ends_of(const Scene& scene) {
    using enum MemoryKind;
    if (scene.strided)
        return {{device, std::nullopt}, {device, device}, {device, host}, {host, device}};
    std::vector<Ends> all;
    const bool to_self = scene.facts.peer.self;
    if (scene.name != "one node, no GPU") {
        if (!to_self) all.push_back({device, std::nullopt});
        for (const Ends& each : std::initializer_list<Ends>{{device, device},
                                                            {device, host},
                                                            {device, pinned},
                                                            {host, device},
                                                            {pinned, device},
                                                            {managed, device}})
            all.push_back(each);
        if (!to_self) std::ranges::copy(ends_where_they_matter(scene), std::back_inserter(all));
    }
    if (!to_self) all.push_back({host, std::nullopt});
    all.push_back({host, host});
    return all;
}

// Ends that go alike are named together.
std::string table() {
    std::string text =
        "# Ways of messages by scene (tests/golden/scenes.hpp). H pageable host, P pinned, D "
        "device, M "
        "managed; ? the sender's offer.\n"
        "# Rewrite with GANTRY_GOLDEN_UPDATE=1 golden_tests; read the diff before committing it.\n";
    for (const Scene& scene : scenes()) {
        std::vector<std::pair<std::string, std::string>> alike;
        for (const auto& [source, sink] : ends_of(scene)) {
            const std::string name =
                fmt::format("{}->{}", letter(source), sink ? letter(*sink) : "?");
            std::string way = ways(scene, source, sink);
            const auto same = std::ranges::find(alike, way, &decltype(alike)::value_type::second);
            if (same != alike.end())
                same->first += " " + name;
            else
                alike.emplace_back(name, std::move(way));
        }
        text += fmt::format("\n== {} ==\n", scene.name);
        for (const auto& [names, way] : alike)
            text += names + "\n" + way;
    }
    return text;
}

TEST(GoldenPlans, AreThoseOfTheTable) {
    expect_pinned(GANTRY_TEST_DATA "/plans.txt", table());
}

}  // namespace
}  // namespace gantry::test
