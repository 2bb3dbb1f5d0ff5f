// SPDX-License-Identifier: GPL-2.0-or-later
/* For LD_PRELOAD: TCP sockets of a program become SMC sockets, which have the same addresses and calls. */

#define _GNU_SOURCE
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SMC_FAMILY		43	/* AF_SMC of <linux/socket.h>, which <sys/socket.h> may lack */
#define SMC_PROTOCOL_IPV4	0	/* SMCPROTO_SMC of the kernel's net/smc.h */
#define SMC_PROTOCOL_IPV6	1	/* SMCPROTO_SMC6 */
#define TYPE_MASK		0xf

static int is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) && (type & TYPE_MASK) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

int socket(int domain, int type, int protocol)
{
	if (is_tcp(domain, type, protocol)) {
		protocol = domain == AF_INET ? SMC_PROTOCOL_IPV4 : SMC_PROTOCOL_IPV6;
		domain = SMC_FAMILY;
	}
	return syscall(SYS_socket, domain, type, protocol);
}
