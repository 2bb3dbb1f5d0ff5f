// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * READ_POINTER and READ_CONSISTENT: the bytes that are found, and no others.
 *
 * b's buffer has elements of lists in its first half, and in the second half what they point to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "vendorops.h"

#define ELEMENT		64		/* bytes */
#define LAST_WORD	14
#define TARGETS		(TB_BUF_BYTES / 2)
#define TARGET_BYTES	100
#define ELEMENTS_MAX	256		/* of one search */

/* The number at a word of an element. Machines of these tests are little-endian, as elements are. */
static void put(struct vo_pair *t, unsigned int element, unsigned int word, uint64_t number)
{
	memcpy(t->b.buf + (size_t)element * ELEMENT + 4 * word, &number, sizeof(number));
}

static uint64_t element_at(const struct vo_pair *t, unsigned int element)
{
	return (uintptr_t)t->b.buf + (size_t)element * ELEMENT;
}

static uint64_t target_at(const struct vo_pair *t, unsigned int target)
{
	return (uintptr_t)t->b.buf + TARGETS + (size_t)target * TARGET_BYTES;
}

static void fill_targets(struct vo_pair *t)
{
	vo_fill(t->b.buf + TARGETS, TB_BUF_BYTES - TARGETS);
}

static void open_reader(struct vo_pair *t)
{
	vo_open(t);
	fill_targets(t);
}

static void post_search(struct vo_pair *t, const struct hghcadv_pointer *pointer, uint64_t addr, size_t to,
			uint32_t bytes)
{
	ibv_wr_start(t->ex);
	vo_next(t, POINTER_ID);
	hghcadv_wr_read_pointer(t->dv, t->b.mr->rkey, addr, pointer);
	vo_sge(t, to, bytes);
	vo_errno(ibv_wr_complete(t->ex), 0, "posting a READ_POINTER");
}

/* A search must find the target of this number, or nothing (-1). */
static void search(struct vo_pair *t, const struct hghcadv_pointer *pointer, unsigned int element, int target,
		   const char *what)
{
	memset(t->a.buf, VO_UNTOUCHED, 2 * TARGET_BYTES);
	post_search(t, pointer, element_at(t, element), 0, TARGET_BYTES);
	if (!vo_done(t, POINTER_ID, IBV_WC_SUCCESS, target < 0 ? 0 : TARGET_BYTES, what))
		return;
	if (target < 0)
		vo_is_all(t->a.buf, TARGET_BYTES, VO_UNTOUCHED, what);
	else if (memcmp(t->a.buf, (void *)(uintptr_t)target_at(t, target), TARGET_BYTES))
		tb_fail("%s: other bytes than those of target %d", what, target);
	vo_is_all(t->a.buf + TARGET_BYTES, TARGET_BYTES, VO_UNTOUCHED, what);
}

/* A search that the peer refuses; then both ends are connected again. */
static void search_fails(struct vo_pair *t, const struct hghcadv_pointer *pointer, uint64_t addr, uint32_t bytes,
			 enum ibv_wc_status status, const char *what)
{
	memset(t->a.buf, VO_UNTOUCHED, 2 * VO_MTU);
	post_search(t, pointer, addr, 0, bytes);
	vo_done(t, POINTER_ID, status, 0, what);
	vo_is_all(t->a.buf, 2 * VO_MTU, VO_UNTOUCHED, what);
	vo_revive(t);
}

void pointer_found(void)
{
	struct hghcadv_pointer first = { .keys = 1 << 0 | 1 << 4 | 1 << 8, .value = 2, .relative = 1 };
	struct hghcadv_pointer fixed = { .keys = 1 << 0 | 1 << 4 | 1 << 8, .value = 12 };
	struct hghcadv_pointer last = { .key = 0x1122334455667788, .keys = 1 << LAST_WORD, .value = 1 };
	struct vo_pair t;
	unsigned int i;

	open_reader(&t);
	for (i = 0; i < 3; i++) {
		put(&t, 1, 4 * i, 100 * (i + 1));
		put(&t, 1, 4 * i + 2, target_at(&t, i));
	}
	put(&t, 1, 12, target_at(&t, 7));
	for (i = 0; i < 3; i++) {
		first.key = 100 * (i + 1);
		fixed.key = first.key;
		search(&t, &first, 1, i, "a pointer that counts from the key");
		search(&t, &fixed, 1, 7, "a pointer at one place");
	}
	first.key = 400;
	search(&t, &first, 1, -1, "a key that is not there");
	first.key = 200;
	first.keys = 1 << 0 | 1 << 8;
	search(&t, &first, 1, -1, "a key that is not asked for");
	put(&t, 2, 1, target_at(&t, 5));
	put(&t, 2, LAST_WORD, last.key);
	search(&t, &last, 2, 5, "a key at the last word, a pointer at an odd one");
	last.key++;
	search(&t, &last, 2, -1, "no key at the last word");
	vo_close(&t);
}

/* Numbers are compared without a sign; the first key that matches wins. */
void pointer_predicates(void)
{
	static const uint64_t keys[] = { 10, 20, 1ull << 63 };
	static const struct {
		enum hghcadv_predicate predicate;
		uint64_t key;
		int target;
	} searches[] = {
		{ HGHCADV_PREDICATE_EQUAL, 10, 0 }, { HGHCADV_PREDICATE_EQUAL, 20, 1 },
		{ HGHCADV_PREDICATE_EQUAL, 1ull << 63, 2 }, { HGHCADV_PREDICATE_EQUAL, 11, -1 },
		{ HGHCADV_PREDICATE_LESS, 10, -1 }, { HGHCADV_PREDICATE_LESS, 11, 0 },
		{ HGHCADV_PREDICATE_LESS, UINT64_MAX, 0 }, { HGHCADV_PREDICATE_LESS, 0, -1 },
		{ HGHCADV_PREDICATE_GREATER, 9, 0 }, { HGHCADV_PREDICATE_GREATER, 10, 1 },
		{ HGHCADV_PREDICATE_GREATER, 20, 2 }, { HGHCADV_PREDICATE_GREATER, 1ull << 63, -1 },
		{ HGHCADV_PREDICATE_NOT_EQUAL, 10, 1 }, { HGHCADV_PREDICATE_NOT_EQUAL, 0, 0 },
		{ HGHCADV_PREDICATE_NOT_EQUAL, 20, 0 },
	};
	struct hghcadv_pointer pointer = { .keys = 1 << 0 | 1 << 2 | 1 << 4, .value = 6, .relative = 1 };
	struct vo_pair t;
	char what[64];
	size_t i;

	open_reader(&t);
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		put(&t, 0, 2 * i, keys[i]);
		put(&t, 0, 2 * i + 6, target_at(&t, i));
	}
	for (i = 0; i < ARRAY_SIZE(searches) && !tb_failed(); i++) {
		pointer.predicate = searches[i].predicate;
		pointer.key = searches[i].key;
		snprintf(what, sizeof(what), "predicate %d, key 0x%llx", pointer.predicate,
			 (unsigned long long)pointer.key);
		search(&t, &pointer, 0, searches[i].target, what);
	}
	vo_close(&t);
}

/* ------------------------------------------------------------------ */
/* Lists                                                                */

/* Element i of a list has the key i + 1 at word 0, its pointer at word 3, and the next address at word 6. */
static const struct hghcadv_pointer in_list = { .keys = 1, .value = 3, .next = 6, .has_next = 1 };

/* The place of element i of a list: not those one behind the other. */
static unsigned int place(unsigned int i, unsigned int count)
{
	return i * 7 % count;
}

/* A list of a number of elements that is no multiple of 7. */
static void make_list(struct vo_pair *t, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		put(t, place(i, count), 0, i + 1);
		put(t, place(i, count), 3, target_at(t, i));
		put(t, place(i, count), 6, i + 1 < count ? element_at(t, place(i + 1, count)) : 0);
	}
}

static struct hghcadv_pointer listed(uint64_t key)
{
	struct hghcadv_pointer pointer = in_list;

	pointer.key = key;
	return pointer;
}

void pointer_lists(void)
{
	const unsigned int short_list = 20, long_list = 300;
	struct hghcadv_pointer pointer;
	struct vo_pair t;
	unsigned int i;

	open_reader(&t);
	make_list(&t, short_list);
	for (i = 0; i < short_list && !tb_failed(); i++) {
		pointer = listed(i + 1);
		search(&t, &pointer, 0, i, "a short list");
	}
	pointer = listed(short_list + 1);
	search(&t, &pointer, 0, -1, "a key that no element has");
	pointer = listed(2);
	pointer.has_next = 0;
	search(&t, &pointer, 0, -1, "a list of which the first element is searched");

	make_list(&t, long_list);
	pointer = listed(ELEMENTS_MAX);
	search(&t, &pointer, 0, ELEMENTS_MAX - 1, "the last element that is searched");
	pointer = listed(long_list);
	search_fails(&t, &pointer, element_at(&t, 0), TARGET_BYTES, IBV_WC_REM_OP_ERR, "a list that is too long");
	pointer = listed(long_list);
	search(&t, &pointer, place(long_list - 1, long_list), long_list - 1, "the end of a long list");
	vo_close(&t);
}

/* Another QP has its requests answered in between; how many of them before the search ends, is not known. */
void pointer_endless(void)
{
	struct hghcadv_pointer pointer = listed(77);
	struct vo_pair t, other;
	unsigned int i;

	open_reader(&t);
	vo_open(&other);
	make_list(&t, 3);
	put(&t, place(2, 3), 6, element_at(&t, 0));
	post_search(&t, &pointer, element_at(&t, 0), 0, TARGET_BYTES);
	for (i = 0; i < 10; i++)
		vo_works(&other, "another QP");
	vo_done(&t, POINTER_ID, IBV_WC_REM_OP_ERR, 0, "a list of three elements that goes round");
	vo_revive(&t);
	put(&t, 5, 6, element_at(&t, 5));
	search_fails(&t, &pointer, element_at(&t, 5), TARGET_BYTES, IBV_WC_REM_OP_ERR, "an element that is its next");
	pointer = listed(3);
	search(&t, &pointer, 0, 2, "an element of a list that goes round");
	vo_close(&other);
	vo_close(&t);
}

/* ------------------------------------------------------------------ */
/* Lengths, numbers and errors                                          */

static void read_length(struct vo_pair *t, uint32_t bytes)
{
	struct hghcadv_pointer pointer = { .key = 1, .keys = 1, .value = 3 };
	uint32_t first = bytes / 3;
	struct ibv_sge list[2] = {
		{ (uintptr_t)t->a.buf, first, t->a.mr->lkey },
		{ (uintptr_t)t->a.buf + VO_MTU, bytes - first, t->a.mr->lkey },
	};
	const uint8_t *target = t->b.buf + TARGETS + 3;

	put(t, 0, 0, 1);
	put(t, 0, 3, (uintptr_t)target);
	memset(t->a.buf, VO_UNTOUCHED, 3 * VO_MTU);
	ibv_wr_start(t->ex);
	vo_next(t, POINTER_ID);
	hghcadv_wr_read_pointer(t->dv, t->b.mr->rkey, element_at(t, 0), &pointer);
	ibv_wr_set_sge_list(t->ex, 2, list);
	vo_errno(ibv_wr_complete(t->ex), 0, "posting a READ_POINTER");
	if (!vo_done(t, POINTER_ID, IBV_WC_SUCCESS, bytes, "a length"))
		return;
	if (memcmp(t->a.buf, target, first) || memcmp(t->a.buf + VO_MTU, target + first, bytes - first))
		tb_fail("%u bytes: others than those of the target", bytes);
	vo_is_all(t->a.buf + first, VO_MTU - first, VO_UNTOUCHED, "behind the first piece");
	vo_is_all(t->a.buf + VO_MTU + bytes - first, VO_MTU - (bytes - first), VO_UNTOUCHED, "behind the second piece");
}

void pointer_lengths(void)
{
	static const uint32_t lengths[] = { 1, 2, 3, 4, 5, 64, 255, 1024, VO_MTU - 1, VO_MTU };
	struct vo_pair t;
	size_t i;

	open_reader(&t);
	for (i = 0; i < ARRAY_SIZE(lengths) && !tb_failed(); i++)
		read_length(&t, lengths[i]);
	vo_close(&t);
}

/* More than may be outstanding at once, and every third finds nothing; then a WRITE that comes after them. */
void pointer_many(void)
{
	const unsigned int rounds = 10, count = VO_SQ_WRS, elements = 25;
	struct hghcadv_pointer pointer;
	unsigned int round, i;
	struct vo_pair t;

	open_reader(&t);
	make_list(&t, elements);
	for (round = 0; round < rounds && !tb_failed(); round++) {
		memset(t.a.buf, VO_UNTOUCHED, count * TARGET_BYTES);
		ibv_wr_start(t.ex);
		for (i = 0; i < count; i++) {
			pointer = listed(i % 3 == 2 ? 1000 : i % elements + 1);
			vo_next(&t, POINTER_ID);
			hghcadv_wr_read_pointer(t.dv, t.b.mr->rkey, element_at(&t, 0), &pointer);
			vo_sge(&t, i * TARGET_BYTES, TARGET_BYTES);
		}
		vo_errno(ibv_wr_complete(t.ex), 0, "posting many");
		for (i = 0; i < count && !tb_failed(); i++)
			vo_done(&t, POINTER_ID, IBV_WC_SUCCESS, i % 3 == 2 ? 0 : TARGET_BYTES, "one of many");
		for (i = 0; i < count && !tb_failed(); i++) {
			const uint8_t *got = t.a.buf + i * TARGET_BYTES;

			if (i % 3 == 2)
				vo_is_all(got, TARGET_BYTES, VO_UNTOUCHED, "one of many that finds nothing");
			else if (memcmp(got, (void *)(uintptr_t)target_at(&t, i % elements), TARGET_BYTES))
				tb_fail("request %u found other bytes", i);
		}
		vo_works(&t, "a WRITE after them");
	}
	vo_close(&t);
}

/* The list has elements and pointers that are not in the region. */
static void refused_addresses(struct vo_pair *t)
{
	const uint64_t behind = (uintptr_t)t->b.buf + TB_BUF_BYTES;
	struct hghcadv_pointer pointer = listed(3);

	search_fails(t, &pointer, behind, TARGET_BYTES, IBV_WC_REM_ACCESS_ERR, "a list behind the region");
	search_fails(t, &pointer, behind - ELEMENT / 2, TARGET_BYTES, IBV_WC_REM_ACCESS_ERR, "half an element");
	make_list(t, 3);
	put(t, place(1, 3), 6, behind);
	search_fails(t, &pointer, element_at(t, 0), TARGET_BYTES, IBV_WC_REM_ACCESS_ERR, "a next element behind it");
	make_list(t, 3);
	put(t, place(2, 3), 3, behind);
	search_fails(t, &pointer, element_at(t, 0), TARGET_BYTES, IBV_WC_REM_ACCESS_ERR, "a pointer behind it");
	put(t, place(2, 3), 3, behind - TARGET_BYTES + 1);
	search_fails(t, &pointer, element_at(t, 0), TARGET_BYTES, IBV_WC_REM_ACCESS_ERR, "one byte behind it");
	put(t, place(2, 3), 3, 0);
	search_fails(t, &pointer, element_at(t, 0), TARGET_BYTES, IBV_WC_REM_ACCESS_ERR, "a pointer to 0");
}

static void refused_words(struct vo_pair *t)
{
	struct hghcadv_pointer pointer = { .key = 5, .keys = 1 << 10, .value = 5, .relative = 1 };

	put(t, 0, 10, 5);
	search_fails(t, &pointer, element_at(t, 0), TARGET_BYTES, IBV_WC_REM_INV_REQ_ERR, "a pointer behind word 14");
	pointer.key = 6;
	search(t, &pointer, 0, -1, "a pointer behind word 14, of a key that is not there");
}

void pointer_refused(void)
{
	const struct vo_opts no_right = { .lacking = IBV_ACCESS_REMOTE_READ };
	struct hghcadv_pointer pointer = listed(1);
	struct vo_pair t;
	uint32_t rkey;

	open_reader(&t);
	refused_addresses(&t);
	refused_words(&t);
	make_list(&t, 3);
	search_fails(&t, &pointer, element_at(&t, 0), 0, IBV_WC_REM_INV_REQ_ERR, "no bytes");
	search_fails(&t, &pointer, element_at(&t, 0), VO_MTU + 1, IBV_WC_LOC_LEN_ERR, "more than the path MTU");
	rkey = t.b.mr->rkey;
	t.b.mr->rkey = ~rkey;
	search_fails(&t, &pointer, element_at(&t, 0), TARGET_BYTES, IBV_WC_REM_ACCESS_ERR, "a wrong key");
	t.b.mr->rkey = rkey;
	search(&t, &pointer, 0, 0, "a search after all that");
	vo_close(&t);

	vo_open_with(&t, &no_right);
	make_list(&t, 3);
	post_search(&t, &pointer, element_at(&t, 0), 0, TARGET_BYTES);
	vo_done(&t, POINTER_ID, IBV_WC_REM_INV_REQ_ERR, 0, "a QP without the right");
	vo_close(&t);
}

/* ------------------------------------------------------------------ */
/* READ_CONSISTENT                                                      */

#define CRC		8

static void make_object(uint8_t *to, uint32_t bytes)
{
	uint64_t crc;

	vo_fill(to, bytes - CRC);
	crc = hghcadv_crc64(to, bytes - CRC);
	memcpy(to + bytes - CRC, &crc, CRC);
}

static void post_read(struct vo_pair *t, size_t from, uint32_t bytes)
{
	ibv_wr_start(t->ex);
	vo_next(t, OBJECT_ID);
	hghcadv_wr_read_consistent(t->dv, t->b.mr->rkey, (uintptr_t)t->b.buf + from);
	vo_sge(t, 0, bytes);
	vo_errno(ibv_wr_complete(t->ex), 0, "posting a READ_CONSISTENT");
}

static void read_fails(struct vo_pair *t, size_t from, uint32_t bytes, enum ibv_wc_status status, const char *what)
{
	memset(t->a.buf, VO_UNTOUCHED, 2 * VO_MTU);
	post_read(t, from, bytes);
	vo_done(t, OBJECT_ID, status, 0, what);
	vo_is_all(t->a.buf, 2 * VO_MTU, VO_UNTOUCHED, what);
	vo_revive(t);
}

static void read_whole(struct vo_pair *t, size_t from, uint32_t bytes, const char *what)
{
	memset(t->a.buf, VO_UNTOUCHED, 2 * VO_MTU);
	post_read(t, from, bytes);
	if (vo_done(t, OBJECT_ID, IBV_WC_SUCCESS, bytes, what) && memcmp(t->a.buf, t->b.buf + from, bytes))
		tb_fail("%s: %u bytes, others than those of the object", what, bytes);
	vo_is_all(t->a.buf + bytes, 2 * VO_MTU - bytes, VO_UNTOUCHED, what);
}

void object_read(void)
{
	static const uint32_t sizes[] = { 9, 10, 11, 12, 13, 16, 17, 64, 100, 1000, VO_MTU - 1, VO_MTU };
	struct vo_pair t;
	size_t i;

	vo_open(&t);
	for (i = 0; i < ARRAY_SIZE(sizes) && !tb_failed(); i++) {
		make_object(t.b.buf + 4000 + i, sizes[i]);
		read_whole(&t, 4000 + i, sizes[i], "an object");
	}
	vo_close(&t);
}

/* As many as may be posted, each of its own bytes and at its own place; then a WRITE that comes after them. */
void object_many(void)
{
	const unsigned int rounds = 10, count = VO_SQ_WRS, bytes = 500;
	unsigned int round, i;
	struct vo_pair t;

	vo_open(&t);
	for (round = 0; round < rounds && !tb_failed(); round++) {
		memset(t.a.buf, VO_UNTOUCHED, count * bytes);
		for (i = 0; i < count; i++)
			make_object(t.b.buf + i * bytes, bytes);
		ibv_wr_start(t.ex);
		for (i = 0; i < count; i++) {
			vo_next(&t, OBJECT_ID);
			hghcadv_wr_read_consistent(t.dv, t.b.mr->rkey, (uintptr_t)t.b.buf + i * bytes);
			vo_sge(&t, i * bytes, bytes);
		}
		vo_errno(ibv_wr_complete(t.ex), 0, "posting many");
		for (i = 0; i < count && !tb_failed(); i++)
			vo_done(&t, OBJECT_ID, IBV_WC_SUCCESS, bytes, "one of many");
		for (i = 0; i < count && !tb_failed(); i++)
			if (memcmp(t.a.buf + i * bytes, t.b.buf + i * bytes, bytes))
				tb_fail("request %u has read other bytes", i);
		vo_works(&t, "a WRITE after them");
	}
	vo_close(&t);
}

/*
 * A thread that writes the object again and again, of words that are all its version. In between, it is left alone for
 * some time: it need not be consistent in one of the tries.
 */
struct writer {
	uint8_t *object;
	bool stop;
};

#define VERSIONED	(VO_MTU - CRC)
#define REST_NS		200000
#define WHOLE_READS	300
#define READS_LIMIT_MS	(4000 * tb_slowness())

static void *write_versions(void *arg)
{
	const struct timespec rest = { .tv_nsec = REST_NS };
	struct writer *writer = arg;
	volatile uint64_t *word = (volatile uint64_t *)writer->object;
	uint64_t copy[VERSIONED / 8], version, crc;
	size_t i;

	for (version = 1; !__atomic_load_n(&writer->stop, __ATOMIC_ACQUIRE); version++) {
		for (i = 0; i < VERSIONED / 8; i++)
			copy[i] = version;
		crc = hghcadv_crc64(copy, sizeof(copy));
		for (i = 0; i < VERSIONED / 8; i++)
			word[i] = version;
		word[i] = crc;
		nanosleep(&rest, NULL);
	}
	return NULL;
}

/* Whether the words that were read are of one version, which is returned. */
static uint64_t version_of(const struct vo_pair *t)
{
	uint64_t words[VO_MTU / 8], crc;
	size_t i;

	memcpy(words, t->a.buf, sizeof(words));
	for (i = 1; i < VERSIONED / 8; i++) {
		if (words[i] == words[0])
			continue;
		tb_fail("words of versions %llu and %llu", (unsigned long long)words[0], (unsigned long long)words[i]);
		return 0;
	}
	crc = hghcadv_crc64(words, VERSIONED);
	if (words[i] != crc)
		tb_fail("the checksum is not that of version %llu", (unsigned long long)words[0]);
	return words[0];
}

/*
 * The host may stop the writer in the middle, so that the peer gives up: then the object is read again. What is read is
 * whole at any time.
 */
void object_changes(void)
{
	unsigned int whole = 0, given_up = 0, versions = 0;
	int64_t end = tb_now_ms() + READS_LIMIT_MS;
	struct writer writer = { 0 };
	uint64_t last = 0, version;
	pthread_t thread;
	struct ibv_wc wc;
	struct vo_pair t;

	vo_open(&t);
	writer.object = t.b.buf;
	memset(writer.object, 0, VO_MTU);
	version = hghcadv_crc64(writer.object, VERSIONED);
	memcpy(writer.object + VERSIONED, &version, CRC);
	if (pthread_create(&thread, NULL, write_versions, &writer))
		tb_die("pthread_create");
	/* Until there are enough of them, and at least two versions. */
	while ((whole < WHOLE_READS || versions < 2) && tb_now_ms() < end && !tb_failed()) {
		post_read(&t, 0, VO_MTU);
		if (!tb_poll(t.a.scq, &wc, "an object"))
			break;
		if (wc.status == IBV_WC_REM_OP_ERR) {
			given_up++;
			vo_revive(&t);
			continue;
		}
		if (wc.status != IBV_WC_SUCCESS || wc.byte_len != VO_MTU)
			tb_fail("an object: \"%s\", %u bytes", ibv_wc_status_str(wc.status), wc.byte_len);
		version = version_of(&t);
		if (version < last)
			tb_fail("version %llu after version %llu", (unsigned long long)version,
				(unsigned long long)last);
		versions += !whole++ || version != last;
		last = version;
	}
	__atomic_store_n(&writer.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	printf("# %u objects of %u versions, %u not consistent in time\n", whole, versions, given_up);
	if (!whole || versions < 2)
		tb_fail("%u objects of %u versions", whole, versions);
	vo_close(&t);
}

void object_broken(void)
{
	struct vo_pair t, other;
	unsigned int i;

	vo_open(&t);
	vo_open(&other);
	make_object(t.b.buf, 500);
	t.b.buf[17] ^= 4;
	post_read(&t, 0, 500);
	for (i = 0; i < 10; i++)
		vo_works(&other, "another QP");
	vo_done(&t, OBJECT_ID, IBV_WC_REM_OP_ERR, 0, "an object with a wrong bit");
	vo_revive(&t);
	t.b.buf[17] ^= 4;
	t.b.buf[499] ^= 0x80;
	read_fails(&t, 0, 500, IBV_WC_REM_OP_ERR, "a checksum with a wrong bit");
	t.b.buf[499] ^= 0x80;
	read_whole(&t, 0, 500, "the object with neither");
	vo_close(&other);
	vo_close(&t);
}

void object_refused(void)
{
	const struct vo_opts no_right = { .lacking = IBV_ACCESS_REMOTE_READ };
	struct vo_pair t;
	uint32_t rkey;

	vo_open(&t);
	make_object(t.b.buf, 64);
	make_object(t.b.buf + TB_BUF_BYTES - 64, 64);
	read_fails(&t, 0, 0, IBV_WC_REM_INV_REQ_ERR, "no bytes");
	read_fails(&t, 0, CRC, IBV_WC_REM_INV_REQ_ERR, "a checksum alone");
	read_fails(&t, 0, VO_MTU + 1, IBV_WC_LOC_LEN_ERR, "more than the path MTU");
	read_fails(&t, TB_BUF_BYTES - 63, 64, IBV_WC_REM_ACCESS_ERR, "one byte behind the region");
	rkey = t.b.mr->rkey;
	t.b.mr->rkey = ~rkey;
	read_fails(&t, 0, 64, IBV_WC_REM_ACCESS_ERR, "a wrong key");
	t.b.mr->rkey = rkey;
	read_whole(&t, 0, 64, "an object after all that");
	read_whole(&t, TB_BUF_BYTES - 64, 64, "an object at the end of the region");
	vo_close(&t);

	vo_open_with(&t, &no_right);
	make_object(t.b.buf, 64);
	post_read(&t, 0, 64);
	vo_done(&t, OBJECT_ID, IBV_WC_REM_INV_REQ_ERR, 0, "a QP without the right");
	vo_close(&t);
}
