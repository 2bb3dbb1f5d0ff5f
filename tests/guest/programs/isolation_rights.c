// SPDX-License-Identifier: GPL-2.0-or-later
/* Visibility of the device, and operations that need privileges. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <rdma/rdma_user_cm.h>
#include "isolation.h"

#define NOBODY			65534
#define CONTROLLED_QKEY		0x80010000
#define LOCKED_BYTES		(8 << 20)
#define LAST_CM_ID		4096

/* ---- network namespaces */

static int open_node(void)
{
	int fd = open(iso.board->node, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? errno : 0;
}

/* Returns whether the class of RDMA devices in sysfs contains the device of the owner. */
static bool device_is_listed(void)
{
	struct dirent *entry;
	bool found = false;
	DIR *dir = opendir("/sys/class/infiniband");

	while (dir && (entry = readdir(dir)))
		found |= !strcmp(entry->d_name, iso.device);
	if (dir)
		closedir(dir);
	return found;
}

static bool verbs_list_it(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;
	int i;

	for (i = 0; list && list[i]; i++)
		found |= !strcmp(ibv_get_device_name(list[i]), iso.device);
	if (list)
		ibv_free_device_list(list);
	return found;
}

static int cm_open(void)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		tb_die("/dev/infiniband/rdma_cm");
	return fd;
}

static int cm_command(int fd, uint32_t command, const void *cmd, size_t bytes, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t body[512];
	} message = { .hdr = { .cmd = command, .in = bytes, .out = out } };

	memcpy(message.body, cmd, bytes);
	return write(fd, &message, sizeof(message.hdr) + bytes) < 0 ? errno : 0;
}

static uint32_t cm_create(int fd)
{
	struct rdma_ucm_create_id_resp resp = {};
	struct rdma_ucm_create_id cmd = { .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP, .qp_type = IBV_QPT_RC };

	errno = cm_command(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp));
	if (errno)
		tb_die("CREATE_ID");
	return resp.id;
}

/* Binds to the IPv4 address of the owner's GID, and any port. */
static int cm_bind(int fd, uint32_t id)
{
	struct rdma_ucm_bind cmd = { .id = id, .addr_size = sizeof(struct sockaddr_in) };
	struct sockaddr_in *to = (struct sockaddr_in *)&cmd.addr;

	to->sin_family = AF_INET;
	memcpy(&to->sin_addr, iso.board->gid.raw + 12, 4);
	return cm_command(fd, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0);
}

static void sees_nothing(const char *where)
{
	int error = open_node();
	int cm = cm_open();

	if (error != EPERM)
		tb_fail("%s: opening the device: %s", where, error ? strerror(error) : "success");
	if (device_is_listed())
		tb_fail("%s: sysfs lists the device", where);
	if (verbs_list_it())
		tb_fail("%s: libibverbs lists the device", where);
	if (!cm_bind(cm, cm_create(cm)))
		tb_fail("%s: an identifier was bound to the owner's address", where);
	close(cm);
	iso.board->step++;
}

static void new_namespace(struct raw_ctx *none)
{
	char command[200];

	(void)none;
	if (open_node() || !device_is_listed() || !verbs_list_it())
		tb_fail("the device is not even there before");
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) || mount("", "/", "none", MS_SLAVE | MS_REC, NULL) ||
	    umount2("/sys", MNT_DETACH) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		tb_die("a new namespace");
	sees_nothing("a new namespace");
	/* With the address of the owner at an interface of the namespace. */
	snprintf(command, sizeof(command), "ip link set lo up && ip address add %u.%u.%u.%u/32 dev lo",
		 iso.board->gid.raw[12], iso.board->gid.raw[13], iso.board->gid.raw[14], iso.board->gid.raw[15]);
	if (system(command))
		tb_fail("the namespace has no interface");
	sees_nothing("a namespace with the owner's address");
}

static void other_namespace(struct raw_ctx *none)
{
	(void)none;
	tb_enter_netns("b");
	sees_nothing("the namespace of another device");
}

static void namespaces(void)
{
	iso_intrude_bare(new_namespace);
	iso_intrude_bare(other_namespace);
}

/* ---- an unprivileged user */

static void become_nobody(void)
{
	struct rlimit limit = { LOCKED_BYTES, LOCKED_BYTES };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		tb_die("becoming nobody");
}

static int create_raw_qp(struct raw_ctx *own)
{
	struct raw_qp qp = { .ctx = own, .type = IBV_QPT_RAW_PACKET, .queues = raw_pages(65536) };
	struct ib_uverbs_create_qp core;
	struct hghca_create_qp driver;
	uint32_t handle, qpn;

	raw_cq_create(&qp.cq, own);
	qp.dbr = (void *)(qp.queues + 32768);
	raw_qp_core_data(&qp, &core);
	driver = raw_qp_driver_data(&qp);
	return raw_try_create_qp_of(own, &core, &driver, sizeof(driver), &handle, &qpn);
}

static int set_controlled_qkey(struct raw_ctx *own)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_QKEY, .qkey = CONTROLLED_QKEY };
	struct raw_qp qp;

	raw_qp_create_of(&qp, own, IBV_QPT_UD, NULL);
	raw_ud_start(&qp, ISO_QKEY);
	cmd.qp_handle = qp.handle;
	return raw_command(own->fd, IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd), NULL, 0);
}

/* A flow of all frames to the port. */
static int create_sniffer(struct raw_ctx *own)
{
	struct ib_uverbs_create_flow cmd = { .flow_attr = { .type = IBV_FLOW_ATTR_SNIFFER, .port = 1 } };
	struct ib_uverbs_create_flow_resp resp;
	struct raw_qp qp;

	raw_qp_create_of(&qp, own, IBV_QPT_UD, NULL);
	cmd.qp_handle = qp.handle;
	return raw_ex_command(own->fd, IB_USER_VERBS_EX_CMD_CREATE_FLOW, &cmd, sizeof(cmd), 0, &resp, sizeof(resp), 0);
}

static int register_bytes(struct raw_ctx *own, size_t bytes)
{
	void *pages = raw_pages(bytes);
	struct ib_uverbs_reg_mr cmd = { .start = (uintptr_t)pages, .hca_va = (uintptr_t)pages, .length = bytes,
					.pd_handle = own->pd_handle };
	struct ib_uverbs_reg_mr_resp resp;

	return raw_command(own->fd, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int write_setting(const char *folder, const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? errno : 0;
}

static void ends_with(int error, int expected, const char *who, const char *what)
{
	if (error != expected)
		tb_fail("%s, %s: %s; expected %s", who, what, error ? strerror(error) : "success",
			expected ? strerror(expected) : "success");
}

/* The device without privileges: only operations that need no privileges work. */
static void as_nobody(struct raw_ctx *none)
{
	const char *who = "nobody";
	struct raw_ctx own;
	struct iso_link l;

	(void)none;
	become_nobody();
	raw_open(&own, iso.device);
	iso_link_create(&l, &own, IBV_QPT_RC, NULL);
	iso_link_connect(&l);
	memset(own.buf, 0x66, WQE_BYTES);
	iso_build_write(&l.a, 0, own.buf, own.mr.lkey, (uintptr_t)own.buf + PAGE_BYTES, own.mr.rkey);
	iso_ring(&l.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	if (raw_expect(&l.a, 0, 0, "RDMA WRITE of nobody") && own.buf[PAGE_BYTES] != 0x66)
		tb_fail("nobody's data is wrong");
	iso_link_destroy(&l);
	ends_with(set_controlled_qkey(&own), EPERM, who, "a controlled Q_Key");
	ends_with(create_raw_qp(&own), EPERM, who, "a raw packet QP");
	ends_with(create_sniffer(&own), EPERM, who, "a rule that takes all packets");
	ends_with(register_bytes(&own, 1 << 20), 0, who, "a region of 1 MiB");
	ends_with(register_bytes(&own, 2 * LOCKED_BYTES), ENOMEM, who, "a region beyond the limit of locked memory");
	ends_with(write_setting(iso.counters, "lifespan"), EACCES, who, "a setting in sysfs");
	raw_close(&own);
	iso.board->step++;
}

/* The same with all privileges: so the privileges were the reason of the refusal. */
static void as_root(struct raw_ctx *own)
{
	struct rlimit limit = { LOCKED_BYTES, LOCKED_BYTES };
	const char *who = "root";

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		tb_die("setrlimit");
	ends_with(set_controlled_qkey(own), 0, who, "a controlled Q_Key");
	ends_with(create_raw_qp(own), 0, who, "a raw packet QP");
	ends_with(create_sniffer(own), EOPNOTSUPP, who, "a rule that takes all packets");
	ends_with(register_bytes(own, 2 * LOCKED_BYTES), 0, who, "a region beyond the limit of locked memory");
	ends_with(write_setting(iso.counters, "lifespan"), 0, who, "a setting in sysfs");
	iso.board->step++;
}

/* A user without privileges cannot open devices for privileged users. */
static void nobody_opens(struct raw_ctx *none)
{
	static const char *const paths[] = { "/dev/infiniband/umad0", "/dev/infiniband/issm0", "/dev/mem" };
	char path[512];
	size_t i;

	(void)none;
	become_nobody();
	for (i = 0; i < ARRAY_SIZE(paths); i++)
		if (open(paths[i], O_RDWR) >= 0)
			tb_fail("nobody has opened %s", paths[i]);
	for (i = 0; i < 5; i += 2) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/resource%zu", iso.device, i);
		if (open(path, O_RDWR) >= 0)
			tb_fail("nobody has opened %s", path);
	}
	if (setuid(0) != -1)
		tb_fail("nobody has become root");
}

static void nobody(void)
{
	iso_intrude_bare(as_nobody);
	iso_intrude(as_root);
	iso_intrude_bare(nobody_opens);
	iso_kill_amidst(as_root, 3);
}

/* ---- identifiers of the connection manager, which have the same numbers in all processes */

static int cm_query(int fd, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_query cmd = { .response = (uintptr_t)&resp, .id = id, .option = RDMA_USER_CM_QUERY_ADDR };

	return cm_command(fd, RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), sizeof(resp));
}

static int cm_listen(int fd, uint32_t id)
{
	struct rdma_ucm_listen cmd = { .id = id, .backlog = 1 };

	return cm_command(fd, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0);
}

static int cm_set_option(int fd, uint32_t id)
{
	uint8_t tos = 8;
	struct rdma_ucm_set_option cmd = { .optval = (uintptr_t)&tos, .id = id, .level = RDMA_OPTION_ID,
					   .optname = RDMA_OPTION_ID_TOS, .optlen = 1 };

	return cm_command(fd, RDMA_USER_CM_CMD_SET_OPTION, &cmd, sizeof(cmd), 0);
}

static int cm_destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd = { .response = (uintptr_t)&resp, .id = id };

	return cm_command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), sizeof(resp));
}

static int cm_resolve_route(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = { .id = id, .timeout_ms = 100 };

	return cm_command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &cmd, sizeof(cmd), 0);
}

static int cm_connect(int fd, uint32_t id)
{
	struct rdma_ucm_connect cmd = { .id = id, .conn_param = { .valid = 1 } };

	return cm_command(fd, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), 0);
}

static int cm_accept(int fd, uint32_t id)
{
	struct rdma_ucm_accept cmd = { .id = id };

	return cm_command(fd, RDMA_USER_CM_CMD_ACCEPT, &cmd, sizeof(cmd), 0);
}

static int cm_reject(int fd, uint32_t id)
{
	struct rdma_ucm_reject cmd = { .id = id };

	return cm_command(fd, RDMA_USER_CM_CMD_REJECT, &cmd, sizeof(cmd), 0);
}

static int cm_disconnect(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = { .id = id };

	return cm_command(fd, RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0);
}

static int cm_init_qp(int fd, uint32_t id)
{
	struct ib_uverbs_qp_attr resp;
	struct rdma_ucm_init_qp_attr cmd = { .response = (uintptr_t)&resp, .id = id, .qp_state = IBV_QPS_INIT };

	return cm_command(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &cmd, sizeof(cmd), sizeof(resp));
}

static int cm_notify(int fd, uint32_t id)
{
	struct rdma_ucm_notify cmd = { .id = id, .event = IBV_EVENT_COMM_EST };

	return cm_command(fd, RDMA_USER_CM_CMD_NOTIFY, &cmd, sizeof(cmd), 0);
}

/* Migrates it from its file; this passes the file of the own process. */
static int cm_migrate(int fd, uint32_t id)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = { .response = (uintptr_t)&resp, .id = id, .fd = fd };

	return cm_command(fd, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), sizeof(resp));
}

static const struct {
	const char *what;
	int (*run)(int fd, uint32_t id);
	bool works;			/* with a new own identifier */
} cm_commands[] = {
	{ "BIND", cm_bind, true }, { "QUERY", cm_query, true }, { "SET_OPTION", cm_set_option, true },
	{ "LISTEN", cm_listen, true }, { "RESOLVE_ROUTE", cm_resolve_route, false }, { "CONNECT", cm_connect, false },
	{ "ACCEPT", cm_accept, false }, { "REJECT", cm_reject, false }, { "DISCONNECT", cm_disconnect, false },
	{ "INIT_QP_ATTR", cm_init_qp, false }, { "NOTIFY", cm_notify, false }, { "MIGRATE_ID", cm_migrate, true },
	{ "DESTROY_ID", cm_destroy, true },
};

static void use_cm_ids(struct raw_ctx *none)
{
	int fd = cm_open(), error;
	uint32_t id;
	size_t i;

	(void)none;
	for (i = 0; i < ARRAY_SIZE(cm_commands); i++) {
		error = cm_commands[i].run(fd, iso.board->cm_id);
		if (error != EINVAL && error != ENOENT)
			tb_fail("%s of the owner's identifier: %s", cm_commands[i].what,
				error ? strerror(error) : "success");
		id = cm_create(fd);
		error = cm_commands[i].works ? cm_commands[i].run(fd, id) : 0;
		if (error)
			tb_fail("%s of our own identifier: %s", cm_commands[i].what, strerror(error));
		iso.board->step++;
	}
	close(fd);
	fd = cm_open();
	for (id = 0; id < LAST_CM_ID; id++)
		if (!cm_destroy(fd, id))
			tb_fail("identifier %u was destroyed", id);
	close(fd);
}

static void cm_ids(void)
{
	int fd = cm_open();

	iso.board->cm_id = cm_create(fd);
	if (cm_bind(fd, iso.board->cm_id) || cm_listen(fd, iso.board->cm_id))
		tb_fail("the owner's identifier does not listen");
	iso_intrude(use_cm_ids);
	if (cm_query(fd, iso.board->cm_id))
		tb_fail("the owner's identifier has gone");
	iso_kill_amidst(use_cm_ids, 5);
	if (cm_query(fd, iso.board->cm_id) || cm_destroy(fd, iso.board->cm_id))
		tb_fail("the owner's identifier has gone");
	close(fd);
}

const struct tb_case iso_right_cases[] = {
	{ "rights: processes in other network namespaces", namespaces },
	{ "rights: an unprivileged user", nobody },
	{ "handles: identifiers of the connection manager", cm_ids },
};
const size_t iso_right_count = ARRAY_SIZE(iso_right_cases);
