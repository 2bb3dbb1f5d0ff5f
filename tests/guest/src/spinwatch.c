// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For LD_PRELOAD: no system call may be made by a thread that holds a spinlock,
 * for whoever waits for that lock burns its processor as long.  The calls that
 * the verbs' libraries make are watched; the first that is wrong ends the
 * program with a word on stderr.  At its end a program says how many there were
 * of both, so that a watch that saw nothing is no proof.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local int held;
static atomic_ulong locks, calls;

static void check(const char *call)
{
	if (!held)
		return;
	held = 0;
	fprintf(stderr, "spinwatch: %s with a spinlock held\n", call);
	abort();
}

static void *real(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function)
		abort();
	return function;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	static int (*next)(pthread_spinlock_t *);
	int error;

	if (!next)
		next = real("pthread_spin_lock");
	error = next(lock);
	held++;
	locks++;
	return error;
}

int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	static int (*next)(pthread_spinlock_t *);

	if (!next)
		next = real("pthread_spin_unlock");
	held--;
	return next(lock);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	check("ioctl");
	calls++;
	return syscall(SYS_ioctl, fd, request, arg);
}

ssize_t write(int fd, const void *buf, size_t bytes)
{
	check("write");
	calls++;
	return syscall(SYS_write, fd, buf, bytes);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	check("mmap");
	return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

int munmap(void *address, size_t bytes)
{
	check("munmap");
	return syscall(SYS_munmap, address, bytes);
}

int madvise(void *address, size_t bytes, int advice)
{
	check("madvise");
	return syscall(SYS_madvise, address, bytes, advice);
}

/* They sleep in the kernel when another thread has the lock, or waits. */
int pthread_mutex_lock(pthread_mutex_t *lock)
{
	static int (*next)(pthread_mutex_t *);

	if (!next)
		next = real("pthread_mutex_lock");
	check("pthread_mutex_lock");
	return next(lock);
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	static int (*next)(pthread_cond_t *);

	if (!next)
		next = real("pthread_cond_broadcast");
	check("pthread_cond_broadcast");
	return next(cond);
}

__attribute__((destructor)) static void report(void)
{
	fprintf(stderr, "spinwatch: %lu spinlocks, %lu calls\n", locks, calls);
}
