// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends (MPI 5.0 section 3.6): their place in the order of messages, and the space that
// they take in the attached buffer.
#include "gpu.hpp"
#include "test.hpp"

#include <vector>

using namespace mpi_tests;

namespace {

// Attached for buffered sends while it lives.
struct Attached {
    explicit Attached(std::size_t bytes) : memory(bytes) {
        OK(MPI_Buffer_attach(memory.data(), static_cast<int>(bytes)));
    }
    ~Attached() {
        void* address = nullptr;
        int bytes = 0;
        OK(MPI_Buffer_detach(&address, &bytes));
    }
    std::vector<std::byte> memory;
};

// Rank 0 posts a buffered send of so many bytes of this kind, and then a message of one byte of the
// host; they must arrive in this order.
void in_order(Kind kind, int bytes, void (*post)(const void*, int, MPI_Request*)) {
    about(std::string(name(kind)) + ", " + std::to_string(bytes) + " bytes");
    Memory data(kind, static_cast<std::size_t>(bytes));
    if (rank() == 0) {
        data.fill(3);
        const char second = 2;
        MPI_Request requests[2];
        post(data.data(), bytes, &requests[0]);
        OK(MPI_Isend(&second, 1, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        if (requests[0] != MPI_REQUEST_NULL) OK(MPI_Request_free(&requests[0]));
    } else {
        MPI_Status status;
        int count = -1;
        for (int expected : {bytes, 1}) {
            OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK_EQ(count, expected);
            if (expected == bytes) CHECK_EQ(data.differs(3, static_cast<std::size_t>(bytes)), -1);
        }
    }
    about("");
}

void in_order_of_every_size(void (*post)(const void*, int, MPI_Request*)) {
    const Attached attached(64 << 20);
    for (Kind kind : {Kind::device, Kind::host})
        for (int bytes : {8, 4096, 1 << 20, 8 << 20})
            in_order(kind, bytes, post);
}

}  // namespace

MPI_CASE(ibsend_is_not_overtaken, 2) {
    in_order_of_every_size([](const void* data, int bytes, MPI_Request* request) {
        OK(MPI_Ibsend(data, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, request));
    });
}

MPI_CASE(started_buffered_send_is_not_overtaken, 2) {
    in_order_of_every_size([](const void* data, int bytes, MPI_Request* request) {
        OK(MPI_Bsend_init(data, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, request));
        OK(MPI_Start(request));
    });
}

MPI_CASE(buffered_send_started_with_others_is_not_overtaken, 2) {
    in_order_of_every_size([](const void* data, int bytes, MPI_Request* request) {
        static int elsewhere;
        MPI_Request both[2];
        OK(MPI_Recv_init(&elsewhere, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &both[0]));
        OK(MPI_Bsend_init(data, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &both[1]));
        OK(MPI_Startall(2, both));
        OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&both[0]));
        *request = both[1];
    });
}

MPI_CASE(space_of_received_messages_is_free, 1) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int bytes : {1, 1 << 16, 1 << 22}) {
        const Attached attached(static_cast<std::size_t>(bytes) + MPI_BSEND_OVERHEAD);
        std::vector<char> data(static_cast<std::size_t>(bytes), 'x'), got(data.size());
        for (int i = 0; i < 20; ++i) {
            const int code = MPI_Bsend(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            CHECK_EQ(code, MPI_SUCCESS);
            if (code != MPI_SUCCESS) return;  // there is nothing to receive
            OK(MPI_Recv(got.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
}

MPI_CASE(full_buffer_is_an_error_also_while_it_is_flushed, 1) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    constexpr int kBytes = 1 << 20;
    const Attached attached(kBytes + MPI_BSEND_OVERHEAD);
    std::vector<char> data(kBytes, 'x'), got(data.size());
    MPI_Request flush;
    OK(MPI_Buffer_iflush(&flush));
    OK(MPI_Wait(&flush, MPI_STATUS_IGNORE));  // nothing is in it
    OK(MPI_Bsend(data.data(), kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    OK(MPI_Buffer_iflush(&flush));
    const int code = MPI_Bsend(data.data(), kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    CHECK_EQ(error_class(code), MPI_ERR_BUFFER);
    int flag = 1;
    OK(MPI_Test(&flush, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Recv(got.data(), kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&flush, MPI_STATUS_IGNORE));
    CHECK(got == data);
}
