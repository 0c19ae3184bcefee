// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided calls that must fail: the class, a sentence that says what to do, the window's own error
// handler, and everything still works afterwards.
#include "refused.hpp"
#include "rma.hpp"

using namespace mpi_tests;

namespace {

void return_errors(const Window& window) {
    OK(MPI_Win_set_errhandler(window.win(), MPI_ERRORS_RETURN));
}

int handled = 0;
void count_errors(MPI_Win*, int* code, ...) {
    CHECK_EQ(error_class(*code), MPI_ERR_RMA_RANGE);
    ++handled;
}

}  // namespace

MPI_CASE(rma_refuses_operations_outside_epochs, 2) {
    for (Window::Made how : every_made()) {
        Window window(how, 64);
        return_errors(window);
        const int one = 1;
        const MPI_Aint there = window.at(0, 0);
        const auto put = [&] {
            return MPI_Put(&one, 1, MPI_INT, 0, there, 1, MPI_INT, window.win());
        };
        expect(put(), MPI_ERR_RMA_SYNC, {"MPI_Win_fence", "MPI_Win_lock"}, "no epoch");
        expect(MPI_Win_unlock(0, window.win()), MPI_ERR_RMA_SYNC, {"not locked"}, "unlock");
        expect(MPI_Win_unlock_all(window.win()), MPI_ERR_RMA_SYNC, {"MPI_Win_lock_all"},
               "unlock all");
        expect(MPI_Win_flush(0, window.win()), MPI_ERR_RMA_SYNC, {"MPI_Win_flush"}, "flush");
        expect(MPI_Win_flush_local_all(window.win()), MPI_ERR_RMA_SYNC, {"passive"}, "flush all");
        expect(MPI_Win_complete(window.win()), MPI_ERR_RMA_SYNC, {"MPI_Win_start"}, "complete");
        expect(MPI_Win_wait(window.win()), MPI_ERR_RMA_SYNC, {"MPI_Win_post"}, "wait");
        int flag = 0;
        expect(MPI_Win_test(window.win(), &flag), MPI_ERR_RMA_SYNC, {"MPI_Win_post"}, "test");
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win()));
        expect(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win()), MPI_ERR_RMA_SYNC, {"already"},
               "lock twice");
        expect(MPI_Win_fence(0, window.win()), MPI_ERR_RMA_SYNC, {"unlock it first"},
               "fence while locked");
        expect(MPI_Win_lock_all(0, window.win()), MPI_ERR_RMA_SYNC, {"already"}, "lock all");
        MPI_Win copy = window.win();
        expect(MPI_Win_free(&copy), MPI_ERR_RMA_SYNC, {"unlock"}, "free while locked");
        OK(MPI_Win_unlock(0, window.win()));
        OK(MPI_Win_fence(0, window.win()));
        if (rank() == 0) OK(put());
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win()));
        expect(put(), MPI_ERR_RMA_SYNC, {"access epoch"}, "behind the last fence");
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

MPI_CASE(rma_refuses_what_lies_outside_of_a_window, 2) {
    for (Window::Made how : every_made()) {
        Window window(how, 64);
        return_errors(window);
        int numbers[32] = {};
        const auto put = [&](int target, MPI_Aint where, int count) {
            return MPI_Put(numbers, count, MPI_INT, target, where, count, MPI_INT, window.win());
        };
        OK(MPI_Win_lock_all(0, window.win()));
        const int other = 1 - rank();
        if (how == Window::Made::dynamic) {
            // My own I judge; another's memory judges its owner, who says so at the next flush.
            expect(put(rank(), window.at(rank(), 60), 4), MPI_ERR_RMA_RANGE, {"not attached"},
                   "mine");
            OK(put(other, window.at(other, 1 << 20), 4));
            expect(MPI_Win_flush(other, window.win()), MPI_ERR_RMA_RANGE, {"rank"}, "another's");
        } else {
            expect(put(other, 0, 17), MPI_ERR_RMA_RANGE, {"64 bytes", "0 to 68"}, "too long");
            expect(put(other, 61, 1), MPI_ERR_RMA_RANGE, {"displacement 61"}, "at the end");
            OK(put(other, 60, 1));
        }
        OK(MPI_Win_unlock_all(window.win()));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

MPI_CASE(rma_failures_go_to_the_handler_of_the_window, 1) {
    Window window(Window::Made::allocate, 8);
    MPI_Errhandler counting, got;
    OK(MPI_Win_create_errhandler(count_errors, &counting));
    OK(MPI_Win_get_errhandler(window.win(), &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_set_errhandler(window.win(), counting));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win()));
    const double number = 1;
    MPI_Put(&number, 1, MPI_DOUBLE, 0, 8, 1, MPI_DOUBLE, window.win());
    CHECK_EQ(handled, 1);
    OK(MPI_Win_call_errhandler(window.win(), MPI_ERR_RMA_RANGE));
    CHECK_EQ(handled, 2);
    OK(MPI_Win_unlock(0, window.win()));
    OK(MPI_Win_get_errhandler(window.win(), &got));
    CHECK(got == counting);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&counting));
}

// Where operations are loads and stores inside their call, and where they are not.
MPI_CASE(rma_refuses_arguments_of_operations, 2) {
    for (Window::Made how : every_made()) {
        if (how == Window::Made::dynamic) continue;  // its displacements are addresses
        Window window(how, 64);
        return_errors(window);
        const MPI_Win win = window.win();
        int number = 3, result = 0;
        window.set(0, 11);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock_all(0, win));
        const auto put = [&](const void* origin, int count, MPI_Datatype here, int target,
                             MPI_Aint where, MPI_Datatype there) {
            return MPI_Put(origin, count, here, target, where, 1, there, win);
        };
        expect(put(&number, 1, MPI_INT, 2, 0, MPI_INT), MPI_ERR_RANK, {"target_rank"}, "rank");
        expect(put(&number, 1, MPI_INT, -5, 0, MPI_INT), MPI_ERR_RANK, {"target_rank"}, "rank");
        expect(put(&number, -1, MPI_INT, 0, 0, MPI_INT), MPI_ERR_COUNT, {"origin_count"}, "count");
        expect(put(&number, 1, MPI_INT, 0, -4, MPI_INT), MPI_ERR_DISP, {"target_disp"},
               "displacement");
        expect(put(&number, 1, MPI_DATATYPE_NULL, 0, 0, MPI_INT), MPI_ERR_TYPE, {"origin_datatype"},
               "datatype");
        expect(put(&number, 1, MPI_INT, 0, 0, MPI_SHORT), MPI_ERR_TRUNCATE, {"2"}, "sizes");
        expect(put(nullptr, 1, MPI_INT, 0, 0, MPI_INT), MPI_ERR_BUFFER, {"origin_addr"}, "null");
        expect(put(MPI_IN_PLACE, 1, MPI_INT, 0, 0, MPI_INT), MPI_ERR_BUFFER, {"MPI_IN_PLACE"},
               "in place");
        const MPI_Count enormous = MPI_Count{1} << 62;
        expect(MPI_Put_c(&number, enormous, MPI_INT, 0, 0, enormous, MPI_INT, win),
               MPI_ERR_RMA_RANGE, {}, "a count whose bytes nobody can count");
        expect(MPI_Put_c(&number, enormous, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT,
               {"larger than memory"}, "the same of the origin");
        MPI_Datatype raw;
        OK(MPI_Type_contiguous(1, MPI_INT, &raw));
        expect(put(&number, 1, raw, 0, 0, MPI_INT), MPI_ERR_TYPE, {"committed"}, "uncommitted");
        OK(MPI_Type_free(&raw));
        const auto fetch = [&](void* into, MPI_Datatype type, MPI_Op op) {
            return MPI_Fetch_and_op(&number, into, type, 0, 0, op, win);
        };
        expect(fetch(nullptr, MPI_INT, MPI_SUM), MPI_ERR_BUFFER, {"result_addr"}, "no result");
        expect(fetch(&result, MPI_FLOAT, MPI_BAND), MPI_ERR_OP, {"MPI_BAND", "MPI_FLOAT"},
               "fetch: op and type");
        expect(fetch(&result, MPI_INT, MPI_OP_NULL), MPI_ERR_OP, {"op"}, "fetch: no op");
        expect(MPI_Accumulate(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP,
               {"op"}, "no op");
        expect(MPI_Accumulate(&number, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BAND, win), MPI_ERR_OP,
               {"MPI_BAND", "MPI_FLOAT"}, "op and type");
        expect(MPI_Accumulate(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win), MPI_ERR_OP,
               {"MPI_NO_OP", "fetch"}, "an accumulate that changes nothing");
        MPI_Op own;
        OK(MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own));
        expect(MPI_Accumulate(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, own, win), MPI_ERR_OP,
               {"MPI_Op_create"}, "an op of the program");
        expect(fetch(&result, MPI_INT, own), MPI_ERR_OP, {"MPI_Op_create"}, "fetch: such an op");
        OK(MPI_Op_free(&own));
        expect(MPI_Compare_and_swap(&number, &number, &result, MPI_FLOAT, 0, 0, win), MPI_ERR_TYPE,
               {"integers"}, "swap of floats");
        expect(MPI_Compare_and_swap(&number, nullptr, &result, MPI_INT, 0, 0, win), MPI_ERR_BUFFER,
               {"compare_addr"}, "nothing to compare with");
        expect(MPI_Win_flush(2, win), MPI_ERR_RANK, {"rank"}, "flush");
        OK(MPI_Win_flush(MPI_PROC_NULL, win));
        // Of no items the kind is nobody's business.
        OK(MPI_Get_accumulate(&number, 0, MPI_BYTE, &result, 0, MPI_BYTE, 0, 0, 0, MPI_BYTE,
                              MPI_SUM, win));
        OK(MPI_Accumulate(&number, 0, MPI_BYTE, 0, 0, 0, MPI_BYTE, MPI_SUM, win));
        // None of these calls did anything.
        OK(fetch(&result, MPI_INT, MPI_NO_OP));
        OK(MPI_Win_flush(0, win));
        CHECK_EQ(result, 11);
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

MPI_CASE(rma_refuses_arguments, 2) {
    return_errors(MPI_COMM_WORLD);
    Window window(Window::Made::create, 64);
    return_errors(window);
    int number = 0;
    const MPI_Win win = window.win();
    expect(MPI_Win_lock(77, 0, 0, win), MPI_ERR_LOCKTYPE, {"lock_type"}, "lock type");
    expect(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT, {"assert"},
           "assert");
    expect(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT, {"MPI_Win_fence"}, "assert");
    expect(MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win), MPI_ERR_RANK, {"rank"}, "lock rank");
    expect(MPI_Win_attach(win, &number, 4), MPI_ERR_RMA_FLAVOR, {"MPI_Win_create_dynamic"},
           "attach");
    MPI_Win other;
    expect(MPI_Win_create(&number, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other), MPI_ERR_SIZE,
           {"size"}, "size");
    expect(MPI_Win_create(nullptr, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other), MPI_ERR_BASE,
           {"null"}, "base");
    // One rank's fault is everybody's error.
    void* const base = rank() == 0 ? nullptr : &number;
    expect(MPI_Win_create(base, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other), MPI_ERR_BASE, {},
           "one base");
    expect(MPI_Win_free(&(other = MPI_WIN_NULL)), MPI_ERR_WIN, {"MPI_WIN_NULL"}, "null");
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(rma_refuses_to_attach_memory_twice, 1) {
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    int numbers[4] = {};
    OK(MPI_Win_attach(win, numbers, sizeof numbers));
    expect(MPI_Win_attach(win, numbers + 1, 4), MPI_ERR_RMA_ATTACH, {"attached already"}, "twice");
    expect(MPI_Win_detach(win, numbers + 1), MPI_ERR_RMA_ATTACH, {"nothing"}, "detach");
    OK(MPI_Win_detach(win, numbers));
    OK(MPI_Win_attach(win, numbers + 1, 4));
    OK(MPI_Win_free(&win));
}

// An operation that is done inside its call counts for its epoch like any other.
MPI_CASE(rma_fences_know_of_operations_that_end_at_once, 2) {
    static long in_program_data = 5;
    for (Window::Made how : every_made()) {
        Window window(how, 64);
        return_errors(window);
        window.set(7, 0L);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_fence(0, window.win()));
        long on_stack = 0;
        if (rank() == 0) {
            OK(MPI_Put(&in_program_data, 1, MPI_LONG, 1, window.at(1, 56), 1, MPI_LONG,
                       window.win()));
            expect(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win()), MPI_ERR_RMA_SYNC,
                   {"that has operations"}, "a lock behind a put");
        }
        OK(MPI_Win_fence(0, window.win()));
        const auto last = std::make_unique<long>(7);
        if (rank() == 0) {
            OK(MPI_Fetch_and_op(last.get(), &on_stack, MPI_LONG, 1, window.at(1, 56), MPI_SUM,
                                window.win()));
            expect(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win()), MPI_ERR_RMA_SYNC,
                   {"that has operations"}, "a lock behind a fetch");
        }
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win()));
        if (rank() == 0) CHECK_EQ(on_stack, 5L);
        if (rank() == 1) CHECK_EQ(window.value<long>(7), 12L);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}
