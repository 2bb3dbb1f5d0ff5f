/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Macros around names of functions, as Coccinelle reads them. */
#define UVERBS_HANDLER(name) name
