// SPDX-License-Identifier: GPL-2.0-or-later
// QP transitions, QUERY_QP, CONF_SPECIAL_QP (interface document, 4.9, 4.10).
//
// The tables here are written from the document, in its own words.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "fixture.h"

namespace hghca::test::qp_transition_test {
namespace {

const std::map<std::string, unsigned> kAttributeBits = {
    {"STATE", 0},         {"CUR_STATE", 1},
    {"EN_SQD_ASYNC_NOTIFY", 2}, {"ACCESS_FLAGS", 3},
    {"PKEY_INDEX", 4},    {"PORT", 5},
    {"QKEY", 6},          {"AV", 7},
    {"PATH_MTU", 8},      {"TIMEOUT", 9},
    {"RETRY_CNT", 10},    {"RNR_RETRY", 11},
    {"RQ_PSN", 12},       {"MAX_QP_RD_ATOMIC", 13},
    {"ALT_PATH", 14},     {"MIN_RNR_TIMER", 15},
    {"SQ_PSN", 16},       {"MAX_DEST_RD_ATOMIC", 17},
    {"PATH_MIG_STATE", 18}, {"CAP", 19},
    {"DEST_QPN", 20},
};

uint32_t mask_of(const std::string &words)
{
    std::istringstream in(words);
    std::string word;
    uint32_t mask = 0;
    while (in >> word)
        mask |= 1u << kAttributeBits.at(word);
    return mask;
}

enum State { RST, INIT, RTR, RTS, SQE, SQD, ERR };

struct Command {
    const char *name;
    uint32_t op;
    std::set<State> from;
    State to;
};

const std::set<State> kAny = {RST, INIT, RTR, RTS, SQE, SQD, ERR};
const std::set<State> kAnyButRst = {INIT, RTR, RTS, SQE, SQD, ERR};

const Command kCommands[] = {
    {"RST2INIT", 0x19, {RST}, INIT},  {"INIT2INIT", 0x2d, {INIT}, INIT}, {"INIT2RTR", 0x1a, {INIT}, RTR},
    {"RTR2RTS", 0x1b, {RTR}, RTS},    {"RTS2RTS", 0x1c, {RTS}, RTS},     {"SQERR2RTS", 0x1d, {SQE}, RTS},
    {"2ERR", 0x1e, kAnyButRst, ERR},  {"RTS2SQD", 0x1f, {RTS}, SQD},     {"SQD2SQD", 0x38, {SQD}, SQD},
    {"SQD2RTS", 0x20, {SQD}, RTS},    {"ERR2RST", 0x21, kAny, RST},
};

struct Attributes {
    std::string required, optional;
};

// Required and optional of a command for UD, UC, RC, and RAW, which table A1-2 does not have.
struct Row {
    const char *command;
    Attributes ud, uc, rc, raw;
};

const Row kRows[] = {
    {"RST2INIT",
     {"PKEY_INDEX PORT QKEY", ""},
     {"PKEY_INDEX PORT ACCESS_FLAGS", ""},
     {"PKEY_INDEX PORT ACCESS_FLAGS", ""},
     {"PORT", "PKEY_INDEX QKEY"}},
    {"INIT2INIT",
     {"PKEY_INDEX PORT QKEY", ""},
     {"PKEY_INDEX PORT ACCESS_FLAGS", ""},
     {"PKEY_INDEX PORT ACCESS_FLAGS", ""},
     {"PORT", "PKEY_INDEX QKEY"}},
    {"INIT2RTR",
     {"", "PKEY_INDEX QKEY"},
     {"AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
     {"AV PATH_MTU DEST_QPN RQ_PSN MIN_RNR_TIMER", "ALT_PATH ACCESS_FLAGS PKEY_INDEX MAX_DEST_RD_ATOMIC"},
     {"", ""}},
    {"RTR2RTS",
     {"SQ_PSN", "CUR_STATE QKEY"},
     {"SQ_PSN", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
     {"TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN",
      "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE MAX_QP_RD_ATOMIC"},
     {"", "SQ_PSN"}},
    {"RTS2RTS",
     {"", "CUR_STATE QKEY"},
     {"", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE"},
     {"", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER"},
     {"", ""}},
    {"RTS2SQD",
     {"", "EN_SQD_ASYNC_NOTIFY"},
     {"", "EN_SQD_ASYNC_NOTIFY"},
     {"", "EN_SQD_ASYNC_NOTIFY"},
     {"", "EN_SQD_ASYNC_NOTIFY"}},
    {"SQD2RTS",
     {"", "CUR_STATE QKEY"},
     {"", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
     {"", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
     {"", ""}},
    {"SQD2SQD",
     {"", "PKEY_INDEX QKEY"},
     {"", "AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
     {"",
      "PORT AV TIMEOUT RETRY_CNT RNR_RETRY ALT_PATH ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE "
      "MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC"},
     {"", ""}},
    {"SQERR2RTS", {"", "CUR_STATE QKEY"}, {"", "CUR_STATE ACCESS_FLAGS"}, {"", ""}, {"", ""}},
    {"2ERR", {"", ""}, {"", ""}, {"", ""}, {"", ""}},
    {"ERR2RST", {"", ""}, {"", ""}, {"", ""}, {"", ""}},
};

constexpr uint8_t kServices[] = {HGHCA_QP_ST_UD, HGHCA_QP_ST_UC, HGHCA_QP_ST_RC, HGHCA_QP_ST_RAW};

const Attributes &attributes(const Row &row, uint8_t service)
{
    switch (service) {
    case HGHCA_QP_ST_UD:
        return row.ud;
    case HGHCA_QP_ST_UC:
        return row.uc;
    case HGHCA_QP_ST_RC:
        return row.rc;
    default:
        return row.raw;
    }
}

class QpTest : public DeviceTest {
protected:
    QpTest()
    {
        driver.start();
        cq = driver.create_cq(4);
        qp = driver.new_qp();
    }

    uint8_t transition(uint32_t op, const hghca_qpc &c) { return driver.modify(op, qp.qpn, c); }
    // A mailbox in which every attribute is valid.
    hghca_qpc valid(uint8_t service, uint32_t mask)
    {
        hghca_qpc c = driver.init_qpc(qp, service, cq, cq);
        c.flags |= be32(uint32_t(driver.state(qp.qpn)) << 28);
        c.opt_param_mask = be32(mask);
        c.mtu_msgmax = 3 << 5 | 30;
        c.remote_qpn = be32(0x123456);
        c.rnr_nextrecvpsn = be32(12u << 24 | 0xabcdef);
        c.next_send_psn = be32(0xfedcba);
        c.ackto = 14;
        c.rnr_retry = 6;
        c.limits = be32(8u << 24 | 4u << 16 | 1u << 15 | 5u << 8 | HGHCA_ACCESS_REMOTE_READ);
        return c;
    }
    // Brings the QP to `state` by commands, and into SQE directly: a command cannot.
    void bring(uint8_t service, State state)
    {
        ASSERT_EQ(driver.to_reset(qp.qpn), 0);
        auto step = [&](const char *name) {
            for (const Row &row : kRows)
                for (const Command &c : kCommands) {
                    if (std::string(row.command) != name || std::string(c.name) != name)
                        continue;
                    ASSERT_EQ(transition(c.op, valid(service, mask_of(attributes(row, service).required))), 0)
                        << name << " " << int(service);
                }
        };
        if (state >= INIT)
            step("RST2INIT");
        if (state == ERR) {
            step("2ERR");
            return;
        }
        if (state >= RTR)
            step("INIT2RTR");
        if (state >= RTS)
            step("RTR2RTS");
        if (state == SQD)
            step("RTS2SQD");
        if (state == SQE)
            device.qps->find(Qpn(qp.qpn))->state = QpState::Sqe;
        ASSERT_EQ(driver.state(qp.qpn), unsigned(state));
    }
    hghca_qpc query()
    {
        hghca_qpc c;
        EXPECT_EQ(driver.query(HGHCA_CMD_QUERY_QP, c, qp.qpn), 0);
        return c;
    }

    TestDriver::Cq cq;
    TestDriver::Qp qp;
};

TEST_F(QpTest, EveryCommandFromEveryState)
{
    for (uint8_t service : kServices) {
        for (const Command &command : kCommands) {
            for (State from : kAny) {
                bring(service, from);
                uint32_t mask = 0;
                for (const Row &row : kRows)
                    if (std::string(row.command) == command.name)
                        mask = mask_of(attributes(row, service).required);
                bool allowed = command.from.count(from);
                EXPECT_EQ(transition(command.op, valid(service, mask)),
                          allowed ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_QPEE_STATE)
                    << command.name << " from " << from << " service " << int(service);
                EXPECT_EQ(driver.state(qp.qpn), unsigned(allowed ? command.to : from));
            }
        }
    }
}

TEST_F(QpTest, EveryMaskBitOfEveryTransition)
{
    for (uint8_t service : kServices) {
        for (const Row &row : kRows) {
            const Attributes &a = attributes(row, service);
            uint32_t required = mask_of(a.required), optional = mask_of(a.optional);
            const Command *command = nullptr;
            for (const Command &c : kCommands)
                if (std::string(c.name) == row.command)
                    command = &c;
            State from = command->from.count(RTS) ? RTS : *command->from.begin();
            auto expect = [&](uint32_t mask, bool good, const char *what) {
                bring(service, from);
                EXPECT_EQ(transition(command->op, valid(service, mask)),
                          good ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_PARAM)
                    << row.command << " service " << int(service) << " mask " << std::hex << mask << " " << what;
                EXPECT_EQ(driver.state(qp.qpn), unsigned(good ? command->to : from));
            };
            expect(required, true, "required");
            expect(required | optional, true, "all");
            expect(required | optional | 1, true, "STATE says nothing");
            for (unsigned bit = 1; bit < 32; bit++) {
                uint32_t b = 1u << bit;
                if (required & b)
                    expect(required & ~b, false, "one missing");
                else
                    expect(required | b, optional & b, "one more");
            }
        }
    }
}

TEST_F(QpTest, CurStateIsComparedWithTheState)
{
    constexpr uint32_t kCurState = 1 << 1;
    bring(HGHCA_QP_ST_RC, RTS);
    for (uint32_t state = 0; state < 16; state++) {
        hghca_qpc c = valid(HGHCA_QP_ST_RC, kCurState);
        c.flags = be32(state << 28);
        EXPECT_EQ(transition(HGHCA_CMD_RTS2RTS_QPEE, c),
                  state == RTS ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_QPEE_STATE) << state;
        // Without the attribute nobody looks.
        c.opt_param_mask = 0;
        EXPECT_EQ(transition(HGHCA_CMD_RTS2RTS_QPEE, c), HGHCA_CMD_STAT_OK) << state;
    }
    EXPECT_EQ(driver.state(qp.qpn), unsigned(RTS));
}

TEST_F(QpTest, ExtendedAttributesNeedQpLimits)
{
    driver.start(kFullCaps & ~HGHCA_CAP_QP_LIMITS);
    cq = driver.create_cq(4);
    qp = driver.new_qp();
    bring(HGHCA_QP_ST_RC, INIT);
    uint32_t rtr = mask_of("AV PATH_MTU DEST_QPN RQ_PSN MIN_RNR_TIMER");
    EXPECT_EQ(transition(0x1a, valid(HGHCA_QP_ST_RC, rtr | mask_of("MAX_DEST_RD_ATOMIC"))),
              HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(transition(0x1a, valid(HGHCA_QP_ST_RC, rtr)), 0);
    uint32_t rts = mask_of("TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN");
    EXPECT_EQ(transition(0x1b, valid(HGHCA_QP_ST_RC, rts | mask_of("MAX_QP_RD_ATOMIC"))), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(transition(0x1b, valid(HGHCA_QP_ST_RC, rts)), 0);
    // 1, 1, none, 7, all three.
    const QpAttributes &a = device.qps->find(Qpn(qp.qpn))->a;
    EXPECT_EQ(a.max_rd_atomic, 1);
    EXPECT_EQ(a.max_dest_rd_atomic, 1);
    EXPECT_EQ(a.retry_count, 7);
    EXPECT_EQ(a.access, 0xe);
    EXPECT_EQ(transition(0x1f, valid(HGHCA_QP_ST_RC, mask_of("EN_SQD_ASYNC_NOTIFY"))), 0);
    EXPECT_FALSE(device.qps->find(Qpn(qp.qpn))->a.sqd_notify);
}

TEST_F(QpTest, OpModifiers)
{
    for (const Command &command : kCommands) {
        bool closing = command.op == 0x1e || command.op == 0x21;
        bring(HGHCA_QP_ST_UD, *command.from.rbegin());
        // 3: no mailbox, so its address is not looked at.
        EXPECT_EQ(driver.command(command.op, 1, qp.qpn, 3).status,
                  closing ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_PARAM)
            << command.name;
    }
}

TEST_F(QpTest, QpNumbers)
{
    struct {
        uint32_t qpn;
        uint8_t status;
    } cases[] = {{8, 0},
                 {255, 0},
                 {256, HGHCA_CMD_STAT_BAD_INDEX},
                 {0x1000008, HGHCA_CMD_STAT_BAD_INDEX},
                 {~0u, HGHCA_CMD_STAT_BAD_INDEX},
                 {0, HGHCA_CMD_STAT_BAD_INDEX},
                 {1, 0},  // 1 to 7 are for special QPs
                 {7, 0}};
    for (auto &c : cases) {
        qp.qpn = c.qpn;
        hghca_qpc context = driver.init_qpc(qp, HGHCA_QP_ST_UD, cq, cq);
        EXPECT_EQ(transition(0x19, context), c.status) << c.qpn;
        EXPECT_EQ(driver.command(HGHCA_CMD_QUERY_QP, 0, c.qpn, 0, driver.out_mailbox()).status, c.status);
        EXPECT_EQ(driver.to_error(c.qpn), c.status);
        EXPECT_EQ(driver.to_reset(c.qpn), c.status);
        EXPECT_EQ(driver.to_error(c.qpn), c.status ? c.status : uint8_t(HGHCA_CMD_STAT_BAD_QPEE_STATE));
    }
    qp.qpn = 9;
    hghca_qpc other = driver.init_qpc(qp, HGHCA_QP_ST_UD, cq, cq);
    other.local_qpn = be32(10);
    EXPECT_EQ(transition(0x19, other), HGHCA_CMD_STAT_BAD_PARAM);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc + 9 * 2048 / 4096 * 4096, 1), 0);
    other.local_qpn = be32(9);
    EXPECT_EQ(transition(0x19, other), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(driver.to_reset(9), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(driver.command(HGHCA_CMD_QUERY_QP, 0, 9, 0, driver.out_mailbox()).status, HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(device.qps->find(Qpn(9)), nullptr);
}

TEST_F(QpTest, WhatRst2InitChecks)
{
    struct {
        const char *what;
        std::function<void(hghca_qpc &)> change;
        uint8_t status;
    } cases[] = {
        {"good", [](hghca_qpc &) {}, 0},
        {"RD", [](hghca_qpc &c) { c.flags = be32(2 << 16); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"service 4", [](hghca_qpc &c) { c.flags = be32(4 << 16); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"service 0x83", [](hghca_qpc &c) { c.flags = be32(0x83 << 16); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a state is ignored", [](hghca_qpc &c) { c.flags |= be32(6u << 28); }, 0},
        {"stride 5", [](hghca_qpc &c) { c.sq_entry_sz_log = 5; c.snd_wqe_len = be32(64 << 5); },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"stride 6", [](hghca_qpc &c) { c.sq_entry_sz_log = 6; c.snd_wqe_len = be32(64 << 6); }, 0},
        {"stride 10", [](hghca_qpc &c) { c.rq_entry_sz_log = 10; c.rcv_wqe_len = be32(64 << 10); }, 0},
        {"stride 11", [](hghca_qpc &c) { c.rq_entry_sz_log = 11; c.rcv_wqe_len = be32(64 << 11); },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"stride 255", [](hghca_qpc &c) { c.rq_entry_sz_log = 255; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"no send queue", [](hghca_qpc &c) { c.snd_wqe_len = 0; c.sq_entry_sz_log = 0; }, 0},
        {"no receive queue", [](hghca_qpc &c) { c.rcv_wqe_len = 0; c.rq_entry_sz_log = 0; }, 0},
        {"one WQE", [](hghca_qpc &c) { c.snd_wqe_len = be32(128); }, 0},
        {"three WQEs", [](hghca_qpc &c) { c.snd_wqe_len = be32(3 * 128); }, HGHCA_CMD_STAT_BAD_SIZE},
        {"half a WQE", [](hghca_qpc &c) { c.snd_wqe_len = be32(64); }, HGHCA_CMD_STAT_BAD_SIZE},
        {"a WQE and a half", [](hghca_qpc &c) { c.rcv_wqe_len = be32(192); }, HGHCA_CMD_STAT_BAD_SIZE},
        {"16384 WQEs", [](hghca_qpc &c) { c.snd_wqe_len = be32(16384 << 7); }, 0},
        {"32768 WQEs", [](hghca_qpc &c) { c.snd_wqe_len = be32(32768 << 7); }, HGHCA_CMD_STAT_BAD_SIZE},
        {"2 GB of receive WQEs", [](hghca_qpc &c) { c.rcv_wqe_len = be32(1u << 31); }, HGHCA_CMD_STAT_BAD_SIZE},
        {"last CQ", [](hghca_qpc &c) { c.cqn_snd = be32(255); }, 0},
        {"send CQ beyond", [](hghca_qpc &c) { c.cqn_snd = be32(256); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"receive CQ beyond", [](hghca_qpc &c) { c.cqn_rcv = be32(~0u); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"last UAR page", [](hghca_qpc &c) { c.usr_page = be32(2047); }, 0},
        {"a page frame number", [](hghca_qpc &c) { c.usr_page = be32(0xfebf0803); }, 0},
        {"port 0", [](hghca_qpc &c) { c.port_pkey = 0; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"port 2", [](hghca_qpc &c) { c.port_pkey = be32(2 << 24); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"P_Key index 1", [](hghca_qpc &c) { c.port_pkey = be32(1 << 24 | 1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"MTU code 5", [](hghca_qpc &c) { c.mtu_msgmax = 5 << 5; }, 0},
        {"MTU code 6", [](hghca_qpc &c) { c.mtu_msgmax = 6 << 5; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"MTU code 7", [](hghca_qpc &c) { c.mtu_msgmax = 7 << 5; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"doorbell record not aligned", [](hghca_qpc &c) { c.dbr_addr = be64(0x40000004 | 1); },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"doorbell record not valid", [](hghca_qpc &c) { c.dbr_addr = be64(0x40000004); }, 0},
        {"receive queue at the second page", [](hghca_qpc &c) { c.wqe_base = be32(4096); }, 0},
        {"receive queue at the last page", [](hghca_qpc &c) { c.wqe_base = be32(0xffff000); }, 0},
        {"receive queue beyond", [](hghca_qpc &c) { c.wqe_base = be32(0x10000000); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"receive queue far beyond", [](hghca_qpc &c) { c.wqe_base = be32(0xfffff000); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"receive queue in a page", [](hghca_qpc &c) { c.wqe_base = be32(2048); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"an offset of no receive queue", [](hghca_qpc &c) { c.rcv_wqe_len = 0; c.wqe_base = be32(~0u); }, 0},
    };
    for (auto &c : cases) {
        hghca_qpc context = driver.init_qpc(qp, HGHCA_QP_ST_UD, cq, cq);
        c.change(context);
        EXPECT_EQ(transition(0x19, context), c.status) << c.what;
        EXPECT_EQ(device.qps->find(Qpn(qp.qpn)) != nullptr, c.status == 0) << c.what;
        ASSERT_EQ(driver.to_reset(qp.qpn), 0);
        EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    }
}

TEST_F(QpTest, AnOffsetOfTheReceiveQueueNeedsItsCapability)
{
    hghca_qpc context = driver.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq);
    context.wqe_base = be32(0x7000);
    ASSERT_EQ(transition(0x19, context), 0);
    EXPECT_EQ(be32(query().wqe_base), 0x7000u);

    driver.start(kFullCaps & ~HGHCA_CAP_RQ_OFFSET);
    cq = driver.create_cq(4);
    qp = driver.new_qp();
    context = driver.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq);
    context.wqe_base = be32(0x7001);
    ASSERT_EQ(transition(0x19, context), 0);
    EXPECT_EQ(be32(query().wqe_base), 0u);
}

TEST_F(QpTest, RawNeedsThePortCapability)
{
    driver.start(kFullCaps & ~HGHCA_CAP_PORT);
    cq = driver.create_cq(4);
    qp = driver.new_qp();
    EXPECT_EQ(transition(0x19, driver.init_qpc(qp, HGHCA_QP_ST_RAW, cq, cq)), HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(QpTest, ValuesThatAreRefusedLater)
{
    uint32_t rtr = mask_of("AV PATH_MTU DEST_QPN RQ_PSN MIN_RNR_TIMER MAX_DEST_RD_ATOMIC");
    struct {
        const char *what;
        std::function<void(hghca_qpc &)> change;
        uint8_t status;
    } cases[] = {
        {"good", [](hghca_qpc &) {}, 0},
        {"MTU code 0", [](hghca_qpc &c) { c.mtu_msgmax = 0; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"MTU code 1", [](hghca_qpc &c) { c.mtu_msgmax = 1 << 5; }, 0},
        {"MTU code 5", [](hghca_qpc &c) { c.mtu_msgmax = 5 << 5; }, 0},
        {"MTU code 6", [](hghca_qpc &c) { c.mtu_msgmax = 6 << 5; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"QPN of 25 bits", [](hghca_qpc &c) { c.remote_qpn = be32(1 << 24); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"timer code 31", [](hghca_qpc &c) { c.rnr_nextrecvpsn = be32(31u << 24); }, 0},
        {"timer code 32", [](hghca_qpc &c) { c.rnr_nextrecvpsn = be32(32u << 24); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"16 READs as target", [](hghca_qpc &c) { c.limits = be32(16 << 16); }, 0},
        {"17 READs as target", [](hghca_qpc &c) { c.limits = be32(17 << 16); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"GID index 127", [](hghca_qpc &c) { c.mgid_index = 127; c.g_mylmc = 0x80; }, 0},
        {"GID index 128", [](hghca_qpc &c) { c.mgid_index = 128; c.g_mylmc = 0x80; }, HGHCA_CMD_STAT_BAD_PARAM},
    };
    for (auto &c : cases) {
        bring(HGHCA_QP_ST_RC, INIT);
        hghca_qpc context = valid(HGHCA_QP_ST_RC, rtr);
        c.change(context);
        EXPECT_EQ(transition(0x1a, context), c.status) << c.what;
        EXPECT_EQ(driver.state(qp.qpn), c.status ? INIT : RTR) << c.what;
    }
    for (uint32_t n : {0u, 1u, 16u, 17u, 255u}) {
        bring(HGHCA_QP_ST_RC, RTR);
        hghca_qpc context = valid(HGHCA_QP_ST_RC, mask_of("TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC"));
        context.limits = be32(n << 24);
        EXPECT_EQ(transition(0x1b, context), n > 16 ? HGHCA_CMD_STAT_BAD_PARAM : 0) << n;
    }
}

TEST_F(QpTest, AFailedTransitionChangesNothing)
{
    bring(HGHCA_QP_ST_RC, INIT);
    hghca_qpc before = query();
    hghca_qpc bad = valid(HGHCA_QP_ST_RC, mask_of("AV PATH_MTU DEST_QPN RQ_PSN MIN_RNR_TIMER MAX_DEST_RD_ATOMIC"));
    bad.limits = be32(17 << 16);
    ASSERT_EQ(transition(0x1a, bad), HGHCA_CMD_STAT_BAD_PARAM);
    hghca_qpc after = query();
    EXPECT_EQ(memcmp(&before, &after, sizeof(before)), 0);
}

TEST_F(QpTest, AttributesOutsideTheMaskAreNotLookedAt)
{
    hghca_qpc c = driver.init_qpc(qp, HGHCA_QP_ST_UD, cq, cq);
    c.rnr_nextrecvpsn = be32(~0u);
    c.remote_qpn = be32(~0u);
    c.limits = be32(~0u);
    c.mgid_index = 255;
    ASSERT_EQ(transition(0x19, c), 0);
    hghca_qpc junk;
    memset(&junk, 0xff, sizeof(junk));
    junk.opt_param_mask = 0;
    ASSERT_EQ(transition(0x1a, junk), 0);
    hghca_qpc q = query();
    EXPECT_EQ(be32(q.qkey), 0x11111111u);
    EXPECT_EQ(q.remote_qpn, 0u);
}

TEST_F(QpTest, QueryGivesBackTheWholeContext)
{
    hghca_qpc init = driver.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq);
    init.mtu_msgmax = 20;  // MTU code 0 stands for 4096
    init.sq_wqe_counter = be16(0xfff0);
    init.rq_wqe_counter = be16(0x1234);
    ASSERT_EQ(transition(0x19, init), 0);
    hghca_qpc q = query();
    EXPECT_EQ(be32(q.flags), 1u << 28);
    EXPECT_EQ(q.mtu_msgmax, 5 << 5 | 20);
    EXPECT_EQ(q.sq_entry_sz_log, 7);
    EXPECT_EQ(q.rq_entry_sz_log, 7);
    EXPECT_EQ(q.usr_page, init.usr_page);
    EXPECT_EQ(q.local_qpn, init.local_qpn);
    EXPECT_EQ(q.port_pkey, init.port_pkey);
    EXPECT_EQ(q.pd, init.pd);
    EXPECT_EQ(q.cqn_snd, init.cqn_snd);
    EXPECT_EQ(q.cqn_rcv, init.cqn_rcv);
    EXPECT_EQ(q.snd_wqe_base_l, init.snd_wqe_base_l);
    EXPECT_EQ(q.rcv_wqe_base_l, init.rcv_wqe_base_l);
    EXPECT_EQ(q.snd_wqe_len, init.snd_wqe_len);
    EXPECT_EQ(q.rcv_wqe_len, init.rcv_wqe_len);
    EXPECT_EQ(q.dbr_addr, init.dbr_addr);
    EXPECT_EQ(be16(q.sq_wqe_counter), 0xfff0);
    EXPECT_EQ(be16(q.rq_wqe_counter), 0x1234);
    EXPECT_EQ(be32(q.limits) & 0xff, 0xeu);

    uint8_t gid[16] = {0xfe, 0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    TestDriver::Peer peer{0x654321, {2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13}, 0x0a000001, 0x0a000002, gid, 5};
    hghca_qpc rtr = driver.rtr_qpc(peer, 0xffffff, 4, 9);
    rtr.sl_tclass_flowlabel = be32(0x5abcdef1);
    rtr.static_rate = 3;
    ASSERT_EQ(transition(0x1a, rtr), 0);
    q = query();
    EXPECT_EQ(be32(q.flags) >> 28, unsigned(RTR));
    EXPECT_EQ(q.mtu_msgmax, 4 << 5 | 20);
    EXPECT_EQ(be32(q.remote_qpn), 0x654321u);
    EXPECT_EQ(be32(q.rnr_nextrecvpsn), 1u << 24 | 0xffffff);
    EXPECT_EQ(memcmp(q.rgid, gid, 16), 0);
    EXPECT_EQ(q.mgid_index, 5);
    EXPECT_EQ(q.g_mylmc, 0x80);
    EXPECT_EQ(q.hop_limit, 64);
    EXPECT_EQ(q.static_rate, 3);
    EXPECT_EQ(be32(q.sl_tclass_flowlabel), 0x5abcdef1u);
    EXPECT_EQ(q.dmac_h, rtr.dmac_h);
    EXPECT_EQ(q.dlid, rtr.dlid);
    EXPECT_EQ(q.smac_h, rtr.smac_h);
    EXPECT_EQ(q.slid, rtr.slid);
    EXPECT_EQ(be32(q.sip), 0x0a000001u);
    EXPECT_EQ(be32(q.dip), 0x0a000002u);
    EXPECT_EQ(be32(q.limits) >> 16 & 0xff, 9u);

    ASSERT_EQ(transition(0x1b, driver.rts_qpc(0, 17, 3, 5, 7)), 0);
    q = query();
    EXPECT_EQ(q.ackto, 17);
    EXPECT_EQ(q.rnr_retry, 5);
    EXPECT_EQ(be32(q.limits) >> 24, 7u);
    EXPECT_EQ(be32(q.limits) >> 8 & 7, 3u);
    EXPECT_EQ(be32(q.next_send_psn), 0u);
    EXPECT_EQ(be32(q.last_acked_psn), 0xffffffu);

    // The attributes of the transport, as the document reads them.
    const QpAttributes &a = device.qps->find(Qpn(qp.qpn))->a;
    EXPECT_EQ(a.mtu, 2048u);
    EXPECT_EQ(a.log_max_msg, 20);
    EXPECT_EQ(a.sq.length, 64u);
    EXPECT_EQ(a.path.dmac, (std::array<uint8_t, 6>{2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(a.path.flow_label, 0xcdef1u);
    EXPECT_EQ(a.path.tclass, 0xabu);
    EXPECT_EQ(a.path.sl, 5u);
    EXPECT_TRUE(a.path.by_gid);
    EXPECT_EQ(a.dbr_addr, qp.dbr);
}

TEST_F(QpTest, PsnsAndCountersStartWhereTheMailboxSays)
{
    hghca_qpc init = driver.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq);
    init.sq_wqe_counter = be16(7);
    init.rq_wqe_counter = be16(9);
    ASSERT_EQ(transition(0x19, init), 0);
    TestDriver::Peer peer{8, {}, {}, 1, 2};
    driver.rc_to_rts(qp, peer, 0x111111, 0xff222222);
    const Qp *q = device.qps->find(Qpn(qp.qpn));
    EXPECT_EQ(q->req.next_index, 7);
    EXPECT_EQ(q->req.doorbell_limit, 7);
    EXPECT_EQ(q->resp.rq_index, 9);
    EXPECT_EQ(q->resp.expected_psn, Psn(0x111111));
    for (Psn psn : {q->req.next_psn, q->req.next_wqe_psn, q->req.unacked_psn, q->req.highest_psn, q->req.oldest_psn})
        EXPECT_EQ(psn, Psn(0x222222));  // 24 bits
    EXPECT_FALSE(q->req.oldest.valid || q->req.next.valid || q->req.announced.valid);
}

TEST_F(QpTest, GidAddressingNeedsItsCapability)
{
    driver.start(kFullCaps & ~(HGHCA_CAP_GID_TABLE | HGHCA_CAP_DBR));
    cq = driver.create_cq(4);
    qp = driver.create_qp(HGHCA_QP_ST_RC, cq, cq);
    uint8_t gid[16] = {1};
    TestDriver::Peer peer{8, {}, {}, 1, 2, gid, 0};
    driver.rc_to_rts(qp, peer);
    EXPECT_FALSE(device.qps->find(Qpn(qp.qpn))->a.path.by_gid);
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn))->a.dbr_addr, 0u);
}

TEST_F(QpTest, QueryInReset)
{
    hghca_qpc q = query();
    EXPECT_EQ(be32(q.flags), 0u);
    EXPECT_EQ(be32(q.local_qpn), qp.qpn);
}

TEST_F(QpTest, ANewLifeStartsFresh)
{
    bring(HGHCA_QP_ST_RC, RTS);
    Qp *q = device.qps->find(Qpn(qp.qpn));
    q->resp.msn = Msn(5);
    q->req.retries_left = 3;
    bring(HGHCA_QP_ST_UD, INIT);
    q = device.qps->find(Qpn(qp.qpn));
    EXPECT_EQ(q->resp.msn, Msn(0));
    EXPECT_EQ(q->req.next_psn, Psn(0));
    EXPECT_EQ(q->a.remote_qpn, Qpn(0));
    EXPECT_EQ(q->a.service, Service::Ud);
}

TEST_F(QpTest, SqdNotifyIsAskedForEachTime)
{
    bring(HGHCA_QP_ST_RC, RTS);
    ASSERT_EQ(transition(0x1f, valid(HGHCA_QP_ST_RC, mask_of("EN_SQD_ASYNC_NOTIFY"))), 0);
    EXPECT_TRUE(device.qps->find(Qpn(qp.qpn))->a.sqd_notify);
    ASSERT_EQ(transition(0x20, valid(HGHCA_QP_ST_RC, 0)), 0);
    ASSERT_EQ(transition(0x1f, valid(HGHCA_QP_ST_RC, 0)), 0);
    EXPECT_FALSE(device.qps->find(Qpn(qp.qpn))->a.sqd_notify);
}

TEST_F(QpTest, DrainingIsAnswered)
{
    bring(HGHCA_QP_ST_RC, SQD);
    EXPECT_FALSE(be32(query().flags) >> 27 & 1);
    device.qps->find(Qpn(qp.qpn))->drained_sent = false;  // work is under way
    EXPECT_TRUE(be32(query().flags) >> 27 & 1);
}

// ---- CONF_SPECIAL_QP

TEST_F(QpTest, SpecialQps)
{
    auto ud = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
    auto ud2 = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
    auto rc = driver.create_qp(HGHCA_QP_ST_RC, cq, cq);
    auto raw = driver.create_qp(HGHCA_QP_ST_RAW, cq, cq);
    auto conf = [&](uint32_t qpn, uint32_t type) {
        return driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, qpn, type).status;
    };
    for (uint32_t type : {0u, 2u, 4u, 5u, 31u, 32u, 255u}) {
        EXPECT_EQ(conf(ud.qpn, type), HGHCA_CMD_STAT_BAD_PARAM) << type;
        EXPECT_EQ(conf(0, type), HGHCA_CMD_STAT_BAD_PARAM) << type;
    }
    EXPECT_EQ(conf(rc.qpn, 1), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(conf(raw.qpn, 1), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(conf(ud.qpn, 3), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(conf(256, 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(conf(200, 1), HGHCA_CMD_STAT_BAD_QPEE_STATE);
    EXPECT_EQ(device.gsi_qpn, Qpn(0));
    EXPECT_EQ(conf(ud.qpn, 1), 0);
    EXPECT_EQ(conf(raw.qpn, 3), 0);
    EXPECT_EQ(device.gsi_qpn, Qpn(ud.qpn));
    EXPECT_EQ(device.raw_qpn, Qpn(raw.qpn));
    EXPECT_EQ(device.qps->find(Qpn(ud.qpn))->a.special, Special::Gsi);
    EXPECT_EQ(device.qps->find(Qpn(raw.qpn))->a.special, Special::RawEthernet);
    // Another takes over.
    EXPECT_EQ(conf(ud2.qpn, 1), 0);
    EXPECT_EQ(device.qps->find(Qpn(ud.qpn))->a.special, Special::None);
    EXPECT_EQ(device.qps->find(Qpn(ud2.qpn))->a.special, Special::Gsi);
    EXPECT_EQ(conf(0, 1), 0);
    EXPECT_EQ(device.gsi_qpn, Qpn(0));
    EXPECT_EQ(device.qps->find(Qpn(ud2.qpn))->a.special, Special::None);
    // A QP that is reset is withdrawn.
    EXPECT_EQ(driver.to_reset(raw.qpn), 0);
    EXPECT_EQ(device.raw_qpn, Qpn(0));
    driver.start(kFullCaps & ~HGHCA_CAP_PORT);
    EXPECT_EQ(conf(0, 3), HGHCA_CMD_STAT_BAD_PARAM);
}

}  // namespace
}  // namespace hghca::test::qp_transition_test
