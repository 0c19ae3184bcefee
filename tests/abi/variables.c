/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints every variable of the tool information interface, before MPI_Init: a line each, with tabs between
 *     control      NAME  VALUE  DESCRIPTION
 *     performance  NAME  CLASS  DESCRIPTION
 * as `gantry info` has them (tests/cli/info_test.py compares). */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

static void check(const char* what, int code) {
    if (code == MPI_SUCCESS) return;
    printf("%s: %d\n", what, code);
    exit(1);
}

static void print_value(MPI_Datatype type, MPI_T_enum words, const void* value) {
    char item[128];
    int length = (int)sizeof item;
    if (words != MPI_T_ENUM_NULL) {
        check("MPI_T_enum_get_item",
              MPI_T_enum_get_item(words, *(const int*)value, NULL, item, &length));
        printf("%s", item);
    } else if (type == MPI_CHAR) {
        printf("%s", (const char*)value);
    } else if (type == MPI_UNSIGNED_LONG_LONG) {
        printf("%llu", *(const unsigned long long*)value);
    } else if (type == MPI_COUNT) {
        printf("%lld", (long long)*(const MPI_Count*)value);
    } else {
        printf("a type that no variable should have");
    }
}

static void print_controls(void) {
    static union {
        char text[8192];
        long long number;
    } value;
    char name[128], description[4096];
    int number = 0, index, count = 0;
    check("MPI_T_cvar_get_num", MPI_T_cvar_get_num(&number));
    for (index = 0; index < number; ++index) {
        int name_length = (int)sizeof name, length = (int)sizeof description;
        MPI_Datatype type;
        MPI_T_enum words;
        MPI_T_cvar_handle handle;
        check("MPI_T_cvar_get_info", MPI_T_cvar_get_info(index, name, &name_length, NULL, &type,
                                                         &words, description, &length, NULL, NULL));
        check("MPI_T_cvar_handle_alloc", MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
        if (count > (int)sizeof value) check("a value of this many elements", count);
        check("MPI_T_cvar_read", MPI_T_cvar_read(handle, &value));
        check("MPI_T_cvar_handle_free", MPI_T_cvar_handle_free(&handle));
        printf("control\t%s\t", name);
        print_value(type, words, &value);
        printf("\t%s\n", description);
    }
}

static const char* class_name(int var_class) {
    switch (var_class) {
        case MPI_T_PVAR_CLASS_STATE: return "state";
        case MPI_T_PVAR_CLASS_LEVEL: return "level";
        case MPI_T_PVAR_CLASS_SIZE: return "size";
        case MPI_T_PVAR_CLASS_HIGHWATERMARK: return "highwatermark";
        case MPI_T_PVAR_CLASS_COUNTER: return "counter";
        case MPI_T_PVAR_CLASS_AGGREGATE: return "aggregate";
        default: return "unknown";
    }
}

static void print_counters(void) {
    char name[128], description[4096];
    int number = 0, index;
    check("MPI_T_pvar_get_num", MPI_T_pvar_get_num(&number));
    for (index = 0; index < number; ++index) {
        int name_length = (int)sizeof name, length = (int)sizeof description, var_class = 0;
        check("MPI_T_pvar_get_info",
              MPI_T_pvar_get_info(index, name, &name_length, NULL, &var_class, NULL, NULL,
                                  description, &length, NULL, NULL, NULL, NULL));
        printf("performance\t%s\t%s\t%s\n", name, class_name(var_class), description);
    }
}

int main(void) {
    int provided = -1;
    check("MPI_T_init_thread", MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    print_controls();
    print_counters();
    check("MPI_T_finalize", MPI_T_finalize());
    return 0;
}
