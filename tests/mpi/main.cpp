// SPDX-License-Identifier: BSD-3-Clause
//
//   mpiexec -n RANKS mpi_tests CASE       one case
//   mpi_tests --list                      cases and their numbers of ranks
#include "test.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace mpi_tests {
namespace {

std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}
const Case* current = nullptr;
int my_rank = 0, my_size = 1;
std::atomic<bool> failed{false};
std::string subject;

}  // namespace

bool add(Case test_case) {
    cases().push_back(test_case);
    return true;
}
int rank() {
    return my_rank;
}
int size() {
    return my_size;
}

void fail(const char* file, int line, const std::string& what) {
    failed = true;
    const char* name = std::strrchr(file, '/');
    std::fprintf(stderr, "%s:%d: rank %d: %s%s%s%s\n  again: mpiexec -n %d mpi_tests %s\n",
                 name != nullptr ? name + 1 : file, line, my_rank, what.c_str(),
                 subject.empty() ? "" : " (", subject.c_str(), subject.empty() ? "" : ")",
                 current->ranks, current->name);
}

void fail_check(const char* file, int line, const char* condition) {
    fail(file, line, std::string("not true: ") + condition);
}

void fail_check(const char* file, int line, const char* text, long long actual,
                const char* expected_text, long long expected) {
    fail(file, line,
         std::string(text) + " is " + std::to_string(actual) + ", not " + expected_text + " (" +
             std::to_string(expected) + ")");
}

bool one_gpu_each() {
    return std::getenv("TESTS_ONE_GPU_EACH") != nullptr;
}

bool has_failed() {
    return failed;
}

void about(const std::string& what) {
    subject = what;
}

void start_mpi() {
    start_mpi(MPI_THREAD_SINGLE);
}
void start_mpi(int thread_level) {
    int given = -1;
    if (thread_level == MPI_THREAD_SINGLE)
        MPI_Init(nullptr, nullptr);
    else
        MPI_Init_thread(nullptr, nullptr, thread_level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &my_size);
    if (thread_level != MPI_THREAD_SINGLE) CHECK_EQ(given, thread_level);
}

void skip(const std::string& why) {
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (my_rank == 0) std::printf("not run: %s\n", why.c_str());
    std::fflush(stdout);
    if (initialized && !finalized) MPI_Finalize();
    std::exit(failed ? 1 : 77);
}

int error_class(int code) {
    int found = -1;
    MPI_Error_class(code, &found);
    return found;
}

int run(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
        for (const Case& each : cases())
            std::printf("%s %d\n", each.name, each.ranks);
        return 0;
    }
    for (const Case& each : cases())
        if (argc == 2 && std::strcmp(argv[1], each.name) == 0) current = &each;
    if (current == nullptr) {
        std::fprintf(
            stderr,
            "usage: mpiexec -n RANKS mpi_tests CASE   (mpi_tests --list names the cases)\n");
        return 2;
    }
    if (const char* number = std::getenv("PMI_RANK"); one_gpu_each() && number != nullptr)
        setenv("CUDA_VISIBLE_DEVICES", number, 1);
    if (current->starts_mpi) {
        current->run();
        return failed ? 1 : 0;
    }
    start_mpi();
    if (my_size != current->ranks) {
        std::fprintf(stderr, "%s needs %d ranks, there are %d\n", current->name, current->ranks,
                     my_size);
        return 2;
    }
    current->run();
    MPI_Finalize();
    return failed ? 1 : 0;
}

}  // namespace mpi_tests

int main(int argc, char** argv) {
    return mpi_tests::run(argc, argv);
}
