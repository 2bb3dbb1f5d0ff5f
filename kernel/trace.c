// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: the code of the tracepoints of trace.h. */
#include "hghca.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
