// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* devlink reports the name of the driver; its function for that is gone. */
#include <net/devlink.h>

static int devlink_info_driver_name_put __maybe_unused;
