/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: completions are reported and the queue is woken by one call. */
#include <net/netdev_queues.h>

#ifndef netif_txq_completed_wake
#define netif_txq_completed_wake(txq, pkts, bytes, get_desc, start_thrs)	\
	({									\
		netdev_tx_completed_queue(txq, pkts, bytes);			\
		(pkts) ? netif_txq_maybe_wake(txq, get_desc, start_thrs) : -1;	\
	})
#endif
