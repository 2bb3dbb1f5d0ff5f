// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For LD_PRELOAD: a thread that holds a spinlock must not make system calls, cause page
 * faults or copy long arrays, because threads that wait for the lock spin meanwhile.
 * This library checks the calls of the verbs libraries.  The first violation ends the
 * program with a message on stderr.  At its end a program prints the numbers of spinlocks
 * and calls, so that a run without any is not a proof, and the maximum number of faults
 * with one lock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Allowed faults: the first use of code, of parts of the stack, and of lists and
 * buffers of the program.
 */
#define FAULTS_MAX	8
/* The longest array that may be copied at once: twice the slots of the longest SRQ. */
#define COPY_MAX	(512 << 10)

static _Thread_local int held;
static _Thread_local long faults_before;
static atomic_ulong locks, calls;
static atomic_long most_faults;

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

/* Of this thread. */
static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void check_faults(void)
{
	long count = faults() - faults_before, most = most_faults;

	while (count > most && !atomic_compare_exchange_weak(&most_faults, &most, count))
		;
	if (count <= FAULTS_MAX)
		return;
	fprintf(stderr, "spinwatch: %ld page faults with a spinlock held\n", count);
	abort();
}

static int (*next_spin_lock)(pthread_spinlock_t *);
static int (*next_spin_unlock)(pthread_spinlock_t *);

/* The work of this library is done outside of the time that the lock is held. */
int pthread_spin_lock(pthread_spinlock_t *lock)
{
	int error;

	if (!next_spin_lock) {
		next_spin_unlock = real("pthread_spin_unlock");
		next_spin_lock = real("pthread_spin_lock");
	}
	if (!held)
		faults_before = faults();
	error = next_spin_lock(lock);
	held++;
	locks++;
	return error;
}

int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	int error = next_spin_unlock(lock);

	if (!--held)
		check_faults();
	return error;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	static void *(*next)(void *restrict, const void *restrict, size_t);

	if (!next)
		next = real("memcpy");
	if (bytes > COPY_MAX)
		check("memcpy of a long array");
	return next(to, from, bytes);
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

/* The libraries log with these functions; their system calls cannot be checked.  Programs print results. */
static void check_log(const FILE *file)
{
	if (file != stdout)
		check("vfprintf");
}

int vfprintf(FILE *file, const char *format, va_list args)
{
	static int (*next)(FILE *, const char *, va_list);

	if (!next)
		next = real("vfprintf");
	check_log(file);
	return next(file, format, args);
}

int __vfprintf_chk(FILE *file, int flag, const char *format, va_list args);
int __vfprintf_chk(FILE *file, int flag, const char *format, va_list args)
{
	static int (*next)(FILE *, int, const char *, va_list);

	if (!next)
		next = real("__vfprintf_chk");
	check_log(file);
	return next(file, flag, format, args);
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

/* These sleep in the kernel if another thread has the lock, or waits. */
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
	fprintf(stderr, "spinwatch: %lu spinlocks, %lu calls, %ld faults\n", locks, calls, most_faults);
}
