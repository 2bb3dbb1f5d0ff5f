// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A user program of the RDMA loopback controller, through vfio-pci:
 * PROGRAM PCI-ADDRESS [-- CASE...]
 *
 * It has the offsets and formats of the controller's document as literal numbers, and
 * follows its section 5.7.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "testbed.h"

#define CONTROL		0x00
#define SQ_BASE_LO	0x20
#define SQ_BASE_HI	0x24
#define SQ_SIZE		0x28
#define SQ_HEAD		0x2c
#define SQ_TAIL		0x30
#define SQ_DOORBELL	0x34
#define CQ_BASE_LO	0x40
#define CQ_BASE_HI	0x44
#define CQ_SIZE		0x48
#define CQ_HEAD		0x4c
#define CQ_TAIL		0x50

#define PCI_COMMAND	4
#define BUS_MASTER	4

/* The program's memory as the controller sees it. */
#define MEMORY_BYTES	(1u << 20)
#define IOVA		0x10000000u
#define SQ		0u
#define CQ		0x4000u
#define SOURCE		0x10000u
#define DESTINATION	0x80000u
#define ENTRIES		16u

struct completion {
	uint32_t sq_index, status, bytes_sent, sq_index_again, id, length, zero[2];
};

static int device;
static uint64_t config;				/* offset of the configuration space */
static volatile uint32_t *registers;
static uint8_t *memory;

/* ------------------------------------------------------------------ */
/* vfio                                                                */

static void set(unsigned int offset, uint32_t value)
{
	registers[offset / 4] = value;
}

static uint32_t get(unsigned int offset)
{
	return registers[offset / 4];
}

static int open_group(const char *pci)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	char path[128], target[256];
	ssize_t length;
	int group;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group", pci);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		tb_die("%s has no IOMMU group: %s", pci, strerror(errno));
	target[length] = '\0';
	snprintf(path, sizeof(path), "/dev/vfio/%s", strrchr(target, '/') + 1);
	group = open(path, O_RDWR);
	if (group < 0)
		tb_die("%s: %s", path, strerror(errno));
	if (ioctl(group, VFIO_GROUP_GET_STATUS, &status) || !(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		tb_die("%s is not viable", path);
	return group;
}

static void map_memory(int container)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.iova = IOVA,
		.size = MEMORY_BYTES,
	};

	memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		tb_die("mmap: %s", strerror(errno));
	map.vaddr = (uintptr_t)memory;
	if (ioctl(container, VFIO_IOMMU_MAP_DMA, &map))
		tb_die("VFIO_IOMMU_MAP_DMA: %s", strerror(errno));
}

static uint64_t region(unsigned int index)
{
	struct vfio_region_info info = { .argsz = sizeof(info), .index = index };

	if (ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &info))
		tb_die("VFIO_DEVICE_GET_REGION_INFO %u: %s", index, strerror(errno));
	return info.offset;
}

static void enable_dma(void)
{
	uint16_t command;

	if (pread(device, &command, 2, config + PCI_COMMAND) != 2)
		tb_die("the configuration space cannot be read");
	command |= BUS_MASTER;
	if (pwrite(device, &command, 2, config + PCI_COMMAND) != 2)
		tb_die("the configuration space cannot be written");
}

static void open_device(const char *pci)
{
	int container = open("/dev/vfio/vfio", O_RDWR);
	int group = open_group(pci);
	void *bar;

	if (container < 0)
		tb_die("/dev/vfio/vfio: %s", strerror(errno));
	if (ioctl(group, VFIO_GROUP_SET_CONTAINER, &container) || ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		tb_die("the group cannot be put behind an IOMMU: %s", strerror(errno));
	map_memory(container);
	device = ioctl(group, VFIO_GROUP_GET_DEVICE_FD, pci);
	if (device < 0)
		tb_die("VFIO_GROUP_GET_DEVICE_FD: %s", strerror(errno));
	config = region(VFIO_PCI_CONFIG_REGION_INDEX);
	bar = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, device, region(VFIO_PCI_BAR0_REGION_INDEX));
	if (bar == MAP_FAILED)
		tb_die("BAR0 cannot be mapped: %s", strerror(errno));
	registers = bar;
}

/* ------------------------------------------------------------------ */
/* Section 5.7                                                         */

/* 5.7.9; both queues are reset as FLR does, since indices of the hardware have no other reset. */
static void initialize(uint32_t entries)
{
	if (ioctl(device, VFIO_DEVICE_RESET))
		tb_die("VFIO_DEVICE_RESET: %s", strerror(errno));
	enable_dma();
	memset(memory, 0, MEMORY_BYTES);
	for (unsigned int i = 0; i < DESTINATION - SOURCE; i++)
		memory[SOURCE + i] = (uint8_t)(i * 7 + i / 251);
	set(SQ_BASE_LO, IOVA + SQ);
	set(SQ_BASE_HI, 0);
	set(SQ_SIZE, entries);
	set(SQ_TAIL, 0);
	set(CQ_BASE_LO, IOVA + CQ);
	set(CQ_BASE_HI, 0);
	set(CQ_SIZE, entries);
	set(CQ_HEAD, 0);
	set(CONTROL, 1);
}

/* Whether CQ_TAIL moves within the limit. */
static bool runs(void)
{
	uint32_t before = get(CQ_TAIL);

	for (int64_t limit = tb_now_ms() + TB_WAIT_MS; tb_now_ms() < limit;)
		if (get(CQ_TAIL) != before)
			return true;
	return false;
}

/* A controller that runs without an end is stopped by its enable bit. */
static void expect_endless(void)
{
	uint32_t before;

	if (!runs())
		return tb_fail("the controller stands still");
	set(CONTROL, 0);
	usleep(20000);
	before = get(CQ_TAIL);
	usleep(20000);
	if (get(CQ_TAIL) != before)
		tb_fail("a disabled controller runs");
}

static void put32(uint32_t at, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		memory[at + i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get32(uint32_t at)
{
	return memory[at] | memory[at + 1] << 8 | memory[at + 2] << 16 | (uint32_t)memory[at + 3] << 24;
}

static void write_descriptor(uint32_t index, uint32_t id, uint32_t opcode, uint32_t source, uint32_t destination, uint32_t length)
{
	uint32_t at = SQ + 64 * index;

	memset(memory + at, 0, 64);
	put32(at, id);
	put32(at + 4, opcode);
	put32(at + 8, IOVA + source);
	put32(at + 16, IOVA + destination);
	put32(at + 24, length);
	__sync_synchronize();
}

/* 5.7.1 */
static void submit(uint32_t id, uint32_t opcode, uint32_t source, uint32_t destination, uint32_t length)
{
	uint32_t tail = get(SQ_TAIL);

	write_descriptor(tail, id, opcode, source, destination, length);
	set(SQ_TAIL, (tail + 1) % get(SQ_SIZE));
}

/* 5.7.2 to 5.7.5: false if there is no completion within the limit. */
static bool poll_completion(struct completion *c)
{
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	uint32_t head = get(CQ_HEAD), words[8];

	while (get(CQ_TAIL) == head)
		if (tb_now_ms() > limit)
			return false;
	__sync_synchronize();
	for (unsigned int i = 0; i < 8; i++)
		words[i] = get32(CQ + 32 * head + 4 * i);
	memcpy(c, words, sizeof(*c));
	set(CQ_HEAD, (head + 1) % get(CQ_SIZE));
	return true;
}

static void expect_completion(uint32_t index, uint32_t id, uint32_t bytes)
{
	struct completion c;

	if (!poll_completion(&c)) {
		tb_fail("no completion of %#x", id);
		return;
	}
	if (c.sq_index != index || c.sq_index_again != index || c.status || c.bytes_sent != bytes || c.id != id ||
	    c.length != bytes || c.zero[0] || c.zero[1])
		tb_fail("completion of %#x: index %u and %u, status %u, %u bytes of %u, id %#x", id, c.sq_index,
			c.sq_index_again, c.status, c.bytes_sent, c.length, c.id);
}

static bool copied(uint32_t source, uint32_t destination, uint32_t length)
{
	return !memcmp(memory + source, memory + destination, length);
}

/* ------------------------------------------------------------------ */
/* Cases                                                               */

static void a_transfer(void)
{
	initialize(ENTRIES);
	submit(0x00010001, 0x01, SOURCE, DESTINATION, 256);
	expect_completion(0, 0x00010001, 256);
	if (!copied(SOURCE, DESTINATION, 256) || memory[DESTINATION + 256])
		tb_fail("the destination is not the source");
	if (get(SQ_HEAD) != 1 || get(CQ_TAIL) != 1)
		tb_fail("SQ_HEAD %u, CQ_TAIL %u", get(SQ_HEAD), get(CQ_TAIL));
}

static void sizes_and_addresses(void)
{
	static const uint32_t lengths[] = { 0, 1, 3, 64, 511, 4095, 4096, 4097, 12289, 65535, 65536 };
	uint32_t index = 0;

	initialize(ENTRIES);
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (uint32_t shift = 0; shift < 3; shift++) {
			uint32_t to = DESTINATION + 4094 * shift;

			memset(memory + DESTINATION, 0, MEMORY_BYTES - DESTINATION);
			submit(i, 0x0a, SOURCE + shift, to, lengths[i]);
			expect_completion(index, i, lengths[i]);
			index = (index + 1) % ENTRIES;
			if (!copied(SOURCE + shift, to, lengths[i]) || memory[to + lengths[i]])
				tb_fail("%u bytes from %u", lengths[i], shift);
		}
	}
}

/* 5.7.8: descriptors first, then one write of the tail. */
static void a_batch(void)
{
	initialize(ENTRIES);
	for (uint32_t round = 0; round < 4; round++) {
		uint32_t tail = get(SQ_TAIL);

		for (uint32_t i = 0; i < ENTRIES - 1; i++)
			write_descriptor((tail + i) % ENTRIES, round << 8 | i, 0x06, SOURCE + 512 * i, DESTINATION + 512 * i, 512);
		set(SQ_TAIL, (tail + ENTRIES - 1) % ENTRIES);
		for (uint32_t i = 0; i < ENTRIES - 1; i++)
			expect_completion((tail + i) % ENTRIES, round << 8 | i, 512);
		if (!copied(SOURCE, DESTINATION, 512 * (ENTRIES - 1)))
			tb_fail("round %u", round);
	}
}

/* The offset of a fragment has 16 bits. */
static void past_65536_bytes(void)
{
	initialize(ENTRIES);
	submit(1, 0x01, SOURCE, DESTINATION, 65537);
	expect_completion(0, 1, 65537);
	if (memory[DESTINATION] != memory[SOURCE + 65536] || !copied(SOURCE + 1, DESTINATION + 1, 65535) ||
	    memory[DESTINATION + 65536])
		tb_fail("byte 0 is %#x", memory[DESTINATION]);
}

static void other_opcodes(void)
{
	initialize(ENTRIES);
	submit(1, 0x0c, SOURCE, DESTINATION, 256);
	expect_completion(0, 1, 256);
	for (unsigned int i = 0; i < 256; i++)
		if (memory[DESTINATION + i])
			tb_fail("byte %u is written", i);
}

static void a_disabled_controller(void)
{
	struct completion c;

	initialize(ENTRIES);
	set(CONTROL, 0);
	submit(1, 0x01, SOURCE, DESTINATION, 256);
	set(SQ_DOORBELL, 1);
	if (get(SQ_HEAD) || get(CQ_TAIL))
		tb_fail("it runs");
	set(CONTROL, 1);
	if (!poll_completion(&c) || c.id != 1)
		tb_fail("it does not run");
}

/* A tail beyond the size is never reached: the controller runs until it is disabled, and the machine lives. */
static void a_tail_beyond_the_size(void)
{
	initialize(ENTRIES);
	set(SQ_TAIL, ENTRIES);
	expect_endless();
	/* 5.7.9: it is as new after an initialization. */
	a_transfer();
}

/* The head, which is always 0, is never the tail. The CQ has two entries, so that its tail can be seen to move. */
static void a_size_of_1(void)
{
	initialize(1);
	set(CQ_SIZE, 2);
	write_descriptor(0, 7, 0x01, SOURCE, DESTINATION, 64);
	set(SQ_TAIL, 1);
	expect_endless();
	if (get(SQ_HEAD) || !copied(SOURCE, DESTINATION, 64))
		tb_fail("SQ_HEAD %u", get(SQ_HEAD));
}

/* By 5.2.6 no index plus 1 is 0: the indices go on to the tail, as in queues of 65,536 entries. */
static void a_size_of_0(void)
{
	initialize(0);
	for (uint32_t i = 0; i < 5; i++)
		write_descriptor(i, i, 0x01, SOURCE + 64 * i, DESTINATION + 64 * i, 64);
	set(SQ_TAIL, 5);
	for (int64_t limit = tb_now_ms() + TB_WAIT_MS; get(CQ_TAIL) != 5;)
		if (tb_now_ms() > limit)
			return tb_fail("CQ_TAIL %u", get(CQ_TAIL));
	if (get(SQ_HEAD) != 5 || !copied(SOURCE, DESTINATION, 5 * 64))
		tb_fail("SQ_HEAD %u", get(SQ_HEAD));
	if (get32(CQ + 32 * 4 + 16) != 4)
		tb_fail("the last completion is of %u", get32(CQ + 32 * 4 + 16));
}

static const struct tb_case cases[] = {
	{ "a transfer", a_transfer },
	{ "sizes and addresses", sizes_and_addresses },
	{ "a batch", a_batch },
	{ "past 65536 bytes", past_65536_bytes },
	{ "other opcodes", other_opcodes },
	{ "a disabled controller", a_disabled_controller },
	{ "a tail beyond the size", a_tail_beyond_the_size },
	{ "a size of 1", a_size_of_1 },
	{ "a size of 0", a_size_of_0 },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		tb_die("usage: %s PCI-ADDRESS [-- CASE...]", argv[0]);
	open_device(argv[1]);
	return tb_run(cases, sizeof(cases) / sizeof(cases[0]), argc - 2, argv + 2, NULL);
}
