// SPDX-License-Identifier: BSD-3-Clause
//
// A libmpi_abi.so.1 for gantry-bench over Open MPI: the functions that the program calls, with the
// standard ABI's handles, handed on to libmpi.so.40. So one program is measured with every library,
// and no compiler is needed where the measuring is done.
//
// Open MPI's predefined handles are the addresses of its objects (ompi_mpi_comm_world, ...), and
// its requests, windows and groups are pointers, which pass through; only the null request differs. Statuses are
// ignored here as in the program. Anything else is refused with a sentence and an abort.
#include <mpi.h>

#include <dlfcn.h>

#include <cstdint>
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
    if (comm == MPI_COMM_SELF || comm == MPI_COMM_NULL) unknown("communicator");
    return comm == MPI_COMM_WORLD ? world : static_cast<void*>(comm);
}

void* of(MPI_Errhandler handler) {
    if (handler != MPI_ERRORS_ARE_FATAL) unknown("error handler");
    return find("ompi_mpi_errors_are_fatal");
}

void* of(MPI_Datatype type) {
    static void* const byte = find("ompi_mpi_byte");
    if (type == MPI_BYTE) return byte;
    if (type == MPI_CHAR) return find("ompi_mpi_char");
    if (type == MPI_INT) return find("ompi_mpi_int");
    if (type == MPI_LONG) return find("ompi_mpi_long");
    if (type == MPI_DOUBLE) return find("ompi_mpi_double");
    if (type == MPI_UINT64_T) return find("ompi_mpi_uint64_t");
    if (type == MPI_INT64_T) return find("ompi_mpi_int64_t");
    if (type == MPI_FLOAT) return find("ompi_mpi_float");
    // What the program has made is Open MPI's own handle, an address; the standard's constants are below the first page.
    constexpr std::uintptr_t kFirstAddress = 4096;
    if (reinterpret_cast<std::uintptr_t>(type) >= kFirstAddress) return static_cast<void*>(type);
    unknown("datatype");
}

void* of(MPI_Op op) {
    static void* const sum = find("ompi_mpi_op_sum");
    if (op == MPI_SUM) return sum;
    if (op == MPI_MAX) return find("ompi_mpi_op_max");
    unknown("reduction");
}

void* of(MPI_Info info) {
    if (info != MPI_INFO_NULL) unknown("info");
    return find("ompi_mpi_info_null");
}

int lock_type(int type) {
    constexpr int kExclusive = 1, kShared = 2;
    if (type == MPI_LOCK_SHARED) return kShared;
    if (type == MPI_LOCK_EXCLUSIVE) return kExclusive;
    unknown("kind of lock");
}

void check_assert(int assertion) {
    if (assertion != 0) unknown("assertion");
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
int MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request* request) {
    THEIRS("MPI_Send_init", const void*, int, void*, int, int, void*, MPI_Request*);
    return theirs(buffer, count, of(type), to, tag, of(comm), request);
}
int MPI_Recv_init(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request* request) {
    THEIRS("MPI_Recv_init", void*, int, void*, int, int, void*, MPI_Request*);
    return theirs(buffer, count, of(type), from, tag, of(comm), request);
}
int MPI_Psend_init(const void* buffer, int partitions, int count, MPI_Datatype type, int to,
                   int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    THEIRS("MPI_Psend_init", const void*, int, MPI_Count, void*, int, int, void*, void*,
           MPI_Request*);
    return theirs(buffer, partitions, MPI_Count{count}, of(type), to, tag, of(comm), of(info),
                  request);
}
int MPI_Precv_init(void* buffer, int partitions, int count, MPI_Datatype type, int from, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    THEIRS("MPI_Precv_init", void*, int, MPI_Count, void*, int, int, void*, void*, MPI_Request*);
    return theirs(buffer, partitions, MPI_Count{count}, of(type), from, tag, of(comm), of(info),
                  request);
}
int MPI_Pready_range(int first, int last, MPI_Request request) {
    THEIRS("MPI_Pready_range", int, int, MPI_Request);
    return theirs(first, last, request);
}
int MPI_Start(MPI_Request* request) {
    THEIRS("MPI_Start", MPI_Request*);
    return theirs(request);
}
int MPI_Startall(int count, MPI_Request* requests) {
    THEIRS("MPI_Startall", int, MPI_Request*);
    return theirs(count, requests);
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
int MPI_Dims_create(int ranks, int dimensions, int* sizes) {
    THEIRS("MPI_Dims_create", int, int, int*);
    return theirs(ranks, dimensions, sizes);
}
int MPI_Cart_create(MPI_Comm comm, int dimensions, const int* sizes, const int* periodic,
                    int reorder, MPI_Comm* made) {
    THEIRS("MPI_Cart_create", void*, int, const int*, const int*, int, MPI_Comm*);
    return theirs(of(comm), dimensions, sizes, periodic, reorder, made);
}
int MPI_Cart_shift(MPI_Comm comm, int dimension, int by, int* source, int* destination) {
    THEIRS("MPI_Cart_shift", void*, int, int, int*, int*);
    return theirs(of(comm), dimension, by, source, destination);
}
int MPI_Type_vector(int count, int block, int stride, MPI_Datatype of_type, MPI_Datatype* made) {
    THEIRS("MPI_Type_vector", int, int, int, void*, MPI_Datatype*);
    return theirs(count, block, stride, of(of_type), made);
}
int MPI_Type_commit(MPI_Datatype* type) {
    THEIRS("MPI_Type_commit", MPI_Datatype*);
    return theirs(type);
}
int MPI_Type_free(MPI_Datatype* type) {
    THEIRS("MPI_Type_free", MPI_Datatype*);
    return theirs(type);
}
int MPI_Comm_free(MPI_Comm* comm) {
    THEIRS("MPI_Comm_free", MPI_Comm*);
    return theirs(comm);
}
int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
    THEIRS("MPI_Session_init", void*, void*, MPI_Session*);
    return theirs(of(info), of(handler), session);
}
int MPI_Session_finalize(MPI_Session* session) {
    THEIRS("MPI_Session_finalize", MPI_Session*);
    return theirs(session);
}
int MPI_Group_from_session_pset(MPI_Session session, const char* set, MPI_Group* group) {
    THEIRS("MPI_Group_from_session_pset", MPI_Session, const char*, MPI_Group*);
    return theirs(session, set, group);
}
int MPI_Comm_create_from_group(MPI_Group group, const char* tag, MPI_Info info,
                               MPI_Errhandler handler, MPI_Comm* comm) {
    THEIRS("MPI_Comm_create_from_group", MPI_Group, const char*, void*, void*, MPI_Comm*);
    return theirs(group, tag, of(info), of(handler), comm);
}
int MPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
    THEIRS("MPI_Comm_group", void*, MPI_Group*);
    return theirs(of(comm), group);
}
int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group* made) {
    THEIRS("MPI_Group_incl", MPI_Group, int, const int*, MPI_Group*);
    return theirs(group, count, ranks, made);
}
int MPI_Group_free(MPI_Group* group) {
    THEIRS("MPI_Group_free", MPI_Group*);
    return theirs(group);
}
int MPI_Get_address(const void* location, MPI_Aint* address) {
    THEIRS("MPI_Get_address", const void*, MPI_Aint*);
    return theirs(location, address);
}
int MPI_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base,
                     MPI_Win* win) {
    THEIRS("MPI_Win_allocate", MPI_Aint, int, void*, void*, void*, MPI_Win*);
    return theirs(bytes, unit, of(info), of(comm), base, win);
}
int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base,
                            MPI_Win* win) {
    THEIRS("MPI_Win_allocate_shared", MPI_Aint, int, void*, void*, void*, MPI_Win*);
    return theirs(bytes, unit, of(info), of(comm), base, win);
}
int MPI_Win_create(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win* win) {
    THEIRS("MPI_Win_create", void*, MPI_Aint, int, void*, void*, MPI_Win*);
    return theirs(base, bytes, unit, of(info), of(comm), win);
}
int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    THEIRS("MPI_Win_create_dynamic", void*, void*, MPI_Win*);
    return theirs(of(info), of(comm), win);
}
int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint bytes) {
    THEIRS("MPI_Win_attach", MPI_Win, void*, MPI_Aint);
    return theirs(win, base, bytes);
}
int MPI_Win_detach(MPI_Win win, const void* base) {
    THEIRS("MPI_Win_detach", MPI_Win, const void*);
    return theirs(win, base);
}
int MPI_Win_free(MPI_Win* win) {
    THEIRS("MPI_Win_free", MPI_Win*);
    return theirs(win);
}
int MPI_Win_fence(int assertion, MPI_Win win) {
    THEIRS("MPI_Win_fence", int, MPI_Win);
    check_assert(assertion);
    return theirs(assertion, win);
}
int MPI_Win_post(MPI_Group group, int assertion, MPI_Win win) {
    THEIRS("MPI_Win_post", MPI_Group, int, MPI_Win);
    check_assert(assertion);
    return theirs(group, assertion, win);
}
int MPI_Win_start(MPI_Group group, int assertion, MPI_Win win) {
    THEIRS("MPI_Win_start", MPI_Group, int, MPI_Win);
    check_assert(assertion);
    return theirs(group, assertion, win);
}
int MPI_Win_complete(MPI_Win win) {
    THEIRS("MPI_Win_complete", MPI_Win);
    return theirs(win);
}
int MPI_Win_wait(MPI_Win win) {
    THEIRS("MPI_Win_wait", MPI_Win);
    return theirs(win);
}
int MPI_Win_lock(int type, int rank, int assertion, MPI_Win win) {
    THEIRS("MPI_Win_lock", int, int, int, MPI_Win);
    check_assert(assertion);
    return theirs(lock_type(type), rank, assertion, win);
}
int MPI_Win_unlock(int rank, MPI_Win win) {
    THEIRS("MPI_Win_unlock", int, MPI_Win);
    return theirs(rank, win);
}
int MPI_Win_lock_all(int assertion, MPI_Win win) {
    THEIRS("MPI_Win_lock_all", int, MPI_Win);
    check_assert(assertion);
    return theirs(assertion, win);
}
int MPI_Win_unlock_all(MPI_Win win) {
    THEIRS("MPI_Win_unlock_all", MPI_Win);
    return theirs(win);
}
int MPI_Win_flush(int rank, MPI_Win win) {
    THEIRS("MPI_Win_flush", int, MPI_Win);
    return theirs(rank, win);
}
int MPI_Win_sync(MPI_Win win) {
    THEIRS("MPI_Win_sync", MPI_Win);
    return theirs(win);
}
int MPI_Put(const void* from, int count, MPI_Datatype type, int rank, MPI_Aint at, int there,
            MPI_Datatype as, MPI_Win win) {
    THEIRS("MPI_Put", const void*, int, void*, int, MPI_Aint, int, void*, MPI_Win);
    return theirs(from, count, of(type), rank, at, there, of(as), win);
}
int MPI_Get(void* to, int count, MPI_Datatype type, int rank, MPI_Aint at, int there,
            MPI_Datatype as, MPI_Win win) {
    THEIRS("MPI_Get", void*, int, void*, int, MPI_Aint, int, void*, MPI_Win);
    return theirs(to, count, of(type), rank, at, there, of(as), win);
}
int MPI_Accumulate(const void* from, int count, MPI_Datatype type, int rank, MPI_Aint at, int there,
                   MPI_Datatype as, MPI_Op op, MPI_Win win) {
    THEIRS("MPI_Accumulate", const void*, int, void*, int, MPI_Aint, int, void*, void*, MPI_Win);
    return theirs(from, count, of(type), rank, at, there, of(as), of(op), win);
}
int MPI_Fetch_and_op(const void* from, void* result, MPI_Datatype type, int rank, MPI_Aint at,
                     MPI_Op op, MPI_Win win) {
    THEIRS("MPI_Fetch_and_op", const void*, void*, void*, int, MPI_Aint, void*, MPI_Win);
    return theirs(from, result, of(type), rank, at, of(op), win);
}
int MPI_Compare_and_swap(const void* from, const void* compare, void* result, MPI_Datatype type,
                         int rank, MPI_Aint at, MPI_Win win) {
    THEIRS("MPI_Compare_and_swap", const void*, const void*, void*, void*, int, MPI_Aint, MPI_Win);
    return theirs(from, compare, result, of(type), rank, at, win);
}
}
