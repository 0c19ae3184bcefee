// SPDX-License-Identifier: BSD-3-Clause
//
// Files that all ranks write and read, in the manner of IOR: each has a part (file_part.hpp), in memory of
// one kind. With --floor the system's own calls move as many bytes beside the library, sample by sample;
// what is timed stands in file_way.hpp. The whole file is checked behind each write, by reading it without
// MPI, and each rank's memory behind each read.
#include "io.hpp"

#include "driver.hpp"
#include "buffer.hpp"
#include "file_way.hpp"
#include "io_options.hpp"
#include "job.hpp"
#include "statistics.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace gantry::bench {
namespace {

// The memory of one size, and samples of a way.
class Exercise {
  public:
    Exercise(const IoOptions& asked, const FileCase& what)
        : asked_(asked),
          what_(what),
          memory_(asked.placement, what.part.bytes(), 1),
          scratch_(memory_.total_bytes()) {}

    // Seconds of the write and of the read.
    std::pair<double, double> sample(FileWay& way, std::uint64_t number, bool of_library) {
        std::string failed;
        if (number == 0 || asked_.validate) {
            what_.part.fill(scratch_.data(), number);
            memory_.write(scratch_.data());
        }
        const double write = way.write(memory_.message(0), failed);
        if (asked_.validate && failed.empty() && of_library)
            if (const std::string wrong = mistake_in_file(what_, number); !wrong.empty())
                failed = wrong + " of the file is not what was written";
        // In one order on all ranks, so that nobody reads a file that another one still checks.
        meet();
        if (asked_.validate) {
            std::memset(scratch_.data(), 0xee, scratch_.size());
            memory_.write(scratch_.data());
        }
        const double read = failed.empty() ? way.read(memory_.message(0), failed) : 0;
        if (asked_.validate && failed.empty() && of_library) {
            memory_.read(scratch_.data());
            if (const std::string wrong = what_.part.mistake(scratch_.data(), number);
                !wrong.empty())
                failed = wrong + " of the file was not read as it is";
        }
        if (!failed.empty())
            give_up(fmt::format("{} of {} bytes a rank by {}: {}", name(asked_.pattern),
                                what_.part.bytes(), way.name(), failed));
        meet();
        return {write, read};
    }

  private:
    const IoOptions& asked_;
    const FileCase& what_;
    const Buffer memory_;
    std::vector<std::byte> scratch_;
};

struct Shown {
    std::string way;
    Median seconds;
    double ratio = 0;  // of the floors: how many times longer the library takes, sample by sample
};

// The median of quotients: what else the machine does meanwhile hits both of a sample alike.
double ratio(const std::vector<double>& library, const std::vector<double>& floor) {
    std::vector<double> quotients;
    for (std::size_t i = 0; i < library.size(); ++i)
        quotients.push_back(library[i] / floor[i]);
    return median(quotients).value;
}

std::vector<Shown> measure(const IoOptions& asked, const FileCase& what) {
    std::vector<std::unique_ptr<FileWay>> ways;
    const std::string library = library_name();
    ways.push_back(library_file_way(what, library.c_str()));
    if (asked.floor) ways.push_back(system_file_way(what));
    Exercise exercise(asked, what);
    const int samples = asked.samples > 0 ? asked.samples : what.part.bytes() <= kMiB ? 40 : 15;
    std::vector<std::vector<double>> writes(ways.size()), reads(ways.size());
    for (int number = 0; number <= samples; ++number)
        for (std::size_t i = 0; i < ways.size(); ++i) {
            const auto [write, read] =
                exercise.sample(*ways[i], static_cast<std::uint64_t>(number), i == 0);
            if (number == 0) continue;  // warms up
            writes[i].push_back(write);
            reads[i].push_back(read);
        }
    std::vector<Shown> figures;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        figures.push_back({fmt::format("{} write", ways[i]->name()), median(writes[i]),
                           i > 0 ? ratio(writes[0], writes[i]) : 0});
        figures.push_back({fmt::format("{} read", ways[i]->name()), median(reads[i]),
                           i > 0 ? ratio(reads[0], reads[i]) : 0});
    }
    return figures;
}

// MB/s of all ranks together.
double rate(const FilePart& part, double seconds) {
    return static_cast<double>(part.file_bytes()) / seconds / 1e6;
}

void print(const IoOptions& asked, int ranks, const FilePart& part,
           const std::vector<Shown>& figures, bool& headed) {
    if (asked.json) {
        for (const Shown& figure : figures) {
            fmt::print(
                "{{\"benchmark\": \"io {}\", \"placement\": \"{}\", \"ranks\": {}, "
                "\"collective\": {}, \"bytes\": {}, \"way\": \"{}\", \"us\": {:.2f}, "
                "\"low\": {:.2f}, \"high\": {:.2f}, \"mb_s\": {:.1f}",
                name(asked.pattern), static_cast<char>(asked.placement), ranks, asked.together,
                part.bytes(), figure.way, figure.seconds.value * 1e6, figure.seconds.low * 1e6,
                figure.seconds.high * 1e6, rate(part, figure.seconds.value));
            if (figure.ratio > 0) fmt::print(", \"library_takes\": {:.3f}", figure.ratio);
            fmt::print("}}\n");
        }
        return;
    }
    if (!std::exchange(headed, true)) {
        fmt::print(
            "# io {} {}, {} ranks, {} calls, file in {}: MB/s of all ranks, medians\n# {}\n",
            name(asked.pattern), static_cast<char>(asked.placement), ranks,
            asked.together ? "collective" : "independent", asked.folder,
            asked.validate ? "every byte is checked, outside the time" : "data is NOT checked");
        if (asked.floor)
            fmt::print("# ratio: the library's time divided by the system's, sample by sample\n");
        fmt::print("# {:>12}", "bytes/rank");
        for (const Shown& figure : figures)
            fmt::print(" {:>16}{}", figure.way, figure.ratio > 0 ? "    ratio" : "");
        fmt::print("\n");
    }
    fmt::print("{:>14}", part.bytes());
    for (const Shown& figure : figures) {
        fmt::print(" {:>16.1f}", rate(part, figure.seconds.value));
        if (figure.ratio > 0) fmt::print(" {:>8.3f}", figure.ratio);
    }
    fmt::print("\n");
}

// One name for all ranks, which no other job has.
std::string path_in(const std::string& folder) {
    int id = static_cast<int>(getpid());
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return fmt::format("{}/gantry-bench-{}", folder, id);
}

}  // namespace

int io(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    IoOptions asked = parse_io(argc - 1, argv + 1);
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (asked.placement != Placement::host) {
        driver().start_in_turn(std::move(asked.gpus), rank());
    }
    const std::string path = path_in(asked.folder);
    bool headed = false;
    for (const Bytes bytes : asked.sizes) {
        const FilePart part(asked.pattern, rank(), ranks, bytes, asked.block);
        const std::vector<Shown> figures =
            measure(asked, {part, path, asked.together, (asked.call + 7) / 8 * 8});
        if (first()) print(asked, ranks, part, figures, headed);
        std::fflush(stdout);
    }
    remove_file(path);
    driver().stop();
    MPI_Finalize();
    return 0;
}

}  // namespace gantry::bench
