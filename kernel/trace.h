/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA driver: tracepoints.
 *
 *	cmd_post, cmd_done	commands: posted, completed
 *	ring_sq, ring_cq, ring_eq	doorbells of the kernel
 *	cqe			completions that the kernel polls, including the net device
 *	event			EQEs of every type
 *	fail			the device is given up
 *
 * hghca.h includes this file.  The structures are complete where trace.c expands it.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hghca

#if !defined(HGHCA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HGHCA_TRACE_H

#include <linux/tracepoint.h>

#ifndef HGHCA_TRACE_NAME_LEN
#define HGHCA_TRACE_NAME_LEN	24	/* name on the bus */
#define HGHCA_TRACE_WHY_LEN	48

struct hghca_cmd;
struct hghca_cqe;
struct hghca_dev;
struct hghca_eq;
struct hghca_eqe;
#endif

/* The last entry terminates the list. */
#ifndef hghca_trace_cmd
#define HGHCA_TRACE_CMD(name, function, op, ...) { op, #name },
#define hghca_trace_cmd(op) \
	__print_symbolic(op, HGHCA_COMMANDS(HGHCA_TRACE_CMD) { 0x1000, "" })
#endif

TRACE_EVENT(hghca_cmd_post,
	TP_PROTO(const struct hghca_dev *hdev, const struct hghca_cmd *cmd, bool by_event),
	TP_ARGS(hdev, cmd, by_event),
	TP_STRUCT__entry(
		__array(char, dev, HGHCA_TRACE_NAME_LEN)
		__field(u16, op)
		__field(u16, token)
		__field(u32, in_modifier)
		__field(u8, op_modifier)
		__field(bool, by_event)
	),
	TP_fast_assign(
		strscpy(__entry->dev, hdev->bus.name, HGHCA_TRACE_NAME_LEN);
		__entry->op = cmd->op;
		__entry->token = cmd->token;
		__entry->in_modifier = cmd->in_modifier;
		__entry->op_modifier = cmd->op_modifier;
		__entry->by_event = by_event;
	),
	TP_printk("%s command=%s op=0x%x op_modifier=%u in_modifier=0x%x token=0x%x %s",
		  __entry->dev, hghca_trace_cmd(__entry->op), __entry->op,
		  __entry->op_modifier, __entry->in_modifier,
		  __entry->token, __entry->by_event ? "event" : "poll")
);

/* @status is valid if @err is 0; @start: 0 if the start was not measured */
TRACE_EVENT(hghca_cmd_done,
	TP_PROTO(const struct hghca_dev *hdev, const struct hghca_cmd *cmd, u8 status, int err,
		 u64 start),
	TP_ARGS(hdev, cmd, status, err, start),
	TP_STRUCT__entry(
		__array(char, dev, HGHCA_TRACE_NAME_LEN)
		__field(u64, latency_ns)
		__field(u16, op)
		__field(u16, token)
		__field(u32, in_modifier)
		__field(int, err)
		__field(u8, op_modifier)
		__field(u8, status)
		__field(bool, recorded)
	),
	TP_fast_assign(
		strscpy(__entry->dev, hdev->bus.name, HGHCA_TRACE_NAME_LEN);
		__entry->latency_ns = start ? ktime_get_ns() - start : 0;
		__entry->op = cmd->op;
		__entry->token = cmd->token;
		__entry->in_modifier = cmd->in_modifier;
		__entry->err = err;
		__entry->op_modifier = cmd->op_modifier;
		__entry->status = status;
		__entry->recorded = cmd->recorded;
	),
	TP_printk("%s command=%s op=0x%x op_modifier=%u in_modifier=0x%x token=0x%x status=0x%x err=%d latency_ns=%llu recorded=%d",
		  __entry->dev, hghca_trace_cmd(__entry->op), __entry->op,
		  __entry->op_modifier, __entry->in_modifier,
		  __entry->token, __entry->status, __entry->err, __entry->latency_ns,
		  __entry->recorded)
);

/* @doorbell: both words */
TRACE_EVENT(hghca_ring_sq,
	TP_PROTO(const struct hghca_dev *hdev, u64 doorbell),
	TP_ARGS(hdev, doorbell),
	TP_STRUCT__entry(
		__array(char, dev, HGHCA_TRACE_NAME_LEN)
		__field(u32, qpn)
		__field(u16, head)
		__field(u8, count)
		__field(u8, opcode)
		__field(u8, size0)
		__field(bool, fence)
	),
	TP_fast_assign(
		u32 low = lower_32_bits(doorbell);
		u32 high = upper_32_bits(doorbell);

		strscpy(__entry->dev, hdev->bus.name, HGHCA_TRACE_NAME_LEN);
		__entry->qpn = FIELD_GET(HGHCA_SQ_DB_QPN_MASK, high);
		__entry->head = FIELD_GET(HGHCA_SQ_DB_HEAD_MASK, low);
		__entry->count = FIELD_GET(HGHCA_SQ_DB_COUNT_MASK, low);
		__entry->opcode = FIELD_GET(HGHCA_SQ_DB_OPCODE_MASK, low);
		__entry->size0 = FIELD_GET(HGHCA_SQ_DB_SIZE0_MASK, high);
		__entry->fence = low & HGHCA_SQ_DB_FENCE;
	),
	TP_printk("%s qpn=0x%x head=%u count=%u opcode=0x%x size0=%u%s",
		  __entry->dev, __entry->qpn, __entry->head, __entry->count, __entry->opcode,
		  __entry->size0, __entry->fence ? " fence" : "")
);

DECLARE_EVENT_CLASS(hghca_ring_index,
	TP_PROTO(const struct hghca_dev *hdev, u32 number, u32 index, u32 command),
	TP_ARGS(hdev, number, index, command),
	TP_STRUCT__entry(
		__array(char, dev, HGHCA_TRACE_NAME_LEN)
		__field(u32, number)
		__field(u32, index)
		__field(u32, command)
	),
	TP_fast_assign(
		strscpy(__entry->dev, hdev->bus.name, HGHCA_TRACE_NAME_LEN);
		__entry->number = number;
		__entry->index = index;
		__entry->command = command;
	),
	TP_printk("%s number=0x%x index=%u command=%u",
		  __entry->dev, __entry->number, __entry->index, __entry->command)
);

DEFINE_EVENT(hghca_ring_index, hghca_ring_cq,
	TP_PROTO(const struct hghca_dev *hdev, u32 number, u32 index, u32 command),
	TP_ARGS(hdev, number, index, command)
);

DEFINE_EVENT(hghca_ring_index, hghca_ring_eq,
	TP_PROTO(const struct hghca_dev *hdev, u32 number, u32 index, u32 command),
	TP_ARGS(hdev, number, index, command)
);

/* @index: of the entry, free-running; syndrome: 0 unless the opcode is that of an error */
TRACE_EVENT(hghca_cqe,
	TP_PROTO(const struct hghca_dev *hdev, u32 cqn, u32 index, const struct hghca_cqe *cqe),
	TP_ARGS(hdev, cqn, index, cqe),
	TP_STRUCT__entry(
		__array(char, dev, HGHCA_TRACE_NAME_LEN)
		__field(u32, cqn)
		__field(u32, index)
		__field(u32, qpn)
		__field(u32, wqe)
		__field(u32, byte_cnt)
		__field(u8, opcode)
		__field(u8, is_send)
		__field(u8, syndrome)
	),
	TP_fast_assign(
		bool bad = cqe->opcode == HGHCA_OPCODE_INVALID;

		strscpy(__entry->dev, hdev->bus.name, HGHCA_TRACE_NAME_LEN);
		__entry->cqn = cqn;
		__entry->index = index;
		__entry->qpn = le32_to_cpu(cqe->my_qpn);
		__entry->wqe = le32_to_cpu(cqe->wqe);
		__entry->byte_cnt = bad ? 0 : le32_to_cpu(cqe->byte_cnt);
		__entry->opcode = cqe->opcode;
		__entry->is_send = cqe->is_send;
		__entry->syndrome = bad ? ((const struct hghca_err_cqe *)cqe)->syndrome : 0;
	),
	TP_printk("%s cqn=0x%x index=%u qpn=0x%x %s wqe=0x%x opcode=0x%x byte_cnt=%u syndrome=0x%x",
		  __entry->dev, __entry->cqn, __entry->index, __entry->qpn,
		  __entry->is_send ? "send" : "recv", __entry->wqe, __entry->opcode,
		  __entry->byte_cnt, __entry->syndrome)
);

/* data: the first word of the event data, usually the number of an object */
#ifndef hghca_trace_event_type
#define HGHCA_TRACE_EVENT_TYPE(name, value) { value, #name },
#define hghca_trace_event_type(type) \
	__print_symbolic(type, HGHCA_EVENTS(HGHCA_TRACE_EVENT_TYPE) { 0x100, "" })
#endif

TRACE_EVENT(hghca_event,
	TP_PROTO(const struct hghca_eq *eq, u32 index, const struct hghca_eqe *eqe),
	TP_ARGS(eq, index, eqe),
	TP_STRUCT__entry(
		__array(char, dev, HGHCA_TRACE_NAME_LEN)
		__field(u32, eqn)
		__field(u32, index)
		__field(u32, data)
		__field(u8, type)
		__field(u8, subtype)
	),
	TP_fast_assign(
		strscpy(__entry->dev, eq->hdev->bus.name, HGHCA_TRACE_NAME_LEN);
		__entry->eqn = eq->eqn;
		__entry->index = index;
		__entry->data = be32_to_cpu(eqe->event.raw[0]);
		__entry->type = eqe->type;
		__entry->subtype = eqe->subtype;
	),
	TP_printk("%s eqn=%u index=%u type=%s subtype=%u data=0x%x",
		  __entry->dev, __entry->eqn, __entry->index,
		  hghca_trace_event_type(__entry->type), __entry->subtype, __entry->data)
);

TRACE_EVENT(hghca_fail,
	TP_PROTO(const struct hghca_dev *hdev, const char *why),
	TP_ARGS(hdev, why),
	TP_STRUCT__entry(
		__array(char, dev, HGHCA_TRACE_NAME_LEN)
		__array(char, why, HGHCA_TRACE_WHY_LEN)
	),
	TP_fast_assign(
		strscpy(__entry->dev, hdev->bus.name, HGHCA_TRACE_NAME_LEN);
		strscpy(__entry->why, why, HGHCA_TRACE_WHY_LEN);
	),
	TP_printk("%s %s", __entry->dev, __entry->why)
);

#endif /* HGHCA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
