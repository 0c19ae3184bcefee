// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_CHECK=1: type signatures of messages and of one-sided operations. What does not match fails at
// the receiver with both named, its data there all the same; what matches is never an error, whatever
// the types that hold the items, and however little comes.
#include "checked.hpp"
#include "gpu.hpp"
#include "test.hpp"
#include "tool.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

using namespace mpi_tests;

namespace {

struct End {
    const void* data;
    int count;
    MPI_Datatype type;
    void* writable() const { return const_cast<void*>(data); }
};

// Both ranks send and receive; what the receive gave.
using Form = int (*)(const End& out, const End& in);

constexpr int kTag = 5;
const MPI_Comm kWorld = MPI_COMM_WORLD;

int other() {
    return 1 - rank();
}

int waited(MPI_Request& request) {
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

MPI_Request sending(const End& out, decltype(MPI_Isend)* how) {
    MPI_Request request = MPI_REQUEST_NULL;
    OK(how(out.data, out.count, out.type, other(), kTag, kWorld, &request));
    return request;
}

int by_recv(const End& out, const End& in) {
    MPI_Request request = sending(out, MPI_Isend);
    const int code =
        MPI_Recv(in.writable(), in.count, in.type, other(), kTag, kWorld, MPI_STATUS_IGNORE);
    OK(waited(request));
    return code;
}

int by_send(const End& out, const End& in) {
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Irecv(in.writable(), in.count, in.type, other(), kTag, kWorld, &request));
    OK(MPI_Send(out.data, out.count, out.type, other(), kTag, kWorld));
    return waited(request);
}

int by_ssend_and_waitall(const End& out, const End& in) {
    MPI_Request requests[2];
    OK(MPI_Irecv(in.writable(), in.count, in.type, MPI_ANY_SOURCE, MPI_ANY_TAG, kWorld, requests));
    requests[1] = sending(out, MPI_Issend);
    MPI_Status statuses[2];
    const int code = MPI_Waitall(2, requests, statuses);
    if (code == MPI_SUCCESS) return code;
    expect(code, MPI_ERR_IN_STATUS, {"1 of 2 operations failed", "message"}, "Waitall");
    CHECK_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    return statuses[0].MPI_ERROR;
}

int by_ready_send_and_test(const End& out, const End& in) {
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Irecv(in.writable(), in.count, in.type, other(), kTag, kWorld, &request));
    char token = 0;
    OK(MPI_Sendrecv_replace(&token, 1, MPI_CHAR, other(), 6, other(), 6, kWorld,
                            MPI_STATUS_IGNORE));
    MPI_Request sent = sending(out, MPI_Irsend);
    int flag = 0, code = MPI_SUCCESS;
    while (flag == 0)
        code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    OK(waited(sent));
    return code;
}

int by_bsend(const End& out, const End& in) {
    OK(MPI_Comm_attach_buffer(kWorld, MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Bsend(out.data, out.count, out.type, other(), kTag, kWorld));
    const int code =
        MPI_Recv(in.writable(), in.count, in.type, other(), kTag, kWorld, MPI_STATUS_IGNORE);
    void* buffer = nullptr;
    int bytes = 0;
    OK(MPI_Comm_detach_buffer(kWorld, &buffer, &bytes));
    return code;
}

int by_persistent(const End& out, const End& in) {
    MPI_Request requests[2];
    OK(MPI_Recv_init(in.writable(), in.count, in.type, other(), kTag, kWorld, requests));
    OK(MPI_Send_init(out.data, out.count, out.type, other(), kTag, kWorld, requests + 1));
    int code = MPI_SUCCESS;
    for (int round = 0; round < 2; ++round) {
        OK(MPI_Startall(2, requests));
        code = waited(requests[0]);
        OK(waited(requests[1]));
    }
    OK(MPI_Request_free(requests));
    OK(MPI_Request_free(requests + 1));
    return code;
}

int by_sendrecv(const End& out, const End& in) {
    return MPI_Sendrecv(out.data, out.count, out.type, other(), kTag, in.writable(), in.count,
                        in.type, other(), kTag, kWorld, MPI_STATUS_IGNORE);
}

int by_isendrecv(const End& out, const End& in) {
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Isendrecv(out.data, out.count, out.type, other(), kTag, in.writable(), in.count, in.type,
                     other(), kTag, kWorld, &request));
    return waited(request);
}

int by_mrecv(const End& out, const End& in) {
    MPI_Request request = sending(out, MPI_Isend);
    MPI_Message message;
    OK(MPI_Mprobe(other(), kTag, kWorld, &message, MPI_STATUS_IGNORE));
    const int code = MPI_Mrecv(in.writable(), in.count, in.type, &message, MPI_STATUS_IGNORE);
    OK(waited(request));
    return code;
}

int by_imrecv(const End& out, const End& in) {
    MPI_Request request = sending(out, MPI_Isend), received = MPI_REQUEST_NULL;
    MPI_Message message;
    OK(MPI_Mprobe(MPI_ANY_SOURCE, kTag, kWorld, &message, MPI_STATUS_IGNORE));
    OK(MPI_Imrecv(in.writable(), in.count, in.type, &message, &received));
    const int code = waited(received);
    OK(waited(request));
    return code;
}

int by_late_recv(const End& out, const End& in) {
    MPI_Request request = sending(out, MPI_Isend);
    OK(MPI_Probe(other(), kTag, kWorld, MPI_STATUS_IGNORE));
    const int code =
        MPI_Recv(in.writable(), in.count, in.type, other(), kTag, kWorld, MPI_STATUS_IGNORE);
    OK(waited(request));
    return code;
}

int to_oneself(const End& out, const End& in) {
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Isend(out.data, out.count, out.type, 0, kTag, MPI_COMM_SELF, &request));
    const int code =
        MPI_Recv(in.writable(), in.count, in.type, 0, kTag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    OK(waited(request));
    return code;
}

int by_partitions(const End& out, const End& in) {
    MPI_Request requests[2];
    OK(MPI_Precv_init(in.writable(), 1, in.count, in.type, other(), kTag, kWorld, MPI_INFO_NULL,
                      requests));
    OK(MPI_Psend_init(out.data, 1, out.count, out.type, other(), kTag, kWorld, MPI_INFO_NULL,
                      requests + 1));
    int code = MPI_SUCCESS;
    for (int round = 0; round < 2; ++round) {
        OK(MPI_Startall(2, requests));
        OK(MPI_Pready(0, requests[1]));
        code = waited(requests[0]);
        OK(waited(requests[1]));
    }
    OK(MPI_Request_free(requests));
    OK(MPI_Request_free(requests + 1));
    return code;
}

// A status has a class alone; its sentence is the call's.
enum class Says { sentence, class_alone };

struct Named {
    const char* name;
    Form form;
    Says says = Says::sentence;
};
const Named kForms[] = {{"Isend, Recv", by_recv},
                        {"Send, Irecv", by_send},
                        {"Issend, Waitall", by_ssend_and_waitall, Says::class_alone},
                        {"Irsend, Test", by_ready_send_and_test},
                        {"Bsend", by_bsend},
                        {"persistent", by_persistent},
                        {"Sendrecv", by_sendrecv},
                        {"Isendrecv", by_isendrecv},
                        {"Mrecv", by_mrecv},
                        {"Imrecv", by_imrecv},
                        {"a late Recv", by_late_recv},
                        {"to oneself", to_oneself},
                        {"partitioned", by_partitions}};

// Across the changes of protocol: with the envelope, through slots, in one copy.
constexpr int kCounts[] = {3, 4096, 4353, 8193, 20'000, 300'000};

std::vector<int> numbers(int count) {
    std::vector<int> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = rank() * 1'000'000 + static_cast<int>(i);
    return values;
}

// The peer's numbers are in front, and nothing behind them.
void expect_numbers(const std::vector<int>& got, int count, int of_rank) {
    for (std::size_t i = 0; i < got.size(); ++i) {
        const int wanted =
            i < static_cast<std::size_t>(count) ? of_rank * 1'000'000 + static_cast<int>(i) : -1;
        if (got[i] != wanted)
            return fail(__FILE__, __LINE__,
                        "number " + std::to_string(i) + " is " + std::to_string(got[i]));
    }
}

// A type of so many ints in every second place, as one element.
class Spread {
  public:
    explicit Spread(int count) {
        OK(MPI_Type_vector(count, 1, 2, MPI_INT, &type_));
        OK(MPI_Type_commit(&type_));
    }
    ~Spread() { OK(MPI_Type_free(&type_)); }
    Spread(const Spread&) = delete;
    Spread& operator=(const Spread&) = delete;
    MPI_Datatype type() const { return type_; }

  private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// One rank after the other, while the other one waits and sends nothing.
void expect_nothing_left() {
    char turn = 0;
    if (rank() == 1) OK(MPI_Recv(&turn, 1, MPI_CHAR, 0, 7, kWorld, MPI_STATUS_IGNORE));
    {
        const Tool tool;
        CHECK_EQ(Counted(tool, "requests").read(), 0);
        CHECK_EQ(Counted(tool, "unexpected_messages").read(), 0);
        CHECK_EQ(Counted(tool, "posted_receives").read(), 0);
    }
    OK(MPI_Send(&turn, 1, MPI_CHAR, other(), 7, kWorld));
    if (rank() == 0) OK(MPI_Recv(&turn, 1, MPI_CHAR, 1, 7, kWorld, MPI_STATUS_IGNORE));
    expect_alive(kWorld);
}

}  // namespace

MPI_CASE_OWN_INIT(checked_messages_of_other_types_are_told, 2) {
    start_checked();
    for (const Named& form : kForms) {
        for (const int count : kCounts) {
            const std::string what = form.name + (" of " + std::to_string(count));
            const int from = form.form == to_oneself ? rank() : other();
            const std::vector<int> mine = numbers(count);
            std::vector<int> got(static_cast<std::size_t>(count) + 1, -1);
            const std::string sent = std::to_string(count) + " of MPI_INT",
                              received = std::to_string(count + 1) + " of MPI_FLOAT";
            const int code =
                form.form({mine.data(), count, MPI_INT}, {got.data(), count + 1, MPI_FLOAT});
            about(what);
            CHECK_EQ(error_class(code), MPI_ERR_TYPE);
            if (form.says == Says::sentence)
                expect(code, MPI_ERR_TYPE, {sent.c_str(), received.c_str()}, what.c_str());
            about(what);
            expect_numbers(got, count, from);
            // The next message is one like any other.
            std::fill(got.begin(), got.end(), -1);
            OK(form.form({mine.data(), count, MPI_INT}, {got.data(), count + 1, MPI_INT}));
            expect_numbers(got, count, from);
        }
    }
    about("");
    expect_nothing_left();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_sentences_name_both_types, 2) {
    start_checked();
    const int ints[4] = {1, 2, 3, 4};
    float floats[4] = {};
    expect(by_recv({ints, 3, MPI_INT}, {floats, 4, MPI_FLOAT}), MPI_ERR_TYPE,
           {"the message from rank ", " is 3 of MPI_INT; the receive is 4 of MPI_FLOAT"}, "words");
    MPI_Datatype pair;
    const int lengths[] = {1, 2};
    const MPI_Aint places[] = {0, 8};
    const MPI_Datatype types[] = {MPI_INT, MPI_FLOAT};
    OK(MPI_Type_create_struct(2, lengths, places, types, &pair));
    OK(MPI_Type_commit(&pair));
    int room[16] = {};
    expect(by_recv({ints, 3, MPI_INT}, {room, 2, pair}), MPI_ERR_TYPE,
           {"3 of MPI_INT", "6 basic items that begin with 1 of MPI_INT and 2 of MPI_FLOAT"},
           "a structure");
    OK(MPI_Type_free(&pair));
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_messages_that_match_are_no_errors, 2) {
    start_checked();
    for (const Named& form : kForms) {
        for (const int count : kCounts) {
            const Spread spread(count);
            const std::size_t room = 2 * static_cast<std::size_t>(count);
            const std::vector<int> mine = numbers(2 * count);
            std::vector<int> got(room, -1);
            about(form.name + (" of " + std::to_string(count)));
            const End as[] = {
                {mine.data(), count, MPI_INT},      {mine.data(), count, MPI_INT32_T},
                {mine.data(), 1, spread.type()},    {mine.data(), count / 2, MPI_2INT},
                {mine.data(), 4 * count, MPI_BYTE}, {mine.data(), 4 * count, MPI_PACKED},
                {mine.data(), 1, MPI_INT},          {mine.data(), 0, MPI_DOUBLE}};
            for (const End& out : as) {
                OK(form.form(out, {got.data(), count, MPI_INT}));
                OK(form.form(out, {got.data(), 1, spread.type()}));
                OK(form.form(out, {got.data(), 4 * count, MPI_BYTE}));
                OK(form.form(out, {got.data(), 4 * count, MPI_PACKED}));
            }
        }
    }
    about("");
    expect_nothing_left();
    OK(MPI_Finalize());
}

// The receive of less room than comes is that mistake, whatever the types.
MPI_CASE_OWN_INIT(checked_messages_that_are_too_long_are_that, 2) {
    start_checked();
    for (const Named& form : kForms) {
        for (const int count : kCounts) {
            if (form.form == by_partitions) continue;  // the two sides do not come together
            const std::vector<int> mine = numbers(count);
            std::vector<int> got(static_cast<std::size_t>(count), -1);
            expect(form.form({mine.data(), count, MPI_INT}, {got.data(), count - 1, MPI_FLOAT}),
                   MPI_ERR_TRUNCATE, {}, form.name);
        }
    }
    expect_nothing_left();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_replaced_messages_are_compared, 2) {
    start_checked();
    for (const int count : kCounts) {
        for (const bool alike : {false, true}) {
            for (const bool in_background : {false, true}) {
                const MPI_Datatype type = alike || rank() == 0 ? MPI_INT : MPI_FLOAT;
                std::vector<int> values = numbers(count);
                MPI_Request request = MPI_REQUEST_NULL;
                int code = MPI_SUCCESS;
                if (in_background) {
                    OK(MPI_Isendrecv_replace(values.data(), count, type, other(), kTag, other(),
                                             kTag, MPI_COMM_WORLD, &request));
                    code = waited(request);
                } else {
                    code = MPI_Sendrecv_replace(values.data(), count, type, other(), kTag, other(),
                                                kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                }
                about(std::to_string(count));
                CHECK_EQ(error_class(code), alike ? MPI_SUCCESS : MPI_ERR_TYPE);
                if (alike) expect_numbers(values, count, other());
            }
        }
    }
    about("");
    expect_nothing_left();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_messages_of_every_memory_are_compared, 2) {
    start_checked();
    for (const Kind from : every_kind()) {
        for (const Kind into : every_kind()) {
            for (const int count : {3, 4353, 300'000}) {
                const auto bytes = static_cast<std::size_t>(count) * sizeof(int);
                Memory out(from, bytes, 0), in(into, bytes, 0);
                for (const Named& form : {kForms[0], kForms[1], kForms[10]}) {
                    about(std::string(name(from)) + " to " + name(into) + ", " + form.name +
                          " of " + std::to_string(count));
                    out.fill(static_cast<unsigned>(rank()));
                    CHECK_EQ(error_class(form.form({out.data(), count, MPI_INT},
                                                   {in.data(), count, MPI_FLOAT})),
                             MPI_ERR_TYPE);
                    CHECK_EQ(in.differs(static_cast<unsigned>(other()), bytes), -1);
                    OK(form.form({out.data(), count, MPI_INT}, {in.data(), count, MPI_INT}));
                }
            }
        }
    }
    about("");
    expect_nothing_left();
    OK(MPI_Finalize());
}

// All do what rank 0 does: else collectives of those that check would wait for the others.
MPI_CASE_OWN_INIT(checks_are_on_where_rank_0_has_them, 2) {
    const char* const number = getenv("PMI_RANK");
    if (number == nullptr) skip("no PMI_RANK says which rank this is");
    setenv("GANTRY_CHECK", std::strcmp(number, "0") == 0 ? "1" : "0", 1);
    start_mpi();
    return_errors(MPI_COMM_WORLD);
    const int ints[3] = {};
    float floats[3] = {};
    CHECK_EQ(error_class(by_recv({ints, 3, MPI_INT}, {floats, 3, MPI_FLOAT})), MPI_ERR_TYPE);
    CHECK_EQ(error_class(MPI_Bcast(floats, 1 + rank(), MPI_FLOAT, 0, MPI_COMM_WORLD)),
             MPI_ERR_COUNT);
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_one_sided_operations_have_the_types_of_their_targets, 2) {
    start_checked();
    MPI_Win win;
    int* memory = nullptr;
    OK(MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_fence(0, win));
    const int ints[4] = {5, 6, 7, 8};
    int results[4] = {};
    const int to = other();
    expect(MPI_Put(ints, 3, MPI_INT, to, 0, 3, MPI_FLOAT, win), MPI_ERR_TYPE,
           {"the data is 3 of MPI_INT; it is to go into 3 of MPI_FLOAT"}, "put");
    expect(MPI_Get(results, 3, MPI_INT, to, 0, 2, MPI_FLOAT, win), MPI_ERR_TYPE,
           {"the data is 2 of MPI_FLOAT; it is to go into 3 of MPI_INT"}, "get");
    expect(MPI_Accumulate(ints, 3, MPI_INT, to, 0, 3, MPI_FLOAT, MPI_SUM, win), MPI_ERR_TYPE,
           {"3 of MPI_INT", "3 of MPI_FLOAT"}, "accumulate");
    expect(MPI_Get_accumulate(ints, 3, MPI_INT, results, 3, MPI_FLOAT, to, 0, 3, MPI_INT, MPI_SUM,
                              win),
           MPI_ERR_TYPE, {"3 of MPI_INT", "3 of MPI_FLOAT"}, "the result");
    // Elements that begin inside the one before them.
    MPI_Datatype pair, overlapping;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_create_resized(pair, 0, sizeof(int), &overlapping));
    OK(MPI_Type_commit(&overlapping));
    expect(MPI_Put(ints, 4, MPI_INT, to, 0, 2, overlapping, win), MPI_ERR_TYPE, {"twice"},
           "a target that overlaps itself");
    OK(MPI_Type_free(&overlapping));
    OK(MPI_Type_free(&pair));
    OK(MPI_Win_fence(0, win));
    // What matches, also where less goes than there is room for.
    MPI_Datatype row;
    OK(MPI_Type_contiguous(2, MPI_INT, &row));
    OK(MPI_Type_commit(&row));
    OK(MPI_Put(ints, 2, row, to, 0, 4, MPI_INT32_T, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(memory[3], 8);
    OK(MPI_Put(ints, 4, MPI_BYTE, to, 0, 1, MPI_INT, win));
    OK(MPI_Accumulate(ints, 1, row, to, 4, 4, MPI_INT, MPI_REPLACE, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(results, 2, row, to, 0, 4, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(results[3], 8);
    OK(MPI_Get_accumulate(ints, 1, MPI_INT, results, 1, row, to, 0, 2, MPI_INT, MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(ints, 1, MPI_INT, results, 1, MPI_INT, to, 0, 2, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Type_free(&row));
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
}
