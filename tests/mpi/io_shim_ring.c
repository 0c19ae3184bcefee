/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A liburing.so.2 in a folder of its own, between the library and the real one: io_shim.c, which must be
 * preloaded, says what happens to each read and write of a ring, as to those of the system. A call that is to
 * fail goes to the kernel as one that does nothing, and its completion says what it was to say.
 *
 * IO_SHIM_RING=refuse: there is no ring, as in a container that forbids io_uring. */
#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { kShort = -1, kFlip = -2, kEnd = -3, kMost = 256 };

/* Calls that something happens to, until they have ended. */
struct Spoilt {
    unsigned long long token;
    int how; /* 0: this place is free */
    struct iovec piece;
};
static struct Spoilt spoilt[kMost];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* real(const char* name) {
    static void* library;
    if (library == NULL) library = dlopen(REAL_LIBURING, RTLD_NOW | RTLD_LOCAL);
    return library != NULL ? dlsym(library, name) : NULL;
}
#define REAL(name) ((__typeof__(&name))real(#name))

static int happens(const char* kind, int file) {
    static int (*asked)(const char*, int);
    if (asked == NULL) asked = (int (*)(const char*, int))dlsym(RTLD_DEFAULT, "io_shim_happens");
    return asked != NULL ? asked(kind, file) : 0;
}
static struct Spoilt* find(int how, unsigned long long token) {
    for (int i = 0; i < kMost; ++i)
        if (how == 0 ? spoilt[i].how == 0 : spoilt[i].how != 0 && spoilt[i].token == token)
            return &spoilt[i];
    return NULL;
}
static void flip(const struct iovec* piece) {
    *(char*)piece->iov_base = (char)(*(char*)piece->iov_base ^ 0x40);
}

static void spoil(struct io_uring_sqe* entry) {
    const int writes = entry->opcode == IORING_OP_WRITEV;
    if (!writes && entry->opcode != IORING_OP_READV) return;
    const int how = happens(writes ? "write" : "read", entry->fd);
    struct Spoilt* const place = how != 0 ? find(0, 0) : NULL;
    if (place == NULL) return;
    place->token = entry->user_data;
    place->how = how;
    place->piece = *(const struct iovec*)(size_t)entry->addr;
    if (how == kShort) {
        place->piece.iov_len = (place->piece.iov_len + 1) / 2;
        entry->addr = (size_t)&place->piece;
        entry->len = 1;
    } else if (how == kFlip) {
        if (writes) flip(&place->piece);
    } else {
        const unsigned long long token = entry->user_data;
        io_uring_prep_nop(entry);
        entry->user_data = token;
    }
}

EXPORT int io_uring_queue_init(unsigned entries, struct io_uring* ring, unsigned flags) {
    const char* const told = getenv("IO_SHIM_RING");
    if (told != NULL && strcmp(told, "refuse") == 0) return -EPERM;
    return REAL(io_uring_queue_init)(entries, ring, flags);
}
EXPORT void io_uring_queue_exit(struct io_uring* ring) {
    REAL(io_uring_queue_exit)(ring);
}
/* What was given since the last time. */
EXPORT int io_uring_submit(struct io_uring* ring) {
    pthread_mutex_lock(&lock);
    for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; ++at)
        spoil(&ring->sq.sqes[at & *ring->sq.kring_mask]);
    pthread_mutex_unlock(&lock);
    return REAL(io_uring_submit)(ring);
}
EXPORT int io_uring_submit_and_wait(struct io_uring* ring, unsigned number) {
    return REAL(io_uring_submit_and_wait)(ring, number);
}
EXPORT unsigned io_uring_peek_batch_cqe(struct io_uring* ring, struct io_uring_cqe** entries,
                                        unsigned most) {
    const unsigned number = REAL(io_uring_peek_batch_cqe)(ring, entries, most);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < number; ++i) {
        struct Spoilt* const its = find(1, entries[i]->user_data);
        if (its == NULL) continue;
        if (its->how > 0) entries[i]->res = -its->how;
        if (its->how == kFlip) flip(&its->piece);
        its->how = 0;
    }
    pthread_mutex_unlock(&lock);
    return number;
}
