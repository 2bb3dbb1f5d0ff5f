/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: drop reasons and counters; docs/reference/hardware-interface.rst, 4 and 9. */
#ifndef HGHCA_INTERFACE_COUNTERS_H
#define HGHCA_INTERFACE_COUNTERS_H

#include <hghca/types.h>

/* ------------------------------------------------------------------ */
/* Packets that were dropped or refused, and why                        */

/*
 * Up to 31: as the bits of the error syndrome of the LogiCORE ETRNIC guide, table 2-3.
 * From 32 on: ours.
 */
#define HGHCA_DROPS(X) \
	X(IP_VERSION,		2,	"IP version against the Ethernet type") \
	X(IP_HEADER_LENGTH,	3,	"IPv4 header is not of 20 bytes") \
	X(DESTINATION,		8,	"destination address is not the QP's") \
	X(IP_CHECKSUM,		9,	"IPv4 header checksum") \
	X(IP_LENGTH,		10,	"IP length beyond the frame, or below the headers") \
	X(UDP_LENGTH,		12,	"UDP length against IP length") \
	X(BTH_VERSION,		13,	"BTH version is not 0") \
	X(NO_QP,		14,	"no such QP") \
	X(QP_STATE,		15,	"QP does not receive in its state") \
	X(SEQUENCE,		16,	"opcode does not follow the one before") \
	X(OPCODE,		17,	"unknown opcode") \
	X(PAD,			18,	"pad in a packet that is not the last") \
	X(LENGTH,		19,	"payload against path MTU and place in the message") \
	X(RNR,			20,	"no receive WQE") \
	X(PSN,			21,	"PSN ahead of the expected") \
	X(SYNDROME,		22,	"reserved AETH syndrome") \
	X(RESPONSE,		23,	"response does not fit the request") \
	X(SOURCE,		27,	"source address is not the peer's") \
	X(ICRC,			30,	"ICRC") \
	X(HEADERS,		32,	"no room for the headers of the opcode") \
	X(SERVICE,		33,	"opcode of another service than the QP's") \
	X(PKEY,			34,	"P_Key") \
	X(QKEY,			35,	"Q_Key") \
	X(TOO_LONG,		36,	"longer than the receive WQE") \
	X(REQUEST,		37,	"request that the QP does not take, or not so many of") \
	X(ACCESS,		38,	"remote access error") \
	X(OPERATION,		39,	"receive WQE, or what it names, is at fault") \
	X(CNP,			40,	"CNP without BECN, or of another length")

enum hghca_drop {
	HGHCA_DROP_NONE,
#define HGHCA_DROP_ENUM(name, value, text) HGHCA_DROP_##name = value,
	HGHCA_DROPS(HGHCA_DROP_ENUM)
#undef HGHCA_DROP_ENUM
};

/* Ethernet with a VLAN tag, IPv6, UDP, BTH and the longest extension headers. */
#define HGHCA_ERROR_HEADER_MAX		120

struct hghca_packet_error {
	__be64	time;			/* 00h: of the clock (5.5) */
	__be32	length;			/* 08h: bytes of the frame */
	__be32	qpn;			/* 0Ch: destination QP, as the BTH has it */
	__u8	why;			/* 10h: enum hghca_drop */
	__u8	header_len;		/* 11h: bytes of header that are live */
	__u8	rsvd12[6];
	__u8	header[HGHCA_ERROR_HEADER_MAX];	/* 18h */
};
HGHCA_ASSERT_SIZE(hghca_packet_error, 144);
HGHCA_ASSERT_OFFSET(hghca_packet_error, header, 0x18);

#define HGHCA_ERRORS_PER_MAILBOX	28

/* READ_ERROR_BUFFER output, extension. Packets are numbered from 0 on, since reset. */
struct hghca_error_buffer {
	__be64	total;			/* 00h: number of the next packet */
	__be64	first;			/* 08h: of entries[0] */
	__be32	count;			/* 10h: of entries */
	__u8	rsvd14[44];
	struct hghca_packet_error entries[HGHCA_ERRORS_PER_MAILBOX];	/* 40h */
};
HGHCA_ASSERT_SIZE(hghca_error_buffer, 4096);
HGHCA_ASSERT_OFFSET(hghca_error_buffer, entries, 0x40);

/* ------------------------------------------------------------------ */
/* Counters: QUERY_STATS returns them as __be64 in this order           */

#define HGHCA_COUNTERS(X) \
	X(tx_packets,			"RoCE packets sent") \
	X(rx_packets,			"RoCE packets accepted") \
	X(tx_bytes,			"bytes of RoCE packets sent, without Ethernet FCS") \
	X(rx_bytes,			"bytes of RoCE packets accepted") \
	X(rx_too_short,			"packets dropped: shorter than their headers say") \
	X(rx_bad_header,		"packets dropped: wrong IP, UDP or BTH field") \
	X(rx_bad_icrc,			"packets dropped: wrong ICRC") \
	X(rx_unknown_qp,		"packets dropped: no such QP, or it does not receive") \
	X(rx_bad_address,		"packets dropped: source or destination not the QP's") \
	X(rx_bad_pkey,			"packets dropped: P_Key mismatch") \
	X(rx_bad_qkey,			"packets dropped: Q_Key mismatch") \
	X(rx_no_wqe,			"UD and UC messages dropped: no receive WQE") \
	X(rx_too_long,			"datagrams, frames dropped: longer than the receive WQE") \
	X(duplicate_request,		"duplicate requests received") \
	X(out_of_sequence,		"requests received ahead of the expected PSN") \
	X(rnr_nak_sent,			"RNR NAKs sent") \
	X(rnr_nak_received,		"RNR NAKs received") \
	X(packet_seq_err,		"NAKs for a PSN sequence error received") \
	X(implied_nak_seq_err,		"responses lost, as later ones tell") \
	X(local_ack_timeout_err,	"Local ACK Timeouts") \
	X(retransmitted,		"packets sent again") \
	X(remote_access_nak_sent,	"NAKs sent for remote access errors") \
	X(remote_invalid_nak_sent,	"NAKs sent for invalid requests") \
	X(cqe_error,			"completions in error, flushes not counted") \
	X(cqe_flush,			"completions flushed") \
	X(cq_overrun,			"completions lost to a full CQ") \
	X(eq_overrun,			"events lost to a full EQ") \
	X(db_bad_page,			"doorbells ignored: not in the UAR page of the object") \
	X(db_bad_object,		"doorbells ignored: no such QP, CQ or EQ") \
	X(db_bad_state,			"doorbells ignored: the QP takes none in its state") \
	X(wqe_bad,			"work requests refused as malformed") \
	X(raw_tx_packets,		"frames sent by raw Ethernet QPs") \
	X(raw_rx_packets,		"frames delivered to raw Ethernet QPs") \
	X(raw_rx_dropped,		"frames for raw Ethernet QPs dropped: no receive WQE") \
	X(context_hits,			"context cache hits") \
	X(context_misses,		"context cache misses") \
	X(context_evictions,		"context cache write-backs") \
	X(uc_dropped,			"UC messages dropped: cut short or refused") \
	X(regions_registered,		"REG_MR and BIND_MW executed") \
	X(keys_invalidated,		"keys invalidated by LOCAL_INV or by a peer") \
	X(rx_send_requests,		"SENDs received whole, datagrams among them") \
	X(rx_write_requests,		"WRITEs received whole") \
	X(rx_read_requests,		"READs accepted") \
	X(rx_atomic_requests,		"atomics executed") \
	X(multicast_sent,		"datagrams sent to multicast groups") \
	X(multicast_received,		"datagrams of multicast groups received") \
	X(multicast_copies,		"copies of them handed to QPs") \
	X(multicast_extra_bytes,	"bytes of rx_bytes that are of second and further copies") \
	X(flow_rx_packets,		"those of raw_rx_packets that flow rules have steered") \
	X(flow_rx_no_qp,		"frames of flow rules dropped: the QP does not receive") \
	X(page_faults,			"PAGE_FAULT events sent") \
	X(rx_page_absent,		"datagrams and UC messages dropped: a page was absent") \
	X(np_ecn_marked_roce_packets,	"RoCE packets accepted, marked on the way") \
	X(np_cnp_sent,			"congestion notifications sent") \
	X(rp_cnp_handled,		"congestion notifications that QPs reacted to") \
	X(rp_cnp_ignored,		"congestion notifications dropped: turned off") \
	X(rx_ip_version,		"those of rx_bad_header with another IP version") \
	X(rx_ip_header_length,		"those of rx_bad_header with IPv4 options") \
	X(rx_ip_checksum,		"those of rx_bad_header with a wrong IPv4 checksum") \
	X(rx_udp_length,		"those of rx_bad_header whose UDP and IP lengths differ") \
	X(rx_bth_version,		"those of rx_bad_header with another BTH version") \
	X(rx_ip_length,			"those of rx_too_short whose IP length is out of range") \
	X(rx_short_headers,		"those of rx_too_short without room for BTH and the rest") \
	X(rx_no_qp,			"those of rx_unknown_qp without such a QP") \
	X(rx_qp_state,			"those of rx_unknown_qp whose QP does not receive now") \
	X(rx_wrong_service,		"those of rx_unknown_qp for a QP of another service") \
	X(rx_bad_source,		"those of rx_bad_address from another than the peer") \
	X(rx_bad_destination,		"those of rx_bad_address to another of the port's") \
	X(rx_unknown_opcode,		"requests, datagrams with an unknown opcode") \
	X(rx_opcode_sequence,		"requests refused, UC messages cut: opcode out of turn") \
	X(rx_bad_pad,			"requests refused: padding in the middle of a message") \
	X(rx_bad_length,		"requests, datagrams with a length against the MTU") \
	X(rx_bad_syndrome,		"acknowledgements dropped: reserved AETH syndrome") \
	X(rx_bad_response,		"responses that did not fit their request: the QP failed") \
	X(rx_pause,			"pause frames obeyed, PFC among them") \
	X(tx_pause,			"pause frames sent, PFC among them") \
	X(rx_mac_control,		"MAC control frames dropped: not obeyed, or unknown") \
	X(rx_buffer_overflow,		"frames dropped: their receive buffer was full") \
	X(context_write_errors,		"contexts kept in the device, as ICM did not take them") \
	X(eqe_write_errors,		"events lost: no memory at their EQE") \
	X(catastrophic_errors,		"failures of the device, until it is reset") \
	X(context_read_errors,		"contexts and MTTs that ICM did not give") \
	X(flow_rx_exceeded,		"frames that more flow rules match than may take one")

enum hghca_counter {
#define HGHCA_COUNTER_ENUM(name, text) HGHCA_COUNTER_##name,
	HGHCA_COUNTERS(HGHCA_COUNTER_ENUM)
#undef HGHCA_COUNTER_ENUM
	HGHCA_COUNTER_NUM
};

/* Those of a counter set: QUERY_COUNTER_SET returns them as __be64 in this order. */
#define HGHCA_QP_COUNTERS(X) \
	X(tx_packets) \
	X(rx_packets) \
	X(tx_bytes) \
	X(rx_bytes) \
	X(rx_bad_address) \
	X(rx_bad_pkey) \
	X(rx_bad_qkey) \
	X(rx_no_wqe) \
	X(rx_too_long) \
	X(duplicate_request) \
	X(out_of_sequence) \
	X(rnr_nak_sent) \
	X(rnr_nak_received) \
	X(packet_seq_err) \
	X(implied_nak_seq_err) \
	X(local_ack_timeout_err) \
	X(retransmitted) \
	X(remote_access_nak_sent) \
	X(remote_invalid_nak_sent) \
	X(cqe_error) \
	X(cqe_flush) \
	X(wqe_bad) \
	X(uc_dropped) \
	X(rx_send_requests) \
	X(rx_write_requests) \
	X(rx_read_requests) \
	X(rx_atomic_requests)

enum hghca_qp_counter {
#define HGHCA_COUNTER_ENUM(name) HGHCA_QP_COUNTER_##name,
	HGHCA_QP_COUNTERS(HGHCA_COUNTER_ENUM)
#undef HGHCA_COUNTER_ENUM
	HGHCA_QP_COUNTER_NUM
};

#endif /* HGHCA_INTERFACE_COUNTERS_H */
