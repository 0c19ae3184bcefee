/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shim (LD_PRELOAD) over the system calls on files, for tests: one call of a kind fails, is cut short or
 * changes a byte. It looks only at files whose name has "shimmed" in it. A program arms it by
 * io_shim_arm(), which it finds by dlsym; or IO_SHIM="write 3 flip" in the environment does, for every
 * process that it is in.
 *
 * kinds: open write read size sync lock allocate cut close unlink
 * at: which call of that kind, counted from 1; what: a number of errno, or one of those below */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kShort = -1, kFlip = -2, kEnd = -3, kMost = 1024 };
static char armed[16];
static int at, what, calls, hits;
static char ours[kMost];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((visibility("default"))) void io_shim_arm(const char* kind, int number, int how) {
    pthread_mutex_lock(&lock);
    snprintf(armed, sizeof armed, "%s", kind);
    at = number;
    what = how;
    calls = hits = 0;
    pthread_mutex_unlock(&lock);
}
/* Whether the call came that was to fail. */
__attribute__((visibility("default"))) int io_shim_hits(void) {
    return hits;
}

__attribute__((constructor)) static void from_environment(void) {
    const char* text = getenv("IO_SHIM");
    char kind[16] = "", how[16] = "";
    int number = 0;
    if (text == NULL || sscanf(text, "%15s %d %15s", kind, &number, how) != 3) return;
    io_shim_arm(kind, number,
                strcmp(how, "flip") == 0    ? kFlip
                : strcmp(how, "short") == 0 ? kShort
                : strcmp(how, "end") == 0   ? kEnd
                                            : atoi(how));
}

/* What is to happen to this call; 0: nothing. */
static int happens(const char* kind, int is_ours) {
    if (!is_ours || strcmp(kind, armed) != 0) return 0;
    pthread_mutex_lock(&lock);
    const int now = ++calls == at;
    hits += now;
    pthread_mutex_unlock(&lock);
    return now ? what : 0;
}
static int known(int file) {
    return file >= 0 && file < kMost && ours[file];
}
/* The same of a call that goes another way (io_shim_ring.c). */
__attribute__((visibility("default"))) int io_shim_happens(const char* kind, int file) {
    return happens(kind, known(file));
}
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(kind, is_ours)                       \
    do {                                          \
        const int error = happens(kind, is_ours); \
        if (error > 0) {                          \
            errno = error;                        \
            return -1;                            \
        }                                         \
    } while (0)

static int opened(int file, int is_ours) {
    if (file >= 0 && file < kMost) ours[file] = (char)is_ours;
    return file;
}
int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = va_arg(more, int);
    va_end(more);
    const int is_ours = strstr(path, "shimmed") != NULL;
    FAIL("open", is_ours);
    return opened(NEXT(open)(path, flags, mode), is_ours);
}
int open64(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = va_arg(more, int);
    va_end(more);
    const int is_ours = strstr(path, "shimmed") != NULL;
    FAIL("open", is_ours);
    return opened(NEXT(open)(path, flags, mode), is_ours);
}
int close(int file) {
    const int is_ours = known(file);
    if (is_ours) ours[file] = 0;
    const int error = happens("close", is_ours);
    const int failed = NEXT(close)(file);
    if (error <= 0) return failed;
    errno = error;
    return -1;
}
int unlink(const char* path) {
    FAIL("unlink", strstr(path, "shimmed") != NULL);
    return NEXT(unlink)(path);
}
int fsync(int file) {
    FAIL("sync", known(file));
    return NEXT(fsync)(file);
}
int ftruncate(int file, off_t bytes) {
    FAIL("cut", known(file));
    return NEXT(ftruncate)(file, bytes);
}
int posix_fallocate(int file, off_t from, off_t bytes) {
    const int error = happens("allocate", known(file));
    return error > 0 ? error : NEXT(posix_fallocate)(file, from, bytes);
}
int fstat(int file, struct stat* facts) {
    FAIL("size", known(file));
    return NEXT(fstat)(file, facts);
}
int fcntl(int file, int command, ...) {
    va_list more;
    va_start(more, command);
    void* argument = va_arg(more, void*);
    va_end(more);
    if (command == F_OFD_SETLK) FAIL("lock", known(file));
    return NEXT(fcntl)(file, command, argument);
}

/* One byte of what is there, and back to where it was after the call. */
static void flip(const struct iovec* pieces) {
    *(char*)pieces[0].iov_base = (char)(*(char*)pieces[0].iov_base ^ 0x40);
}
/* The call fails, moves half of its first piece, or nothing; `how` says what else happens to it. */
#define SPOIL(kind, call)                                                        \
    const int how = happens(kind, known(file));                                  \
    const struct iovec part = {pieces[0].iov_base, (pieces[0].iov_len + 1) / 2}; \
    if (how > 0) {                                                               \
        errno = how;                                                             \
        return -1;                                                               \
    }                                                                            \
    if (how == kShort) return NEXT(call)(file, &part, 1, offset);                \
    if (how == kEnd) return 0
ssize_t pwritev(int file, const struct iovec* pieces, int number, off_t offset) {
    SPOIL("write", pwritev);
    if (how == kFlip) flip(pieces);
    const ssize_t moved = NEXT(pwritev)(file, pieces, number, offset);
    if (how == kFlip) flip(pieces);
    return moved;
}
ssize_t preadv(int file, const struct iovec* pieces, int number, off_t offset) {
    SPOIL("read", preadv);
    const ssize_t moved = NEXT(preadv)(file, pieces, number, offset);
    if (how == kFlip && moved > 0) flip(pieces);
    return moved;
}
/* Whatever is asked for now is not in memory: all reads are preadv's. */
ssize_t preadv2(int file, const struct iovec* pieces, int number, off_t offset, int flags) {
    if (known(file)) {
        errno = EAGAIN;
        return -1;
    }
    return NEXT(preadv2)(file, pieces, number, offset, flags);
}
