/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: an area's flags are changed by functions. */
#ifndef COMPAT_HAS_VM_FLAGS_CLEAR
#include <linux/mm.h>

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif
