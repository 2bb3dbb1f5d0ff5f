// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Parent domains whose buffers a confidential guest may share with its host. */
#include <infiniband/driver.h>

int compat_probe(void)
{
	return IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC;
}
