/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The name of <asm/unaligned.h> since it has been moved. */
#include <asm/unaligned.h>
