// SPDX-License-Identifier: BSD-3-Clause
//
// Files of host memory as any MPI program writes and reads them: `gantry-bench io` without what only it
// needs, for every MPI library (bench/host_files compiles it against each). For each pattern (with "_all":
// by collective calls) and size rank 0 prints a line: pattern, bytes a rank, microseconds of the write, of
// the read, both of the slowest rank, of each the median of the samples and the least; patterns of "system" are pwrite and pread of as many bytes, which do
// not depend on the library. file_way.hpp says what is timed. What
// the file holds, and what was read, is checked behind each sample.
//
// host_files FOLDER SAMPLES BYTES[,BYTES...] [PATTERN...]
#include "file_way.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace gantry::bench;

namespace {

constexpr std::size_t kCall = 1 << 20, kBlock = 4096;

[[noreturn]] void give_up(const char* pattern, const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", pattern, why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

// Microseconds: the median and the least.
void print(const std::vector<double>& seconds) {
    std::vector<double> all = seconds;
    std::sort(all.begin(), all.end());
    std::printf(" %.2f %.2f", all[all.size() / 2] * 1e6, all[0] * 1e6);
}

void measure(const std::string& title, FileWay& way, const FileCase& what, int samples) {
    std::vector<std::byte> memory(what.part.bytes());
    std::vector<double> writes, reads;
    const bool checked = std::strcmp(way.name(), "system") != 0;
    for (int sample = 0; sample <= samples; ++sample) {
        const auto number = static_cast<std::uint64_t>(sample);
        std::string failed;
        what.part.fill(memory.data(), number);
        const double write = way.write(memory.data(), failed);
        if (checked && failed.empty()) failed = mistake_in_file(what, number);
        std::fill(memory.begin(), memory.end(), std::byte{0xee});
        MPI_Barrier(MPI_COMM_WORLD);
        const double read = failed.empty() ? way.read(memory.data(), failed) : 0;
        if (checked && failed.empty()) failed = what.part.mistake(memory.data(), number);
        if (!failed.empty()) give_up(title.c_str(), failed);
        if (sample == 0) continue;
        writes.push_back(write);
        reads.push_back(read);
    }
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0) return;
    std::printf("%s %zu", title.c_str(), what.part.bytes());
    print(writes);
    print(reads);
    std::printf("\n");
    std::fflush(stdout);
}

bool wanted(const std::string& title, int argc, char** argv) {
    for (int i = 4; i < argc; ++i)
        if (title == argv[i]) return true;
    return argc <= 4;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc < 4) {
        std::fprintf(stderr, "host_files FOLDER SAMPLES BYTES[,BYTES...] [PATTERN...]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::string path = std::string(argv[1]) + "/host-files";
    const int samples = std::atoi(argv[2]);
    std::vector<std::size_t> sizes;
    for (const char* size = std::strtok(argv[3], ","); size != nullptr;
         size = std::strtok(nullptr, ","))
        sizes.push_back(std::strtoull(size, nullptr, 10));
    for (const std::size_t bytes : sizes)
        for (const FilePattern pattern : kFilePatterns)
            for (const char* how : {"", "_all", "_system"}) {
                const std::string title = std::string(name(pattern)) + how;
                // The floor does not depend on the pattern.
                const bool of_system = std::strcmp(how, "_system") == 0;
                if (of_system && pattern != FilePattern::contiguous) continue;
                if (!wanted(title, argc, argv)) continue;
                const FilePart part(pattern, rank, ranks, bytes, kBlock);
                const FileCase what{part, path, std::strcmp(how, "_all") == 0, kCall};
                const auto way = of_system ? system_file_way(what) : library_file_way(what, "MPI");
                measure(title, *way, what, samples);
            }
    remove_file(path);
    MPI_Finalize();
    return 0;
}
