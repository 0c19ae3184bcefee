// SPDX-License-Identifier: BSD-3-Clause
//
// A libmpi_abi.so.1 for gantry-bench over Open MPI: the functions that the program calls, with the
// standard ABI's handles, handed on to libmpi.so.40. So one program is measured with every library,
// and no compiler is needed where the measuring is done.
//
// Open MPI's predefined handles are the addresses of its objects (ompi_mpi_comm_world, ...), and
// its requests are pointers, which pass through; only the null request differs. Statuses are
// ignored here as in the program. Anything else is refused with a sentence and an abort.
#include <mpi.h>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

void* library() {
    static void* const opened = [] {
        void* found = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
        if (found == nullptr) {
            std::fprintf(stderr, "ompi_abi: Open MPI cannot be loaded: %s\n", dlerror());
            std::abort();
        }
        return found;
    }();
    return opened;
}

void* find(const char* symbol) {
    void* found = dlsym(library(), symbol);
    if (found == nullptr) {
        std::fprintf(stderr, "ompi_abi: this Open MPI has no %s\n", symbol);
        std::abort();
    }
    return found;
}

[[noreturn]] void unknown(const char* kind) {
    std::fprintf(stderr, "ompi_abi: a %s that gantry-bench did not use when this was written\n",
                 kind);
    std::abort();
}

void* of(MPI_Comm comm) {
    static void* const world = find("ompi_mpi_comm_world");
    if (comm != MPI_COMM_WORLD) unknown("communicator");
    return world;
}

void* of(MPI_Datatype type) {
    static void* const byte = find("ompi_mpi_byte");
    if (type == MPI_BYTE) return byte;
    if (type == MPI_CHAR) return find("ompi_mpi_char");
    if (type == MPI_INT) return find("ompi_mpi_int");
    if (type == MPI_LONG) return find("ompi_mpi_long");
    if (type == MPI_DOUBLE) return find("ompi_mpi_double");
    if (type == MPI_UINT64_T) return find("ompi_mpi_uint64_t");
    unknown("datatype");
}

void* of(MPI_Op op) {
    if (op != MPI_MAX) unknown("reduction");
    return find("ompi_mpi_op_max");
}

void check(const void* status) {
    if (status != nullptr) unknown("status that is not ignored");
}

MPI_Request theirs_null() {
    static const auto null = static_cast<MPI_Request>(find("ompi_request_null"));
    return null;
}

// Our null requests become theirs for the time of a call.
class Requests {
  public:
    Requests(int count, MPI_Request* requests) : count_(count), requests_(requests) {
        replace(MPI_REQUEST_NULL, theirs_null());
    }
    ~Requests() { replace(theirs_null(), MPI_REQUEST_NULL); }
    Requests(const Requests&) = delete;
    Requests& operator=(const Requests&) = delete;

  private:
    void replace(MPI_Request from, MPI_Request to) {
        for (int i = 0; i < count_; ++i)
            if (requests_[i] == from) requests_[i] = to;
    }
    int count_;
    MPI_Request* requests_;
};

}  // namespace

// One of theirs, found at its first call.
#define THEIRS(name, ...)                  \
    using Function = int (*)(__VA_ARGS__); \
    static const auto theirs = reinterpret_cast<Function>(find(name))

extern "C" {

int MPI_Init(int* argc, char*** argv) {
    THEIRS("MPI_Init", int*, char***);
    return theirs(argc, argv);
}
int MPI_Initialized(int* flag) {
    THEIRS("MPI_Initialized", int*);
    return theirs(flag);
}
int MPI_Finalize() {
    THEIRS("MPI_Finalize", void);
    return theirs();
}
int MPI_Abort(MPI_Comm comm, int code) {
    THEIRS("MPI_Abort", void*, int);
    return theirs(of(comm), code);
}
int MPI_Comm_rank(MPI_Comm comm, int* rank) {
    THEIRS("MPI_Comm_rank", void*, int*);
    return theirs(of(comm), rank);
}
int MPI_Comm_size(MPI_Comm comm, int* size) {
    THEIRS("MPI_Comm_size", void*, int*);
    return theirs(of(comm), size);
}
int MPI_Get_library_version(char* text, int* length) {
    THEIRS("MPI_Get_library_version", char*, int*);
    return theirs(text, length);
}
double MPI_Wtime() {
    static const auto theirs = reinterpret_cast<double (*)()>(find("MPI_Wtime"));
    return theirs();
}
int MPI_Barrier(MPI_Comm comm) {
    THEIRS("MPI_Barrier", void*);
    return theirs(of(comm));
}
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    THEIRS("MPI_Bcast", void*, int, void*, int, void*);
    return theirs(buffer, count, of(type), root, of(comm));
}
int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    THEIRS("MPI_Allreduce", const void*, void*, int, void*, void*, void*);
    return theirs(from, to, count, of(type), of(op), of(comm));
}
int MPI_Alltoall(const void* from, int count, MPI_Datatype type, void* to, int received,
                 MPI_Datatype as, MPI_Comm comm) {
    THEIRS("MPI_Alltoall", const void*, int, void*, void*, int, void*, void*);
    return theirs(from, count, of(type), to, received, of(as), of(comm));
}
int MPI_Allgather(const void* from, int count, MPI_Datatype type, void* to, int received,
                  MPI_Datatype as, MPI_Comm comm) {
    THEIRS("MPI_Allgather", const void*, int, void*, void*, int, void*, void*);
    return theirs(from, count, of(type), to, received, of(as), of(comm));
}
int MPI_Reduce_scatter_block(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
    THEIRS("MPI_Reduce_scatter_block", const void*, void*, int, void*, void*, void*);
    return theirs(from, to, count, of(type), of(op), of(comm));
}
int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    THEIRS("MPI_Send", const void*, int, void*, int, int, void*);
    return theirs(buffer, count, of(type), to, tag, of(comm));
}
int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
    THEIRS("MPI_Recv", void*, int, void*, int, int, void*, void*);
    check(status);
    return theirs(buffer, count, of(type), from, tag, of(comm), nullptr);
}
int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
    THEIRS("MPI_Isend", const void*, int, void*, int, int, void*, MPI_Request*);
    return theirs(buffer, count, of(type), to, tag, of(comm), request);
}
int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
    THEIRS("MPI_Irecv", void*, int, void*, int, int, void*, MPI_Request*);
    return theirs(buffer, count, of(type), from, tag, of(comm), request);
}
int MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                 void* in, int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                 MPI_Status* status) {
    THEIRS("MPI_Sendrecv", const void*, int, void*, int, int, void*, int, void*, int, int, void*,
           void*);
    check(status);
    return theirs(out, out_count, of(out_type), to, out_tag, in, in_count, of(in_type), from,
                  in_tag, of(comm), nullptr);
}
int MPI_Start(MPI_Request* request) {
    THEIRS("MPI_Start", MPI_Request*);
    return theirs(request);
}
int MPI_Request_free(MPI_Request* request) {
    THEIRS("MPI_Request_free", MPI_Request*);
    return theirs(request);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    THEIRS("MPI_Wait", MPI_Request*, void*);
    check(status);
    const Requests converted(1, request);
    return theirs(request, nullptr);
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
    THEIRS("MPI_Waitall", int, MPI_Request*, void*);
    check(statuses);
    const Requests converted(count, requests);
    return theirs(count, requests, nullptr);
}
int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
    THEIRS("MPI_Testall", int, MPI_Request*, int*, void*);
    check(statuses);
    const Requests converted(count, requests);
    return theirs(count, requests, flag, nullptr);
}
}
