/* SPDX-License-Identifier: BSD-3-Clause */
/* Who hears of an error, and what the call returns then: the handler of the communicator that the
 * call names, that of MPI_COMM_SELF when it names none, and in every case the code comes back to
 * the caller. */
#include <mpi.h>

#include <stdio.h>
#include <string.h>

static int failures = 0, heard = 0, heard_class = -1;
static MPI_Comm heard_on = MPI_COMM_NULL;

static void expect(const char* what, int found, int wanted) {
    if (found == wanted) return;
    printf("%s: %d instead of %d\n", what, found, wanted);
    ++failures;
}

static int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

static void listen(MPI_Comm* comm, int* code, ...) {
    ++heard;
    heard_on = *comm;
    heard_class = class_of(*code);
}

int main(int argc, char** argv) {
    MPI_Errhandler listener, found;
    MPI_Comm comm;
    int size = 0, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(listen, &listener);
    MPI_Comm_get_errhandler(comm, &found);
    expect("a communicator begins with MPI_ERRORS_ARE_FATAL", found == MPI_ERRORS_ARE_FATAL, 1);

    MPI_Comm_set_errhandler(comm, listener);
    expect("the code comes back", class_of(MPI_Send(&value, 1, MPI_INT, 1000, 0, comm)),
           MPI_ERR_RANK);
    expect("the handler was called", heard, 1);
    expect("with the class", heard_class, MPI_ERR_RANK);
    expect("on the communicator", heard_on == comm, 1);
    expect("also from the large-count form", class_of(MPI_Send_c(&value, -1, MPI_INT, 0, 0, comm)),
           MPI_ERR_COUNT);
    expect("which calls it too", heard, 2);
    expect("a good call says nothing", MPI_Comm_size(comm, &size), MPI_SUCCESS);
    expect("to nobody", heard, 2);

    MPI_Comm_set_errhandler(MPI_COMM_SELF, listener);
    expect("without a communicator", class_of(MPI_Type_size(MPI_DATATYPE_NULL, &size)),
           MPI_ERR_TYPE);
    expect("MPI_COMM_SELF hears of it", heard, 3);
    expect("as itself", heard_on == MPI_COMM_SELF, 1);
    expect("a dead communicator too", class_of(MPI_Comm_size(MPI_COMM_NULL, &size)), MPI_ERR_COMM);
    expect("is SELF's", heard, 4);

    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    expect("MPI_ERRORS_RETURN", class_of(MPI_Comm_size(comm, NULL)), MPI_ERR_ARG);
    expect("calls nobody", heard, 4);

    char text[MPI_MAX_ERROR_STRING];
    for (int error_class = MPI_SUCCESS; error_class <= MPI_ERR_ABI; ++error_class) {
        int length = 0;
        expect("MPI_Error_string", MPI_Error_string(error_class, text, &length), MPI_SUCCESS);
        expect("its length", (int)strlen(text), length);
        expect("has words", length > 3, 1);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&listener);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    if (failures == 0) printf("every error was heard by the right handler\n");
    return failures != 0;
}
