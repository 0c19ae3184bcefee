/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the program of another MPI share (program.c says what it is for). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int failures, rank, size;
void expect(int good, const char* what, int line);
#define EXPECT(condition) expect((condition), #condition, __LINE__)

/* program_objects.c */
void attributes(void);
void errors(void);
void requests_of_the_program(void);
void datatypes(void);
void groups_and_topologies(void);
void information(void);
