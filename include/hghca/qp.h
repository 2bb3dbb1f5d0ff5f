/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: states, services and attributes of QPs;
 * docs/reference/hardware-interface.rst, 4.9.
 */
#ifndef HGHCA_INTERFACE_QP_H
#define HGHCA_INTERFACE_QP_H

enum hghca_qp_state {
	HGHCA_QP_STATE_RST	= 0,
	HGHCA_QP_STATE_INIT	= 1,
	HGHCA_QP_STATE_RTR	= 2,
	HGHCA_QP_STATE_RTS	= 3,
	HGHCA_QP_STATE_SQE	= 4,
	HGHCA_QP_STATE_SQD	= 5,
	HGHCA_QP_STATE_ERR	= 6,
};

/* Sets of states. Bit n is state n. */
enum hghca_qp_states {
	HGHCA_QP_STATES_RST	= 1 << HGHCA_QP_STATE_RST,
	HGHCA_QP_STATES_INIT	= 1 << HGHCA_QP_STATE_INIT,
	HGHCA_QP_STATES_RTR	= 1 << HGHCA_QP_STATE_RTR,
	HGHCA_QP_STATES_RTS	= 1 << HGHCA_QP_STATE_RTS,
	HGHCA_QP_STATES_SQE	= 1 << HGHCA_QP_STATE_SQE,
	HGHCA_QP_STATES_SQD	= 1 << HGHCA_QP_STATE_SQD,
	HGHCA_QP_STATES_ANY	= 0x7f,
	HGHCA_QP_STATES_NOT_RST	= HGHCA_QP_STATES_ANY & ~HGHCA_QP_STATES_RST,
};

enum hghca_qp_st {
	HGHCA_QP_ST_RC		= 0,
	HGHCA_QP_ST_UC		= 1,
	HGHCA_QP_ST_RD		= 2,
	HGHCA_QP_ST_UD		= 3,
	HGHCA_QP_ST_XRC		= 6,	/* extension */
	HGHCA_QP_ST_RAW		= 7,	/* extension: raw Ethernet */
};

/* HGHCA_QP_ATTRIBUTES(X) - the bits of opt_param_mask, table A1-3, as X(name, bit) */
#define HGHCA_QP_ATTRIBUTES(X) \
	X(STATE,               0) \
	X(CUR_STATE,           1) \
	X(EN_SQD_ASYNC_NOTIFY, 2) \
	X(ACCESS_FLAGS,        3) \
	X(PKEY_INDEX,          4) \
	X(PORT,                5) \
	X(QKEY,                6) \
	X(AV,                  7) \
	X(PATH_MTU,            8) \
	X(TIMEOUT,             9) \
	X(RETRY_CNT,           10) \
	X(RNR_RETRY,           11) \
	X(RQ_PSN,              12) \
	X(MAX_QP_RD_ATOMIC,    13) \
	X(ALT_PATH,            14) \
	X(MIN_RNR_TIMER,       15) \
	X(SQ_PSN,              16) \
	X(MAX_DEST_RD_ATOMIC,  17) \
	X(PATH_MIG_STATE,      18) \
	X(CAP,                 19) \
	X(DEST_QPN,            20)

enum hghca_qp_attr {
#define HGHCA_QP_ATTR_ENUM(name, bit) HGHCA_QP_ATTR_##name = 1 << (bit),
	HGHCA_QP_ATTRIBUTES(HGHCA_QP_ATTR_ENUM)
#undef HGHCA_QP_ATTR_ENUM
};

/*
 * HGHCA_QP_TRANSITIONS(X) - every transition, as X(name, from, to)
 *
 * HGHCA_CMD_name_QPEE moves a QP from a state of HGHCA_QP_STATES_from to HGHCA_QP_STATE_to.
 */
#define HGHCA_QP_TRANSITIONS(X) \
	X(RST2INIT,  RST,     INIT) \
	X(INIT2INIT, INIT,    INIT) \
	X(INIT2RTR,  INIT,    RTR) \
	X(RTR2RTS,   RTR,     RTS) \
	X(RTS2RTS,   RTS,     RTS) \
	X(SQERR2RTS, SQE,     RTS) \
	X(2ERR,      NOT_RST, ERR) \
	X(RTS2SQD,   RTS,     SQD) \
	X(SQD2SQD,   SQD,     SQD) \
	X(SQD2RTS,   SQD,     RTS) \
	X(ERR2RST,   ANY,     RST)

/*
 * HGHCA_QP_RULES(X, A) - required and optional attributes of each transition, table A1-2, as
 * X(transition, service, required, optional)
 *
 * required and optional are masks of A(name). A transition and service without a row have no
 * attributes.
 */
#define HGHCA_QP_RULES(X, A) \
	X(RST2INIT, RC, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0) \
	X(RST2INIT, UC, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0) \
	X(RST2INIT, UD, A(PKEY_INDEX) | A(PORT) | A(QKEY), 0) \
	X(RST2INIT, XRC, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0) \
	X(RST2INIT, RAW, A(PORT), A(PKEY_INDEX) | A(QKEY)) \
	X(INIT2INIT, RC, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0) \
	X(INIT2INIT, UC, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0) \
	X(INIT2INIT, UD, A(PKEY_INDEX) | A(PORT) | A(QKEY), 0) \
	X(INIT2INIT, XRC, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0) \
	X(INIT2INIT, RAW, A(PORT), A(PKEY_INDEX) | A(QKEY)) \
	X(INIT2RTR, RC, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) | A(MIN_RNR_TIMER), \
	  A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(MAX_DEST_RD_ATOMIC)) \
	X(INIT2RTR, UC, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN), \
	  A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX)) \
	X(INIT2RTR, UD, 0, A(PKEY_INDEX) | A(QKEY)) \
	X(INIT2RTR, XRC, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN), \
	  A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(MIN_RNR_TIMER) | \
	  A(MAX_DEST_RD_ATOMIC)) \
	X(RTR2RTS, RC, A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN), \
	  A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) | \
	  A(PATH_MIG_STATE) | A(MAX_QP_RD_ATOMIC)) \
	X(RTR2RTS, UC, A(SQ_PSN), \
	  A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE)) \
	X(RTR2RTS, UD, A(SQ_PSN), A(CUR_STATE) | A(QKEY)) \
	X(RTR2RTS, XRC, A(TIMEOUT) | A(SQ_PSN), \
	  A(RETRY_CNT) | A(RNR_RETRY) | A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | \
	  A(MIN_RNR_TIMER) | A(PATH_MIG_STATE) | A(MAX_QP_RD_ATOMIC)) \
	X(RTR2RTS, RAW, 0, A(SQ_PSN)) \
	X(RTS2RTS, RC, 0, \
	  A(CUR_STATE) | A(ACCESS_FLAGS) | A(ALT_PATH) | A(PATH_MIG_STATE) | \
	  A(MIN_RNR_TIMER)) \
	X(RTS2RTS, UC, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(ALT_PATH) | A(PATH_MIG_STATE)) \
	X(RTS2RTS, UD, 0, A(CUR_STATE) | A(QKEY)) \
	X(RTS2RTS, XRC, 0, \
	  A(CUR_STATE) | A(ACCESS_FLAGS) | A(ALT_PATH) | A(PATH_MIG_STATE) | \
	  A(MIN_RNR_TIMER)) \
	X(RTS2SQD, RC, 0, A(EN_SQD_ASYNC_NOTIFY)) \
	X(RTS2SQD, UC, 0, A(EN_SQD_ASYNC_NOTIFY)) \
	X(RTS2SQD, UD, 0, A(EN_SQD_ASYNC_NOTIFY)) \
	X(RTS2SQD, XRC, 0, A(EN_SQD_ASYNC_NOTIFY)) \
	X(RTS2SQD, RAW, 0, A(EN_SQD_ASYNC_NOTIFY)) \
	X(SQD2RTS, RC, 0, \
	  A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) | \
	  A(PATH_MIG_STATE)) \
	X(SQD2RTS, UC, 0, A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE)) \
	X(SQD2RTS, UD, 0, A(CUR_STATE) | A(QKEY)) \
	X(SQD2RTS, XRC, 0, \
	  A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) | \
	  A(PATH_MIG_STATE)) \
	X(SQD2SQD, RC, 0, \
	  A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(ALT_PATH) | \
	  A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(MIN_RNR_TIMER) | A(PATH_MIG_STATE) | \
	  A(MAX_QP_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC)) \
	X(SQD2SQD, UC, 0, \
	  A(AV) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(PATH_MIG_STATE)) \
	X(SQD2SQD, UD, 0, A(PKEY_INDEX) | A(QKEY)) \
	X(SQD2SQD, XRC, 0, \
	  A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(ALT_PATH) | \
	  A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(MIN_RNR_TIMER) | A(PATH_MIG_STATE) | \
	  A(MAX_QP_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC)) \
	X(SQERR2RTS, UC, 0, A(CUR_STATE) | A(ACCESS_FLAGS)) \
	X(SQERR2RTS, UD, 0, A(CUR_STATE) | A(QKEY))

#define HGHCA_QP_ATTR_OF(name) HGHCA_QP_ATTR_##name

#endif /* HGHCA_INTERFACE_QP_H */
