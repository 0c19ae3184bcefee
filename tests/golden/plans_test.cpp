// SPDX-License-Identifier: BSD-3-Clause
//
// Plans pinned as a table that people can read and review: plans.txt holds, for each scene, which
// way each message goes, what the model expects and what lost. A change of the planner shows as a
// diff of that file; GANTRY_GOLDEN_UPDATE=1 rewrites it.
#include "golden/pinned.hpp"
#include "golden/scenes.hpp"
#include "plan/text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string_view>

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

// What the winner cost less than, and what could not be done at all.
std::string beaten_text(const plan::Choice& choice) {
    std::string text;
    for (int i = 0; i < choice.rejected_count; ++i) {
        const plan::Rejected& rejected = choice.rejected[i];
        if (rejected.expected == 0) continue;
        text += fmt::format("{}{} {}", text.empty() ? " | " : ", ", plan::name(rejected.protocol),
                            plan::time_text(rejected.expected));
        if (std::string_view(rejected.why) != "slower") text += fmt::format(" ({})", rejected.why);
    }
    return text;
}
std::string impossible_text(const plan::Choice& choice) {
    std::string text;
    for (int i = 0; i < choice.rejected_count; ++i) {
        const plan::Rejected& rejected = choice.rejected[i];
        if (rejected.expected != 0 || rejected.protocol == plan::Protocol::self) continue;
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", plan::name(rejected.protocol),
                            rejected.why);
    }
    return text;
}

std::string rows(const Scene& scene, MemoryKind source, std::optional<MemoryKind> sink) {
    std::string text;
    std::string
        said;  // neighbouring sizes are impossible for the same reasons: printed when they change
    for (Bytes bytes : {Bytes{8}, 16 * kKiB, 64 * kKiB, kMiB, 4 * kMiB, 64 * kMiB}) {
        plan::Question question{.bytes = bytes, .source = end(source, scene.ipc), .sink = {}};
        if (sink) question.sink = end(*sink, scene.ipc);
        question.sink_known = sink.has_value();
        question.source.contiguous = !(scene.strided && question.source.on_device());
        question.sink.contiguous = !(scene.strided && question.sink.on_device());
        const plan::Choice choice = choose(question, scene.facts, scene.tuning);
        const std::string ends = fmt::format("{}->{}", letter(source), sink ? letter(*sink) : "?");
        const std::string impossible = impossible_text(choice);
        if (impossible != said && !scene.facts.peer.self)
            text += fmt::format("{} cannot go by {}\n", ends, impossible);
        said = impossible;
        text +=
            fmt::format("{} {:>8}  {:>8}  {}", ends, plan::bytes_text(bytes),
                        plan::time_text(choice.plan.expected), plan::describe(choice.plan, bytes));
        if (choice.plan.ahead > 0) text += fmt::format(", {} ahead", choice.plan.ahead);
        text += beaten_text(choice) + "\n";
    }
    return text;
}

// Those that differ from others only by what kind of host or device memory an end is.
std::string rows_where_they_matter(const Scene& scene) {
    constexpr std::string_view kScenes[] = {
        "one shared GPU (H200), busy: nobody copied in it lately",
        "two GPUs with peer access (H200), mapping not open yet",
        "two GPUs with peer access (H200), mappings open",
        "two GPUs, GANTRY_IPC=off (H200)",
        "two nodes, C2050 and QDR",
        "two nodes, PCIe 5 and 400 Gb/s (H200)",
    };
    if (std::ranges::find(kScenes, scene.name) == std::end(kScenes)) return {};
    return rows(scene, MemoryKind::pinned, {}) + rows(scene, MemoryKind::pinned, MemoryKind::host) +
           rows(scene, MemoryKind::device, MemoryKind::managed);
}

std::string table() {
    std::string text =
        "# Plans by scene (tests/golden/scenes.hpp). H pageable host, P pinned, D device, M "
        "managed; ? the sender's offer.\n"
        "# Rewrite with GANTRY_GOLDEN_UPDATE=1 golden_tests; read the diff before committing it.\n";
    for (const Scene& scene : scenes()) {
        text += fmt::format("\n== {} ==\n", scene.name);
        if (scene.strided) {
            text += rows(scene, MemoryKind::device, {});
            text += rows(scene, MemoryKind::device, MemoryKind::device);
            text += rows(scene, MemoryKind::device, MemoryKind::host);
            text += rows(scene, MemoryKind::host, MemoryKind::device);
            continue;
        }
        const bool has_gpu = scene.name != "one node, no GPU";
        if (has_gpu) {
            if (!scene.facts.peer.self) text += rows(scene, MemoryKind::device, {});
            text += rows(scene, MemoryKind::device, MemoryKind::device);
            text += rows(scene, MemoryKind::device, MemoryKind::host);
            text += rows(scene, MemoryKind::device, MemoryKind::pinned);
            text += rows(scene, MemoryKind::host, MemoryKind::device);
            text += rows(scene, MemoryKind::pinned, MemoryKind::device);
            text += rows(scene, MemoryKind::managed, MemoryKind::device);
            if (!scene.facts.peer.self) text += rows_where_they_matter(scene);
        }
        if (!scene.facts.peer.self) text += rows(scene, MemoryKind::host, {});
        text += rows(scene, MemoryKind::host, MemoryKind::host);
    }
    return text;
}

TEST(GoldenPlans, AreThoseOfTheTable) {
    expect_pinned(GANTRY_TEST_DATA "/plans.txt", table());
}

}  // namespace
}  // namespace gantry::test
