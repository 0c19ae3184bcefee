/* SPDX-License-Identifier: BSD-3-Clause */
/* What may be called when. `lifecycle` walks through a whole life, with a forked child in the
 * middle; `lifecycle early` and `lifecycle late` end in the error that the default error handler
 * makes of a call outside it. */
#include <mpi.h>

#include <mpi-ext.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;

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

/* Everything here is legal at any time, in particular before MPI_Init and after MPI_Finalize. */
static void at_any_time(const char* when) {
    int major = 0, minor = 0, flag = -1, length = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Info info = MPI_INFO_NULL;
    printf("%s\n", when);
    expect("MPI_Get_version", MPI_Get_version(&major, &minor), MPI_SUCCESS);
    expect("version", major, 5);
    expect("MPI_Abi_get_version", MPI_Abi_get_version(&major, &minor), MPI_SUCCESS);
    expect("ABI version", major * 100 + minor, 100);
    expect("MPI_Get_library_version", MPI_Get_library_version(text, &length), MPI_SUCCESS);
    expect("length of the library version", (int)strlen(text), length);
    expect("a foreign vendor's name",
           strncmp(text, "MPICH", 5) == 0 || strncmp(text, "Open MPI", 8) == 0, 0);
    expect("MPI_Initialized", MPI_Initialized(&flag), MPI_SUCCESS);
    expect("MPI_Info_create", MPI_Info_create(&info), MPI_SUCCESS);
    expect("MPI_Info_set", MPI_Info_set(info, "key", "value"), MPI_SUCCESS);
    expect("MPI_Info_free", MPI_Info_free(&info), MPI_SUCCESS);
    expect("info after free", info == MPI_INFO_NULL, 1);
    expect("MPI_Abi_get_info", MPI_Abi_get_info(&info), MPI_SUCCESS);
    length = (int)sizeof text;
    MPI_Info_get_string(info, "mpi_aint_size", &length, text, &flag);
    expect("mpi_aint_size is known", flag, 1);
    expect("mpi_aint_size", text[0] - '0', (int)sizeof(MPI_Aint));
    MPI_Info_free(&info);
    expect("MPI_Error_string", MPI_Error_string(MPI_ERR_RANK, text, &length), MPI_SUCCESS);
    expect("MPIX_GPU_query_support", MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &flag),
           MPI_SUCCESS);
    expect("one answer about CUDA", MPIX_Query_cuda_support(), flag);
    expect("about HIP", MPIX_GPU_query_support(MPIX_GPU_SUPPORT_HIP, &flag), MPI_SUCCESS);
    expect("no HIP", flag, 0);
    expect("MPI_T_init_thread", MPI_T_init_thread(MPI_THREAD_SINGLE, &flag), MPI_SUCCESS);
    expect("MPI_T_cvar_get_num", MPI_T_cvar_get_num(&flag), MPI_SUCCESS);
    expect("there are control variables", flag > 0, 1);
    expect("MPI_T_finalize", MPI_T_finalize(), MPI_SUCCESS);
    expect("MPI_T after its end", MPI_T_pvar_get_num(&flag), MPI_T_ERR_NOT_INITIALIZED);
    expect("world to int", MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
    expect("world from int", MPI_Comm_fromint(0x101) == MPI_COMM_WORLD, 1);
}

static void in_a_forked_child(void) {
    int status = 0, rank = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        failures = 0;
        expect("MPI_Comm_rank in a forked child", class_of(MPI_Comm_rank(MPI_COMM_WORLD, &rank)),
               MPI_ERR_OTHER);
        fflush(stdout);
        _exit(failures);
    }
    waitpid(child, &status, 0);
    expect("exit status of the forked child", status, 0);
}

int main(int argc, char** argv) {
    int rank = -1, flag = 0;
    const char* mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "early") == 0) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        printf("came back\n");
        return 0;
    }
    at_any_time("before MPI_Init");
    MPI_Init(&argc, &argv);
    at_any_time("between");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    expect("a second MPI_Init", class_of(MPI_Init(NULL, NULL)), MPI_ERR_OTHER);
    expect("an unknown kind of GPU", class_of(MPIX_GPU_query_support(99, &flag)), MPI_ERR_ARG);
    in_a_forked_child();
    expect("MPI_Comm_rank after the child", MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_SUCCESS);
    MPI_Finalize();
    at_any_time("after MPI_Finalize");
    MPI_Finalized(&flag);
    expect("MPI_Finalized", flag, 1);
    if (strcmp(mode, "late") == 0) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        printf("came back\n");
    }
    if (failures == 0) printf("every call was judged by when it came\n");
    return failures != 0;
}
