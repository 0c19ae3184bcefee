/* SPDX-License-Identifier: BSD-3-Clause */
/* The constants, sizes and layouts of our mpi.h against the table of the standard's values. Needs
 * no library. */
#include <mpi.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int failures = 0;

static void expect(const char* name, long long found, long long wanted) {
    if (found == wanted) return;
    printf("%s is %lld, the standard says %lld\n", name, found, wanted);
    ++failures;
}

int main(void) {
#define VALUE(name, wanted) expect(#name, (long long)(intptr_t)(name), wanted);
#include "values.def"
#undef VALUE
    expect("sizeof(MPI_Status)", (long long)sizeof(MPI_Status), 32);
    expect("alignment of MPI_Status", (long long)_Alignof(MPI_Status), 4);
    expect("offset of MPI_SOURCE", (long long)offsetof(MPI_Status, MPI_SOURCE), 0);
    expect("offset of MPI_TAG", (long long)offsetof(MPI_Status, MPI_TAG), 4);
    expect("offset of MPI_ERROR", (long long)offsetof(MPI_Status, MPI_ERROR), 8);
    expect("sizeof(MPI_Aint)", (long long)sizeof(MPI_Aint), (long long)sizeof(void*));
    expect("sizeof(MPI_Offset)", (long long)sizeof(MPI_Offset), 8);
    expect("sizeof(MPI_Count)", (long long)sizeof(MPI_Count), 8);
    expect("sizeof(MPI_Fint)", (long long)sizeof(MPI_Fint), 4);
    expect("MPI_Aint is signed", (MPI_Aint)-1 < 0, 1);
    expect("MPI_Count is signed", (MPI_Count)-1 < 0, 1);
    expect("sizeof(MPI_Comm)", (long long)sizeof(MPI_Comm), 8);
    expect("sizeof(MPI_Datatype)", (long long)sizeof(MPI_Datatype), 8);
    expect("sizeof(MPI_Request)", (long long)sizeof(MPI_Request), 8);
    expect("sizeof(MPI_T_cb_safety)", (long long)sizeof(MPI_T_cb_safety), 4);
    /* Datatypes of fixed size carry it in their value: size = 1 << bits 3..5. */
    expect("size bits of MPI_INT64_T", 1 << (((intptr_t)MPI_INT64_T >> 3) & 7), 8);
    expect("size bits of MPI_BYTE", 1 << (((intptr_t)MPI_BYTE >> 3) & 7), 1);
    if (failures == 0) printf("every constant is the standard's\n");
    return failures != 0;
}
