/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: registers, commands, contexts, descriptors and events.
 *
 * docs/reference/hardware-interface.rst is normative.  These headers follow its
 * sections.  The kernel driver, the verbs provider and the device model share
 * them.  They compile as kernel C, as C11 and as C++20.
 *
 * Byte order: HCR registers, doorbells, WQEs and CQEs are little-endian.
 * Mailboxes and EQEs are big-endian.
 */
#ifndef HGHCA_HW_H
#define HGHCA_HW_H

#include <hghca/regs.h>
#include <hghca/segment.h>
#include <hghca/cmd.h>
#include <hghca/mailbox.h>
#include <hghca/context.h>
#include <hghca/qp.h>
#include <hghca/wqe.h>
#include <hghca/cqe.h>
#include <hghca/eqe.h>
#include <hghca/counters.h>
#include <hghca/rsnic_caps.h>

#endif /* HGHCA_HW_H */
