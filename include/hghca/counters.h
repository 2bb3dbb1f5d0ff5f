/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: drop reasons and counters; docs/reference/hardware-interface.rst, 4 and 9. */
#ifndef HGHCA_INTERFACE_COUNTERS_H
#define HGHCA_INTERFACE_COUNTERS_H

#include <hghca/types.h>

/* ------------------------------------------------------------------ */
/* Reasons why a packet is dropped or refused                           */

/*
 * HGHCA_DROPS(X) - every reason, as X(name, number, description)
 *
 * Numbers up to 31 are the bits of the error syndrome in the LogiCORE ETRNIC guide, table 2-3.
 * Numbers from 32 on are defined here.
 */
#define HGHCA_DROPS(X) \
	X(IP_VERSION,		2,	"IP version does not match the Ethernet type") \
	X(IP_HEADER_LENGTH,	3,	"length of the IPv4 header is not 20 bytes") \
	X(DESTINATION,		8,	"destination address is not the QP's") \
	X(IP_CHECKSUM,		9,	"wrong IPv4 header checksum") \
	X(IP_LENGTH,		10,	"IP length exceeds the frame or is below the headers") \
	X(UDP_LENGTH,		12,	"UDP length does not match the IP length") \
	X(BTH_VERSION,		13,	"BTH version is not 0") \
	X(NO_QP,		14,	"no such QP") \
	X(QP_STATE,		15,	"QP does not receive in its current state") \
	X(SEQUENCE,		16,	"opcode is invalid after the previous one") \
	X(OPCODE,		17,	"unknown opcode") \
	X(PAD,			18,	"padding in a packet that is not the last of its message") \
	X(LENGTH,		19,	"payload length invalid for the path MTU and the opcode") \
	X(RNR,			20,	"no receive WQE") \
	X(PSN,			21,	"PSN is ahead of the expected PSN") \
	X(SYNDROME,		22,	"reserved AETH syndrome") \
	X(RESPONSE,		23,	"response does not match the request") \
	X(SOURCE,		27,	"source address is not the peer's") \
	X(ICRC,			30,	"wrong ICRC") \
	X(HEADERS,		32,	"packet is too short for the headers of its opcode") \
	X(SERVICE,		33,	"opcode of another transport service than the QP's") \
	X(PKEY,			34,	"P_Key mismatch") \
	X(QKEY,			35,	"Q_Key mismatch") \
	X(TOO_LONG,		36,	"message is longer than the receive WQE") \
	X(REQUEST,		37,	"request is not enabled for the QP, or exceeds its limit") \
	X(ACCESS,		38,	"remote access error") \
	X(OPERATION,		39,	"receive WQE, or memory that it refers to, is invalid") \
	X(CNP,			40,	"CNP without BECN, or of a wrong length")

enum hghca_drop {
	HGHCA_DROP_NONE,
#define HGHCA_DROP_ENUM(name, value, text) HGHCA_DROP_##name = value,
	HGHCA_DROPS(HGHCA_DROP_ENUM)
#undef HGHCA_DROP_ENUM
};

/* Bytes of Ethernet with a VLAN tag, IPv6, UDP, BTH and the longest extension headers. */
#define HGHCA_ERROR_HEADER_MAX		120

struct hghca_packet_error {
	__be64	time;			/* 00h: value of the clock (5.5) */
	__be32	length;			/* 08h: bytes of the frame */
	__be32	qpn;			/* 0Ch: destination QP of the BTH */
	__u8	why;			/* 10h: enum hghca_drop */
	__u8	header_len;		/* 11h: valid bytes of header */
	__u8	rsvd12[6];
	__u8	header[HGHCA_ERROR_HEADER_MAX];	/* 18h */
};
HGHCA_ASSERT_SIZE(hghca_packet_error, 144);
HGHCA_ASSERT_OFFSET(hghca_packet_error, header, 0x18);

#define HGHCA_ERRORS_PER_MAILBOX	28

/* READ_ERROR_BUFFER output, extension. Packets are numbered since reset, from 0 on. */
struct hghca_error_buffer {
	__be64	total;			/* 00h: number of the next packet */
	__be64	first;			/* 08h: number of entries[0] */
	__be32	count;			/* 10h: number of valid entries */
	__u8	rsvd14[44];
	struct hghca_packet_error entries[HGHCA_ERRORS_PER_MAILBOX];	/* 40h */
};
HGHCA_ASSERT_SIZE(hghca_error_buffer, 4096);
HGHCA_ASSERT_OFFSET(hghca_error_buffer, entries, 0x40);

/* ------------------------------------------------------------------ */
/* Counters                                                             */

/*
 * HGHCA_COUNTERS(X) - every counter, as X(name, description)
 *
 * QUERY_STATS returns them as __be64 in this order.
 */
#define HGHCA_COUNTERS(X) \
	X(tx_packets,			"RoCE packets sent") \
	X(rx_packets,			"RoCE packets accepted") \
	X(tx_bytes,			"bytes of RoCE packets sent, without Ethernet FCS") \
	X(rx_bytes,			"bytes of RoCE packets accepted") \
	X(rx_too_short,			"packets dropped: shorter than their headers require") \
	X(rx_bad_header,		"packets dropped: wrong IP, UDP or BTH field") \
	X(rx_bad_icrc,			"packets dropped: wrong ICRC") \
	X(rx_unknown_qp,		"packets dropped: no such QP, or it does not receive") \
	X(rx_bad_address,		"packets dropped: source or destination is not the QP's") \
	X(rx_bad_pkey,			"packets dropped: P_Key mismatch") \
	X(rx_bad_qkey,			"packets dropped: Q_Key mismatch") \
	X(rx_no_wqe,			"UD and UC messages dropped: no receive WQE") \
	X(rx_too_long,			"datagrams, frames dropped: longer than the receive WQE") \
	X(duplicate_request,		"duplicate requests received") \
	X(out_of_sequence,		"requests received ahead of the expected PSN") \
	X(rnr_nak_sent,			"RNR NAKs sent") \
	X(rnr_nak_received,		"RNR NAKs received") \
	X(packet_seq_err,		"NAKs for a PSN sequence error received") \
	X(implied_nak_seq_err,		"lost responses, detected when a later response arrived") \
	X(local_ack_timeout_err,	"Local ACK Timeouts") \
	X(retransmitted,		"packets retransmitted") \
	X(remote_access_nak_sent,	"NAKs sent for remote access errors") \
	X(remote_invalid_nak_sent,	"NAKs sent for invalid requests") \
	X(cqe_error,			"completions in error, without flushed ones") \
	X(cqe_flush,			"completions flushed") \
	X(cq_overrun,			"completions lost: the CQ was full") \
	X(eq_overrun,			"events lost: the EQ was full") \
	X(db_bad_page,			"doorbells ignored: not in the UAR page of the object") \
	X(db_bad_object,		"doorbells ignored: no such QP, CQ or EQ") \
	X(db_bad_state,			"doorbells ignored: invalid in the state of the QP") \
	X(wqe_bad,			"work requests refused as malformed") \
	X(raw_tx_packets,		"frames sent by raw Ethernet QPs") \
	X(raw_rx_packets,		"frames delivered to raw Ethernet QPs") \
	X(raw_rx_dropped,		"frames for raw Ethernet QPs dropped: no receive WQE") \
	X(context_hits,			"context cache hits") \
	X(context_misses,		"context cache misses") \
	X(context_evictions,		"context cache write-backs") \
	X(uc_dropped,			"UC messages dropped: incomplete or refused") \
	X(regions_registered,		"REG_MR and BIND_MW executed") \
	X(keys_invalidated,		"keys invalidated by LOCAL_INV or by a peer") \
	X(rx_send_requests,		"SENDs received completely, including datagrams") \
	X(rx_write_requests,		"WRITEs received completely") \
	X(rx_read_requests,		"READs accepted") \
	X(rx_atomic_requests,		"atomics executed") \
	X(multicast_sent,		"datagrams sent to multicast groups") \
	X(multicast_received,		"datagrams of multicast groups received") \
	X(multicast_copies,		"copies of multicast datagrams delivered to QPs") \
	X(multicast_extra_bytes,	"part of rx_bytes: of the second and later copies") \
	X(flow_rx_packets,		"part of raw_rx_packets: frames steered by flow rules") \
	X(flow_rx_no_qp,		"frames of flow rules dropped: the QP does not receive") \
	X(page_faults,			"PAGE_FAULT events raised") \
	X(rx_page_absent,		"datagrams and UC messages dropped: a page was absent") \
	X(np_ecn_marked_roce_packets,	"RoCE packets accepted with the ECN mark CE") \
	X(np_cnp_sent,			"congestion notifications sent") \
	X(rp_cnp_handled,		"congestion notifications that QPs reacted to") \
	X(rp_cnp_ignored,		"congestion notifications dropped: reaction is disabled") \
	X(rx_ip_version,		"part of rx_bad_header: wrong IP version") \
	X(rx_ip_header_length,		"part of rx_bad_header: IPv4 header with options") \
	X(rx_ip_checksum,		"part of rx_bad_header: wrong IPv4 checksum") \
	X(rx_udp_length,		"part of rx_bad_header: UDP and IP lengths differ") \
	X(rx_bth_version,		"part of rx_bad_header: BTH version is not 0") \
	X(rx_ip_length,			"part of rx_too_short: IP length is out of range") \
	X(rx_short_headers,		"part of rx_too_short: no room for BTH and later headers") \
	X(rx_no_qp,			"part of rx_unknown_qp: no such QP") \
	X(rx_qp_state,			"part of rx_unknown_qp: QP does not receive in its state") \
	X(rx_wrong_service,		"part of rx_unknown_qp: QP of another transport service") \
	X(rx_bad_source,		"part of rx_bad_address: source is not the peer") \
	X(rx_bad_destination,		"part of rx_bad_address: another address of the port") \
	X(rx_unknown_opcode,		"requests and datagrams with an unknown opcode") \
	X(rx_opcode_sequence,		"requests, UC messages refused: opcode out of sequence") \
	X(rx_bad_pad,			"requests refused: padding not in the last packet") \
	X(rx_bad_length,		"requests, datagrams with a length invalid for the MTU") \
	X(rx_bad_syndrome,		"acknowledgements dropped: reserved AETH syndrome") \
	X(rx_bad_response,		"responses that do not match the request: the QP failed") \
	X(rx_pause,			"pause frames obeyed, including PFC") \
	X(tx_pause,			"pause frames sent, including PFC") \
	X(rx_mac_control,		"MAC control frames dropped: disabled or unknown") \
	X(rx_buffer_overflow,		"frames dropped: the receive buffer was full") \
	X(context_write_errors,		"contexts kept in the device: writing them to ICM failed") \
	X(eqe_write_errors,		"events lost: writing the EQE failed") \
	X(catastrophic_errors,		"fatal errors of the device, until it is reset") \
	X(context_read_errors,		"contexts and MTTs that could not be read from ICM") \
	X(flow_rx_exceeded,		"frames that match more flow rules than get a copy") \
	X(cmdq_ignored,			"writes and entries of the command queue without effect")

enum hghca_counter {
#define HGHCA_COUNTER_ENUM(name, text) HGHCA_COUNTER_##name,
	HGHCA_COUNTERS(HGHCA_COUNTER_ENUM)
#undef HGHCA_COUNTER_ENUM
	HGHCA_COUNTER_NUM
};

/* Counters of a counter set. QUERY_COUNTER_SET returns them as __be64 in this order. */
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
