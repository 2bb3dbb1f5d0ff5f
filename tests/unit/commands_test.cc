// SPDX-License-Identifier: GPL-2.0-or-later
// The command register and the commands that stand alone (interface document, 3.1 to 4.3, 4.10 to 4.14).
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <new>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "fixture.h"
#include "jingzhao/commands.h"

namespace hghca::test::commands_test {
namespace {

class Commands : public DeviceTest {
protected:
    Commands() { driver.reset(); }
    static constexpr uint64_t kNowhere = 0x1000;  // no memory there
};

// Section 4: which commands exist, and which work before INIT_HCA. tests/abi has their opcodes as literals.
struct Row {
    uint32_t op;
    bool after_init;
};
constexpr Row kCommands[] = {
#define HGHCA_ROW(name, function, op, in, out, when, ...) {op, std::string_view(#when) == "INIT"},
    HGHCA_COMMANDS(HGHCA_ROW)
#undef HGHCA_ROW
};

TEST_F(Commands, EveryOpcode)
{
    for (uint32_t op = 0; op < 0x1000; op++) {
        const Row *row = std::ranges::find(kCommands, op, &Row::op);
        const uint8_t status = driver.command(op, 1, 0, 0xff, 1).status;
        if (row == std::end(kCommands))
            EXPECT_EQ(status, HGHCA_CMD_STAT_BAD_OP) << std::hex << op;
        else
            EXPECT_EQ(status, row->after_init ? HGHCA_CMD_STAT_BAD_SYS_STATE : HGHCA_CMD_STAT_BAD_PARAM) << std::hex << op;
    }
}

TEST_F(Commands, MailboxMustBeAlignedAndThere)
{
    driver.start();
    struct {
        uint32_t op, modifier, op_modifier;
        bool input;
    } rows[] = {
        {HGHCA_CMD_MAP_ICM, 1, 1, true},         {HGHCA_CMD_SW2HW_MPT, 9, 0, true},
        {HGHCA_CMD_WRITE_MTT, 1, 0, true},       {HGHCA_CMD_SW2HW_EQ, 5, 0, true},
        {HGHCA_CMD_SW2HW_CQ, 5, 0, true},        {HGHCA_CMD_RESIZE_CQ, 5, 0, true},
        {HGHCA_CMD_RST2INIT_QPEE, 9, 0, true},   {HGHCA_CMD_2ERR_QPEE, 9, 0, true},
        {HGHCA_CMD_SET_PORT, 1, 0, true},        {HGHCA_CMD_SET_GID, 0, 0, true},
        {HGHCA_CMD_QUERY_DEV_LIM, 0, 0, false},  {HGHCA_CMD_QUERY_ADAPTER, 0, 0, false},
        {HGHCA_CMD_QUERY_QP, 9, 0, false},       {HGHCA_CMD_QUERY_PORT, 1, 0, false},
        {HGHCA_CMD_QUERY_STATS, 0, 0, false},    {HGHCA_CMD_QUERY_COUNTER_SET, 1, 0, false},
        {HGHCA_CMD_READ_ERROR_BUFFER, 0, 0, false}, {HGHCA_CMD_WRITE_MGM, 0, 0, true},
        {HGHCA_CMD_MGID_HASH, 0, 0, true},       {HGHCA_CMD_READ_MGM, 0, 0, false},
        {HGHCA_CMD_FLOW_ATTACH, 0, 0, true},      {HGHCA_CMD_CREATE_RSS, 0, 0, true},
        {HGHCA_CMD_MAD_IFC, 1, 0, true},
    };
    uint64_t good = host.alloc(4096);
    uint64_t last_page = host.end() - 4096;
    for (auto &row : rows) {
        for (uint64_t bad : std::initializer_list<uint64_t>{0, kNowhere, good + 8, good + 2048, host.end(), ~0ull,
                                                            ~0xfffull}) {
            uint64_t in = row.input ? bad : 0, out = row.input ? 0 : bad;
            EXPECT_EQ(driver.command(row.op, in, row.modifier, row.op_modifier, out).status,
                      HGHCA_CMD_STAT_BAD_PARAM)
                << std::hex << row.op << " " << bad;
        }
        host.bus_master = false;
        EXPECT_EQ(driver.command(row.op, good, row.modifier, row.op_modifier, good).status,
                  HGHCA_CMD_STAT_BAD_PARAM);
        host.bus_master = true;
        if (!row.input) {
            EXPECT_EQ(driver.command(row.op, 0, row.modifier, row.op_modifier, last_page).status, 0);
        }
    }
}

TEST_F(Commands, AnOutputMailboxThatIsHalfThereIsNotTouched)
{
    uint64_t at = host.alloc(8192);
    host.holes.push_back({at + 2048, 1});
    EXPECT_EQ(driver.command(HGHCA_CMD_QUERY_DEV_LIM, 0, 0, 0, at).status, HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(host.at(at)[0x0c], 0);
}

TEST_F(Commands, OpModifierIsChecked)
{
    driver.start();
    // The commands of section 4 whose op_modifier column says 0.
    for (uint32_t op : {0x003u, 0x006u, 0x008u, 0x00du, 0x00fu, 0x011u, 0x012u, 0x013u, 0x014u, 0x016u, 0x017u,
                        0x02cu, 0x022u, 0x031u, 0x00cu, 0xe01u, 0x00eu, 0x018u, 0xe03u, 0xe05u, 0xe06u,
                        0xe0au, 0xe0bu, 0x019u, 0x01au, 0x01bu, 0x01cu, 0x01du, 0x01fu, 0x020u, 0x02du, 0x038u})
        for (uint32_t m : {1u, 3u, 31u, 32u, 0xffu})
            EXPECT_EQ(driver.command(op, driver.in_mailbox(), 0, m, driver.out_mailbox()).status,
                      HGHCA_CMD_STAT_BAD_PARAM)
                << std::hex << op << " " << m;
    for (uint32_t op : {0xffau, 0xff9u})
        for (uint32_t m : {0u, 3u, 33u, 34u, 0xffu})
            EXPECT_EQ(driver.command(op, driver.in_mailbox(), 1, m).status, HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.command(HGHCA_CMD_SET_GID, driver.in_mailbox(), 0, 2).status, HGHCA_CMD_STAT_BAD_PARAM);
    for (uint32_t op : {0xe02u, 0xe04u})
        for (uint32_t m : {2u, 3u, 32u, 33u, 0xffu})
            EXPECT_EQ(driver.command(op, 0, 1, m, driver.out_mailbox()).status, HGHCA_CMD_STAT_BAD_PARAM);
    for (uint32_t m : {1u, 2u, 4u})
        EXPECT_EQ(driver.command(HGHCA_CMD_2ERR_QPEE, driver.in_mailbox(), 9, m).status, HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_TRUE(device.initialized);
}

TEST_F(Commands, Nop)
{
    driver.start();
    EXPECT_EQ(driver.command(HGHCA_CMD_NOP, 0, HGHCA_NOP_IN_MODIFIER).status, 0);
    EXPECT_EQ(driver.command(HGHCA_CMD_NOP, 0, 0x1e).status, HGHCA_CMD_STAT_BAD_PARAM);
}

// Offsets and values of IBA vol 1, 13.4 and 14.2; the form of the mailboxes is Arbel's.
class MadIfc : public Commands {
protected:
    MadIfc() { driver.start(0); }
    using Bytes = std::array<uint8_t, 256>;
    static Bytes get(uint8_t attribute, uint8_t modifier = 0)
    {
        Bytes mad{1, 0x01, 1, 0x01};
        mad[17] = attribute;
        mad[23] = modifier;
        for (unsigned i = 8; i < 16; i++)
            mad[i] = uint8_t(0xa0 + i);   // transaction ID
        return mad;
    }
    uint8_t status(const Bytes &mad, uint32_t port = 1, uint8_t op_modifier = 3)
    {
        std::memcpy(host.at(driver.in_mailbox()), mad.data(), mad.size());
        std::memset(host.at(driver.out_mailbox()), 0xee, HGHCA_MAILBOX_SIZE);
        return driver.command(HGHCA_CMD_MAD_IFC, driver.in_mailbox(), port, op_modifier, driver.out_mailbox()).status;
    }
    Bytes ask(const Bytes &mad)
    {
        Bytes response{};
        EXPECT_EQ(status(mad), HGHCA_CMD_STAT_OK);
        std::memcpy(response.data(), host.at(driver.out_mailbox()), response.size());
        return response;
    }
    static constexpr uint8_t kGuid[] = {0x00, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55};
    static std::vector<uint8_t> part(const Bytes &mad, unsigned at, unsigned count)
    {
        return {mad.begin() + at, mad.begin() + at + count};
    }
    const std::vector<uint8_t> guid{std::begin(kGuid), std::end(kGuid)};
};

TEST_F(MadIfc, NodeInfo)
{
    const Bytes r = ask(get(0x11));
    EXPECT_EQ(part(r, 0, 8), (std::vector<uint8_t>{1, 1, 1, 0x81, 0, 0, 0, 0}));
    EXPECT_EQ(part(r, 8, 8), part(get(0x11), 8, 8));
    EXPECT_EQ(part(r, 64, 4), (std::vector<uint8_t>{1, 1, 1, 1}));   // versions, a CA, one port
    EXPECT_EQ(part(r, 76, 8), guid);
    EXPECT_EQ(part(r, 84, 8), guid);
    EXPECT_EQ(part(r, 92, 4), (std::vector<uint8_t>{0, 1, 0x10, 0xf1}));
    EXPECT_EQ(r[100], 1);
    EXPECT_EQ(r[128], 0);
}

TEST_F(MadIfc, NodeDescription)
{
    const Bytes r = ask(get(0x10));
    EXPECT_STREQ(reinterpret_cast<const char *>(&r[64]), "JingZhao HCA");
}

TEST_F(MadIfc, PortInfo)
{
    for (bool up : {true, false}) {
        device.set_link(up);
        for (uint8_t port : {0, 1}) {
            const Bytes r = ask(get(0x15, port));
            EXPECT_EQ(part(r, 72, 8), (std::vector<uint8_t>{0xfe, 0x80, 0, 0, 0, 0, 0, 0}));
            EXPECT_EQ(part(r, 80, 4), (std::vector<uint8_t>{0, 0, 0, 0}));   // no LIDs
            EXPECT_EQ(r[92], 1);
            EXPECT_EQ(r[95], 2);                    // 4X
            EXPECT_EQ(r[96] & 15, up ? 4 : 1);      // Active, Down
            EXPECT_EQ(r[97] >> 4, up ? 5 : 2);      // LinkUp, Polling
            EXPECT_EQ(r[100] >> 4, 5);              // NeighborMTU 4096
            EXPECT_EQ(r[105] & 15, 5);              // MTUCap 4096
            EXPECT_EQ(r[114], 1);                   // GUIDCap
        }
    }
    EXPECT_EQ(part(ask(get(0x15, 2)), 4, 2), (std::vector<uint8_t>{0, 0x1c}));
}

TEST_F(MadIfc, Tables)
{
    EXPECT_EQ(part(ask(get(0x14)), 64, 8), guid);
    EXPECT_EQ(part(ask(get(0x16)), 64, 4), (std::vector<uint8_t>{0xff, 0xff, 0, 0}));
    for (uint8_t table : {0x14, 0x16})
        EXPECT_EQ(part(ask(get(table, 1)), 4, 2), (std::vector<uint8_t>{0, 0x1c}));
}

TEST_F(MadIfc, DirectedRoute)
{
    Bytes mad = get(0x11);
    mad[1] = 0x81;
    const Bytes r = ask(mad);
    EXPECT_EQ(part(r, 1, 5), (std::vector<uint8_t>{0x81, 1, 0x81, 0x80, 0}));
    EXPECT_EQ(part(r, 76, 8), guid);
}

TEST_F(MadIfc, WhatIsNotThereIsRefused)
{
    // PKEY_TABLE + 1 and others: no such attribute; SubnSet; another version.
    for (uint8_t attribute : {0x12, 0x17, 0x20, 0xff})
        EXPECT_EQ(part(ask(get(attribute)), 4, 2), (std::vector<uint8_t>{0, 0x0c})) << int(attribute);
    Bytes set = get(0x15, 1);
    set[3] = 2;
    EXPECT_EQ(part(ask(set), 3, 3), (std::vector<uint8_t>{0x81, 0, 0x0c}));
    for (unsigned at : {0u, 2u}) {
        Bytes other = get(0x11);
        other[at] = 2;
        EXPECT_EQ(part(ask(other), 4, 2), (std::vector<uint8_t>{0, 4})) << at;
    }
    // No SMP, or one without a response: a GMP, a response, a trap, TrapRepress.
    for (auto [at, value] : {std::pair{1u, 0x03}, {1u, 0x04}, {3u, 0x81}, {3u, 0x05}, {3u, 0x07}, {3u, 0x00}}) {
        Bytes other = get(0x11);
        other[at] = uint8_t(value);
        EXPECT_EQ(status(other), HGHCA_CMD_STAT_BAD_PARAM) << at << " " << value;
    }
    for (uint32_t port : {0u, 2u, 0xffffu})
        EXPECT_EQ(status(get(0x11), port), HGHCA_CMD_STAT_BAD_PARAM) << port;
    EXPECT_EQ(status(get(0x11), 0xabcd0001), HGHCA_CMD_STAT_OK);
    driver.reset();
    EXPECT_EQ(status(get(0x11)), HGHCA_CMD_STAT_BAD_SYS_STATE);
}

// ---- the status record (3.1); opcode, modifiers and words are literals from the document

class StatusRecord : public Commands {
protected:
    static constexpr uint32_t kSet = 0xe15, kNop = 0x031;
    static constexpr uint32_t kSetDone = 0x00001e15;   // status 0, op_modifier 1
    static constexpr uint32_t kRest = 0x5a5a5a5a;      // what the device shall not write

    StatusRecord()
    {
        driver.start();
        place = host.alloc(4096) + 8;
    }
    uint32_t word(uint64_t at) { return be32(*host.as<uint32_t>(at)); }
    void clear(uint32_t value = 0) { *host.as<uint32_t>(place) = be32(value); }
    uint8_t set(uint64_t at, bool event = false) { return driver.command(kSet, at, 0, 1, 0, event).status; }
    uint8_t nop(uint32_t modifier = 0x1f, bool event = false)
    {
        return driver.command(kNop, 0, modifier, 0, 0, event, 7).status;
    }
    // Whether the record has what a read of 18h gives, after a command.
    void expect_recorded(uint8_t status, uint32_t op, uint32_t op_modifier = 0)
    {
        EXPECT_EQ(word(place), uint32_t(status) << 24 | op_modifier << 12 | op);
        EXPECT_EQ(word(place), driver.hcr(0x18));
    }
    void expect_none()
    {
        clear(kRest);
        (void)nop();
        EXPECT_EQ(word(place), kRest);
    }

    uint64_t place;
};

TEST_F(StatusRecord, EachPolledCommandWritesIt)
{
    for (const bool copy_only : {false, true}) {
        host.copy_only = copy_only;
        *host.as<uint32_t>(place - 4) = *host.as<uint32_t>(place + 4) = kRest;
        EXPECT_EQ(set(place), 0);
        expect_recorded(0, kSet, 1);
        clear();
        EXPECT_EQ(nop(), 0);
        expect_recorded(0, kNop);
        clear();
        EXPECT_EQ(nop(0x1e), 0x03);
        expect_recorded(0x03, kNop);
        clear();
        EXPECT_EQ(driver.command(0xabc, 0, 0, 0x5a).status, 0x02);
        expect_recorded(0x02, 0xabc, 0x5a);
        EXPECT_EQ(word(place - 4), kRest);
        EXPECT_EQ(word(place + 4), kRest);
    }
}

// An injected fault is a status too.
TEST_F(StatusRecord, AFault)
{
    ASSERT_EQ(set(place), 0);
    clear();
    device.commands->fail(1);
    EXPECT_EQ(nop(), 0x01);
    expect_recorded(0x01, kNop);
}

TEST_F(StatusRecord, ItIsTheLastStoreAndOne)
{
    ASSERT_EQ(set(place), 0);
    for (const bool copy_only : {false, true}) {
        host.copy_only = copy_only;
        host.record_dirty = true;
        host.dirtied.clear();
        hghca_adapter adapter;
        ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_ADAPTER, adapter), 0);
        ASSERT_EQ(host.dirtied.size(), 2u);
        EXPECT_EQ(host.dirtied[0].dma, driver.out_mailbox());
        EXPECT_EQ(host.dirtied[1].dma, place);
        EXPECT_EQ(host.dirtied[1].length, 4u);
        host.record_dirty = false;
    }
}

TEST_F(StatusRecord, Parameters)
{
    ASSERT_EQ(set(place), 0);
    for (const uint64_t bad : {place + 1, place + 2, place + 3, uint64_t(kNowhere), host.end(), uint64_t(0), ~uint64_t(0),
                               ~uint64_t(3)}) {
        clear();
        EXPECT_EQ(set(bad), 0x03) << std::hex << bad;
        expect_recorded(0x03, kSet, 1);
    }
    clear();
    EXPECT_EQ(driver.command(kSet, 1).status, 0x03) << "op_modifier 0 with an address";
    expect_recorded(0x03, kSet);
    EXPECT_EQ(driver.command(kSet, place, 1, 1).status, 0x03) << "in_modifier 1";
    EXPECT_EQ(driver.command(kSet, place, 0, 2).status, 0x03);
    expect_recorded(0x03, kSet, 2);
    // The last word of memory.
    EXPECT_EQ(set(host.end() - 4), 0);
    EXPECT_EQ(word(host.end() - 4), kSetDone);
}

TEST_F(StatusRecord, MemoryThatCannotBeWritten)
{
    host.read_only.push_back({place, 4});
    EXPECT_EQ(set(place), 0x03);
    host.read_only.clear();
    expect_none();
    host.bus_master = false;
    EXPECT_EQ(set(place), 0x03);
    host.bus_master = true;
    expect_none();
}

TEST_F(StatusRecord, AnotherPlace)
{
    const uint64_t other = host.alloc(4);
    ASSERT_EQ(set(place), 0);
    clear(kRest);
    ASSERT_EQ(set(other), 0);
    EXPECT_EQ(word(other), kSetDone);
    EXPECT_EQ(word(place), kRest);
}

TEST_F(StatusRecord, OpModifier0)
{
    ASSERT_EQ(set(place), 0);
    clear(kRest);
    EXPECT_EQ(driver.command(kSet).status, 0);
    EXPECT_EQ(word(place), kRest);
    expect_none();
    EXPECT_EQ(driver.command(kSet).status, 0) << "without a record";
}

TEST_F(StatusRecord, AfterAReset)
{
    ASSERT_EQ(set(place), 0);
    clear(kRest);
    driver.reset();
    EXPECT_EQ(word(place), kRest);
    expect_none();
    EXPECT_EQ(set(place), 0x04);
    driver.start();
    expect_none();
}

TEST_F(StatusRecord, CloseHca)
{
    ASSERT_EQ(set(place), 0);
    clear(kRest);
    EXPECT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    EXPECT_EQ(word(place), kRest);
    ASSERT_EQ(driver.init_hca(), 0);
    expect_none();
}

TEST_F(StatusRecord, ADeviceThatHasFailed)
{
    ASSERT_EQ(set(place), 0);
    device.fail("a test");
    expect_none();
    EXPECT_EQ(driver.hcr(0x18), ~0u);
}

// The device fails as it reads the mailbox.
TEST_F(StatusRecord, ACommandThatFailsTheDevice)
{
    ASSERT_EQ(set(place), 0);
    clear(kRest);
    host.after_read = [](uint64_t, uint64_t) { throw std::bad_alloc(); };
    (void)driver.post(HGHCA_CMD_SET_GID, hghca_gid_entry{});
    host.after_read = nullptr;
    EXPECT_TRUE(device.failed());
    EXPECT_EQ(word(place), kRest);
}

TEST_F(StatusRecord, ACommandByEvent)
{
    TestDriver::Eq eq = driver.create_eq(4, 1);
    ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << HGHCA_EVENT_CMD), 0);
    ASSERT_EQ(set(place), 0);
    clear(kRest);
    (void)nop(0x1f, true);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_CMD), 1u);
    EXPECT_EQ(word(place), kRest);
    // SET_STATUS_RECORD by event shows that it has written the memory, and ends by event.
    const uint64_t other = host.alloc(4);
    *host.as<uint32_t>(other) = kRest;
    (void)set(other, true);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_CMD), 1u);
    EXPECT_EQ(word(other), 0u);
    ASSERT_EQ(set(place), 0);
    // Without an EQ, the end is in the HCR; bit 22 is E.
    ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << HGHCA_EVENT_CMD, true), 0);
    clear();
    EXPECT_EQ(nop(0x1f, true), 0x04);
    EXPECT_EQ(word(place), 0x04400031u);
    EXPECT_EQ(word(place), driver.hcr(0x18));
}

// Software reads the HCR then.
TEST_F(StatusRecord, MemoryThatIsGoneLater)
{
    ASSERT_EQ(set(place), 0);
    clear(kRest);
    host.holes.push_back({place, 4});
    device.dma_changed();
    EXPECT_EQ(nop(), 0);
    EXPECT_EQ(nop(0x1e), 0x03);
    EXPECT_FALSE(device.failed());
    host.holes.clear();
    device.dma_changed();
    EXPECT_EQ(word(place), kRest);
    EXPECT_EQ(nop(), 0);
    expect_recorded(0, kNop);
}

TEST_F(StatusRecord, WithoutTheCapability)
{
    constexpr uint32_t kStatusRecord = 1u << 27, kSyncCommands = 1u << 24;
    driver.init(kFullCaps & ~kStatusRecord);
    EXPECT_EQ(set(place), 0x02);
    expect_none();
    driver.reset();
    EXPECT_EQ(driver.init_hca(kFullCaps & ~kSyncCommands), 0x03) << "it needs SYNC_COMMANDS";
    EXPECT_EQ(driver.init_hca(kFullCaps & ~kSyncCommands & ~kStatusRecord), 0);
}

// ---- QUERY_DEV_LIM, QUERY_ADAPTER

TEST_F(Commands, DeviceLimits)
{
    hghca_dev_lim lim;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_DEV_LIM, lim), 0);
    // The table of 4.1.
    EXPECT_EQ(lim.log_max_qps, 16);
    EXPECT_EQ(lim.log_reserved_qps, 3);
    EXPECT_EQ(lim.log_max_cqs, 17);
    EXPECT_EQ(lim.log_reserved_cqs, 0);
    EXPECT_EQ(lim.log_max_eqs, 6);
    EXPECT_EQ(lim.log_reserved_eqs, 0);
    EXPECT_EQ(lim.log_max_mpts, 19);
    EXPECT_EQ(lim.log_reserved_lkeys, 0);
    EXPECT_EQ(lim.log_max_mtts, 27);
    EXPECT_EQ(lim.log_reserved_mtts, 0);
    EXPECT_EQ(lim.log_max_pds, 20);
    EXPECT_EQ(lim.log_reserved_pds, 0);
    EXPECT_EQ(be16(lim.log_max_qp_sz), 14);
    EXPECT_EQ(be16(lim.log_max_cq_sz), 22);
    EXPECT_EQ(lim.log_max_gids, 7);
    EXPECT_EQ(lim.log_max_pkeys, 0);
    EXPECT_EQ(lim.mtt_entry_sz, 8);
    EXPECT_EQ(be16(lim.qpc_entry_sz), 2048);
    EXPECT_EQ(be16(lim.cqc_entry_sz), 128);
    EXPECT_EQ(be16(lim.eqc_entry_sz), 64);
    EXPECT_EQ(be16(lim.mpt_entry_sz), 64);
    EXPECT_EQ(field_get(HGHCA_DEV_LIM_MTU_MASK, lim.mtu_width), 5u);
    EXPECT_EQ(field_get(HGHCA_DEV_LIM_PORTS_MASK, lim.vl_ports), 1u);
    // 20h: ack_delay 0, max_mtu 5, max_port_width 2, max_vl 1, num_ports 1.
    EXPECT_EQ(std::memcmp(host.at(driver.out_mailbox() + 0x20), "\x00\x52\x00\x11", 4), 0);
    EXPECT_EQ(lim.log_min_page_sz, 12);
    EXPECT_EQ(lim.log_max_page_sz, 30);
    EXPECT_EQ(lim.max_sg, 32);
    EXPECT_EQ(be16(lim.max_desc_sz), 1008);
    EXPECT_EQ(lim.max_sg_rq, 32);
    EXPECT_EQ(be16(lim.max_desc_sz_rq), 1008);
    EXPECT_EQ(lim.max_rd_atomic, 16);
    EXPECT_EQ(lim.max_dest_rd_atomic, 16);
    EXPECT_EQ(lim.log_max_msg, 31);
    EXPECT_EQ(lim.log_max_uars, 11);
    EXPECT_EQ(be16(lim.num_vectors), 64);
    EXPECT_EQ(be64(lim.max_icm_sz), 1ull << 32);
    EXPECT_EQ(be32(lim.revision), 1u);
    EXPECT_EQ(be32(lim.caps), 0xf7fffffu);
    EXPECT_EQ(lim.log_max_srqs, 16);
    EXPECT_EQ(lim.log_max_srq_sz, 14);
    EXPECT_EQ(lim.max_sg_srq, 32);
    EXPECT_EQ(be16(lim.srqc_entry_sz), 128);
    EXPECT_EQ(be16(lim.num_counter_sets), 256);
    EXPECT_EQ(lim.log_max_mcgs, 13);
    EXPECT_EQ(lim.qps_per_mcg, 56);
    EXPECT_EQ(be16(lim.mcg_entry_sz), 256);
    EXPECT_EQ(lim.log_max_flows, 12);
    EXPECT_EQ(lim.max_flow_masks, 64);
    EXPECT_EQ(lim.qps_per_flow, 56);
    EXPECT_EQ(be32(lim.clock_khz), 1000000u);
    EXPECT_EQ(lim.log_device_memory, 16);
    EXPECT_EQ(lim.log_max_rss, 10);
    EXPECT_EQ(lim.log_max_rss_size, 9);
    EXPECT_EQ(lim.moderation_scale, 1);
    // The rest of the mailbox is zero.
    for (unsigned i = sizeof(lim); i < HGHCA_MAILBOX_SIZE; i++)
        ASSERT_EQ(host.at(driver.out_mailbox())[i], 0) << i;
}

TEST_F(Commands, Adapter)
{
    hghca_adapter adapter;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_ADAPTER, adapter), 0);
    EXPECT_EQ(be64(adapter.node_guid), 0x001122fffe334455u);  // EUI-64 of 02:11:22:33:44:55
    EXPECT_NE(adapter.board_id, 0u);

    FakeHost other;
    Config config = test_config(other);
    config.node_guid = 0x1122334455667788;
    Device named(other, config);
    TestDriver d(other, named);
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_ADAPTER, adapter), 0);
    EXPECT_EQ(be64(adapter.node_guid), 0x1122334455667788u);
    // NodeInfo has it too, and the GUID of the port stays that of the MAC address.
    d.start(0);
    std::memcpy(other.at(d.in_mailbox()), "\x01\x01\x01\x01", 4);
    other.at(d.in_mailbox())[17] = 0x11;
    ASSERT_EQ(d.command(HGHCA_CMD_MAD_IFC, d.in_mailbox(), 1, 0, d.out_mailbox()).status, 0);
    __be64 guids[2];   // of the node and of the port
    std::memcpy(guids, other.at(d.out_mailbox() + 76), sizeof(guids));
    EXPECT_EQ(be64(guids[0]), 0x1122334455667788u);
    EXPECT_EQ(be64(guids[1]), 0x001122fffe334455u);
}

// The document's tables end at 37h of QUERY_DEV_LIM, and have the board_id alone in QUERY_ADAPTER.
TEST_F(Commands, TheBaseHasNothingBeyondTheDocument)
{
    ASSERT_EQ(driver.command(HGHCA_CMD_QUERY_DEV_LIM, 0, 0, 0, driver.out_mailbox()).status, 0);
    FakeHost other;
    Config config = test_config(other);
    config.profile = Profile::Base;
    Device base(other, config);
    TestDriver d(other, base);
    ASSERT_EQ(d.command(HGHCA_CMD_QUERY_DEV_LIM, 0, 0, 0, d.out_mailbox()).status, 0);
    const uint8_t *limits = other.at(d.out_mailbox());
    EXPECT_EQ(std::memcmp(limits, host.at(driver.out_mailbox()), 0x38), 0);
    for (unsigned i = 0x38; i < HGHCA_MAILBOX_SIZE; i++)
        ASSERT_EQ(limits[i], 0) << i;
    ASSERT_EQ(d.command(HGHCA_CMD_QUERY_ADAPTER, 0, 0, 0, d.out_mailbox()).status, 0);
    for (unsigned i = 0; i < HGHCA_MAILBOX_SIZE; i++)
        ASSERT_TRUE(!limits[i] || (i >= 0x18 && i < 0x20)) << i;
    for (unsigned bit = 0; bit < 32; bit++)
        EXPECT_EQ(d.init_hca(1u << bit), HGHCA_CMD_STAT_BAD_PARAM) << bit;
    d.start(0);
    for (uint32_t op = 0; op < 0x1000; op++) {
        constexpr uint32_t kDocument[] = {0x003, 0x006, 0x007, 0x008, 0x00d, 0x00f, 0x011, 0x012, 0x013, 0x014,
                                          0x016, 0x017, 0x019, 0x01a, 0x01b, 0x01c, 0x01d, 0x01e, 0x01f, 0x020, 0x021,
                                          0x022, 0x023, 0x024, 0x02c, 0x02d, 0x031, 0x038, 0xff9, 0xffa};
        const bool known = std::find(std::begin(kDocument), std::end(kDocument), op) != std::end(kDocument);
        if (known)
            continue;
        EXPECT_EQ(d.command(op, d.in_mailbox(), 1, 0, d.out_mailbox()).status, HGHCA_CMD_STAT_BAD_OP) << op;
    }
}

TEST_F(Commands, FixedInModifier)
{
    EXPECT_EQ(driver.command(HGHCA_CMD_QUERY_DEV_LIM, 0, 1, 0, driver.out_mailbox()).status,
              HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.command(HGHCA_CMD_QUERY_PORT, 0, 2, 0, driver.out_mailbox()).status, HGHCA_CMD_STAT_BAD_PARAM);
}

// ---- INIT_HCA, CLOSE_HCA

TEST_F(Commands, InitOnceOnly)
{
    EXPECT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA).status, HGHCA_CMD_STAT_BAD_SYS_STATE);
    EXPECT_EQ(driver.init_hca(), 0);
    EXPECT_EQ(driver.init_hca(), HGHCA_CMD_STAT_BAD_SYS_STATE);
    EXPECT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    EXPECT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA).status, HGHCA_CMD_STAT_BAD_SYS_STATE);
    EXPECT_EQ(driver.init_hca(), 0);
    driver.reset();
    EXPECT_EQ(driver.init_hca(), 0);
}

struct InitCase {
    const char *what;
    uint64_t qpc, cqc, eqc, mpt, mtt;
    uint32_t caps;
    uint8_t status;
};

constexpr uint64_t kMega = 1 << 20;
constexpr uint64_t kIcm = 1ull << 32;
constexpr uint32_t kUnknownCap = std::bit_ceil(uint32_t(HGHCA_CAP_ALL));
static_assert(std::has_single_bit(kUnknownCap) && !(HGHCA_CAP_ALL & kUnknownCap));
static_assert(!(HGHCA_CAP_ALL >> 31));

const InitCase kInitCases[] = {
    {"small", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 10, kMega, 0x7f, 0},
    {"no capability", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 10, kMega, 0, 0},
    {"largest", 0 | 16, 128 * kMega | 17, 144 * kMega | 6, 0 | 19, 32 * kMega, 0x7f, 0},
    {"one entry each", 0, 4096, 8192, 0, 4096, 0, 0},
    {"256-aligned, not more", 0x100 | 8, kMega | 8, 0xc0100 | 4, 0x100 | 10, kMega, 0, 0},
    {"MTTs before the MPTs", 0 | 8, kMega | 8, 2 * kMega | 4, kMega | 10, 0, 0, 0},
    {"up to the end", (kIcm - 2048 * 256) | 8, 0 | 8, kMega | 4, (kIcm - 65536) | 10, 0, 0, 0},
    {"unknown capability", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 10, kMega, kUnknownCap, HGHCA_CMD_STAT_BAD_PARAM},
    {"high capability", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 10, kMega, 1u << 31, HGHCA_CMD_STAT_BAD_PARAM},
    {"too many QPs", 0 | 17, 512 * kMega | 8, 600 * kMega | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"too many CQs", 0 | 8, kMega | 18, 512 * kMega | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"too many EQs", 0 | 8, kMega | 8, 2 * kMega | 7, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"too many MPTs", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 20, 256 * kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"log 64", 0 | 64, kMega | 8, 2 * kMega | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"log 255", 0 | 8, kMega | 255, 2 * kMega | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"QPC past the end", (kIcm - 2048 * 255 - 256) | 8, 0 | 8, kMega | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"CQC outside", 0 | 8, kIcm | 8, kMega | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"EQC far outside", 0 | 8, kMega | 8, ~0xffull | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"MTT outside", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 10, kIcm, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"MTT with a count", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 10, kMega | 10, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"QPC over CQC", 0 | 10, kMega | 8, 4 * kMega | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"CQC over EQC", 0 | 8, kMega | 8, (kMega + 1024) | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"QPC over EQC", 0 | 8, kMega | 8, 4096 | 4, 0 | 10, kMega, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"MTT in the MPTs", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 10, 65536 - 256, 0, HGHCA_CMD_STAT_BAD_PARAM},
    {"MTT behind the MPTs", 0 | 8, kMega | 8, 2 * kMega | 4, 0 | 10, 65536, 0, 0},
};

TEST_F(Commands, InitLayouts)
{
    for (const InitCase &c : kInitCases) {
        driver.reset();
        hghca_init_hca init{};
        init.qpc_base = be64(c.qpc);
        init.cqc_base = be64(c.cqc);
        init.eqc_base = be64(c.eqc);
        init.mpt_base = be64(c.mpt);
        init.mtt_base = be64(c.mtt);
        init.caps = be32(c.caps);
        EXPECT_EQ(driver.post(HGHCA_CMD_INIT_HCA, init), c.status) << c.what;
        EXPECT_EQ(device.initialized, c.status == 0) << c.what;
        EXPECT_EQ(device.caps, c.status ? 0 : c.caps) << c.what;
    }
}

// A layout that does with all that the device knows: what is refused is the bit.
TEST_F(Commands, EachUnknownCapabilityIsRefused)
{
    for (unsigned bit = 0; bit < 32; bit++) {
        const bool known = kFullCaps >> bit & 1;
        driver.reset();
        EXPECT_EQ(driver.post(HGHCA_CMD_INIT_HCA, driver.init_mailbox(kFullCaps | 1u << bit)),
                  known ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_PARAM)
            << "bit " << bit;
    }
}

TEST_F(Commands, CapabilitiesThatAreOffTakeTheirCommandsAway)
{
    struct {
        uint32_t op, cap;
    } rows[] = {{HGHCA_CMD_SET_GID, HGHCA_CAP_GID_TABLE},
                {HGHCA_CMD_SET_PORT, HGHCA_CAP_PORT},
                {HGHCA_CMD_QUERY_STATS, HGHCA_CAP_STATS},
                {HGHCA_CMD_READ_ERROR_BUFFER, HGHCA_CAP_STATS}};
    hghca_port port{};
    port.mtu = be32(1500);
    for (auto &row : rows) {
        driver.init(kFullCaps & ~row.cap);
        driver.post(HGHCA_CMD_NOP, port, HGHCA_NOP_IN_MODIFIER);  // leaves a mailbox that would do
        EXPECT_EQ(driver.command(row.op, driver.in_mailbox(), 1, 0, driver.out_mailbox()).status,
                  HGHCA_CMD_STAT_BAD_OP);
        driver.init(row.cap);
        driver.post(HGHCA_CMD_NOP, port, HGHCA_NOP_IN_MODIFIER);
        EXPECT_EQ(driver.command(row.op, driver.in_mailbox(), 1, 0, driver.out_mailbox()).status, 0);
    }
}

TEST_F(Commands, CloseDropsEverything)
{
    driver.start();
    auto mr = driver.create_mr(0x10000, 8192);
    auto cq = driver.create_cq(4);
    auto qp = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
    ASSERT_EQ(driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, qp.qpn, HGHCA_SPECIAL_QP_GSI).status, 0);
    ASSERT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    EXPECT_FALSE(device.cqs->exists(Cqn(cq.cqn)));
    EXPECT_EQ(device.memory->find(Key(mr.key)), nullptr);
    EXPECT_FALSE(device.eqs->takes(HGHCA_EVENT_CMD));
    EXPECT_EQ(device.gsi_qpn, Qpn(0));
    // ICM is gone too: mapping the same addresses is not busy.
    ASSERT_EQ(driver.init_hca(), 0);
    driver.map_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc, 4096);
}

// ---- commands by event

class EventCommands : public DeviceTest {};

TEST_F(EventCommands, ToldByAnEqe)
{
    driver.start();
    host.vectors.clear();
    auto polled_status = driver.hcr(HGHCA_HCR_STATUS) >> 24;
    auto r = driver.command(HGHCA_CMD_HW2SW_MPT, 0, 1000, 0, 0x1234567812345678, true, 0x4321);
    EXPECT_EQ(r.status, polled_status);
    EXPECT_EQ(host.take_vectors(0), 1u);
    hghca_eqe eqe;
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.type, HGHCA_EVENT_CMD);
    EXPECT_EQ(be16(eqe.event.cmd.token), 0x4321);
    EXPECT_EQ(eqe.event.cmd.status, HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(be32(eqe.event.cmd.out_param_h), 0x12345678u);
    EXPECT_EQ(be32(eqe.event.cmd.out_param_l), 0x12345678u);
    EXPECT_FALSE(driver.poll(driver.async, eqe));
}

TEST_F(EventCommands, ManyUnderWay)
{
    driver.start();
    for (uint16_t token = 1; token <= 100; token++)
        driver.command(token % 2 ? HGHCA_CMD_NOP : 0x777, 0, HGHCA_NOP_IN_MODIFIER, 0, 0, true, token);
    hghca_eqe eqe;
    for (uint16_t token = 1; token <= 100; token++) {
        ASSERT_TRUE(driver.poll(driver.async, eqe));
        EXPECT_EQ(be16(eqe.event.cmd.token), token);
        EXPECT_EQ(eqe.event.cmd.status, token % 2 ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_OP);
    }
}

TEST_F(EventCommands, WithoutAnEqItFailsAsIfPolled)
{
    driver.reset();
    EXPECT_EQ(driver.command(HGHCA_CMD_QUERY_DEV_LIM, 0, 0, 0, driver.out_mailbox(), true).status,
              HGHCA_CMD_STAT_BAD_SYS_STATE);
    driver.init();
    EXPECT_EQ(driver.command(HGHCA_CMD_NOP, 0, HGHCA_NOP_IN_MODIFIER, 0, 0, true).status,
              HGHCA_CMD_STAT_BAD_SYS_STATE);
    driver.start();
    ASSERT_EQ(driver.map_eq(driver.async.eqn, 1ull << HGHCA_EVENT_CMD, true), 0);
    EXPECT_EQ(driver.command(HGHCA_CMD_NOP, 0, HGHCA_NOP_IN_MODIFIER, 0, 0, true).status,
              HGHCA_CMD_STAT_BAD_SYS_STATE);
}

TEST_F(EventCommands, TheOneThatTakesTheEqAwayIsToldInTheHcr)
{
    driver.start();
    EXPECT_EQ(driver.command(0x777).status, HGHCA_CMD_STAT_BAD_OP);
    EXPECT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA, 0, 0, 0, 0, true).status, 0);
    EXPECT_FALSE(device.initialized);
}

// ---- SET_GID, ports, statistics

class PortCommands : public DeviceTest {
protected:
    PortCommands() { driver.start(); }
    static constexpr uint8_t kMac[6] = {0x02, 1, 2, 3, 4, 5};
};

TEST_F(PortCommands, SetAndClearGid)
{
    uint8_t v4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 10, 0, 1};
    uint8_t v6[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    ASSERT_EQ(driver.set_gid(0, v4, kMac), 0);
    ASSERT_EQ(driver.set_gid(127, v6, kMac, 4095), 0);
    EXPECT_EQ(driver.set_gid(128, v6, kMac), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(driver.set_gid(~0u, v6, kMac), HGHCA_CMD_STAT_BAD_INDEX);
    const GidEntry &a = device.port.addresses.gids()[0], &b = device.port.addresses.gids()[127];
    EXPECT_TRUE(a.valid && a.is_ipv4() && !a.tagged);
    EXPECT_EQ(a.ipv4(), 0x0a0a0001u);
    EXPECT_EQ(a.mac, (std::array<uint8_t, 6>{0x02, 1, 2, 3, 4, 5}));
    EXPECT_TRUE(b.valid && !b.is_ipv4() && b.tagged);
    EXPECT_EQ(b.vlan, 4095);
    // Clearing takes no mailbox.
    EXPECT_EQ(driver.command(HGHCA_CMD_SET_GID, 1, 0, HGHCA_GID_CLEAR).status, 0);
    EXPECT_FALSE(device.port.addresses.gids()[0].valid);
    EXPECT_TRUE(device.port.addresses.gids()[127].valid);
    driver.reset();
    EXPECT_FALSE(device.port.addresses.gids()[127].valid);
}

TEST_F(PortCommands, SetAndQueryPort)
{
    hghca_port p;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_PORT, p, 1), 0);
    EXPECT_EQ(be32(p.mac_h), 0x02112233u);
    EXPECT_EQ(be16(p.mac_l), 0x4455);
    EXPECT_TRUE(be32(p.flags) & HGHCA_PORT_LINK_UP);
    uint32_t max = be32(p.max_mtu);
    EXPECT_GE(max, 9000u);
    ASSERT_EQ(driver.set_port(kMac, max, HGHCA_PORT_PROMISC | HGHCA_PORT_ALLMULTI), 0);
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_PORT, p, 1), 0);
    EXPECT_EQ(be32(p.flags), HGHCA_PORT_LINK_UP | HGHCA_PORT_PROMISC | HGHCA_PORT_ALLMULTI);
    EXPECT_EQ(be32(p.mac_h), 0x02010203u);
    EXPECT_EQ(be16(p.mac_l), 0x0405);
    EXPECT_EQ(be32(p.mtu), max);
    EXPECT_EQ(driver.set_port(kMac, 68), 0);
    EXPECT_EQ(driver.set_port(kMac, 67), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.set_port(kMac, max + 1), HGHCA_CMD_STAT_BAD_PARAM);
    uint8_t multicast[6] = {1, 0, 0x5e, 0, 0, 1};
    EXPECT_EQ(driver.set_port(multicast, 1500), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.command(HGHCA_CMD_SET_PORT, driver.in_mailbox(), 2).status, HGHCA_CMD_STAT_BAD_PARAM);
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_PORT, p, 1), 0);
    EXPECT_EQ(be32(p.mtu), 68u);  // what was refused changed nothing
    driver.reset();
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_PORT, p, 1), 0);
    EXPECT_EQ(be32(p.mac_h), 0x02112233u);
    EXPECT_EQ(be32(p.mtu), 1500u);
}

TEST_F(PortCommands, LinkChangesAreToldOnce)
{
    hghca_eqe eqe;
    device.set_link(true);
    EXPECT_FALSE(driver.poll(driver.async, eqe));
    device.set_link(false);
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.type, HGHCA_EVENT_PORT_CHANGE);
    EXPECT_EQ(eqe.subtype, HGHCA_PORT_CHANGE_DOWN);
    EXPECT_EQ(be32(eqe.event.port_change.port), 1u << 28);
    hghca_port p;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_PORT, p, 1), 0);
    EXPECT_FALSE(be32(p.flags) & HGHCA_PORT_LINK_UP);
    device.set_link(true);
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.subtype, HGHCA_PORT_CHANGE_UP);
    // The link does not care about resets.
    device.set_link(false);
    driver.reset();
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_PORT, p, 1), 0);
    EXPECT_FALSE(be32(p.flags) & HGHCA_PORT_LINK_UP);
}

TEST_F(PortCommands, Statistics)
{
    uint64_t stats[512];
    device.counters_.tx_packets = 7;
    device.counters_.rx_packets = 0x1122334455667788;
    device.counters_.wqe_bad = 9;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_STATS, stats), 0);
    EXPECT_EQ(be64(stats[HGHCA_COUNTER_tx_packets]), 7u);
    EXPECT_EQ(be64(stats[HGHCA_COUNTER_rx_packets]), 0x1122334455667788u);
    EXPECT_EQ(be64(stats[HGHCA_COUNTER_wqe_bad]), 9u);
    for (unsigned i = HGHCA_COUNTER_NUM; i < 512; i++)
        EXPECT_EQ(stats[i], 0u);
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_STATS, stats, HGHCA_COUNTER_wqe_bad), 0);
    EXPECT_EQ(be64(stats[0]), 9u);
    for (uint32_t first : {uint32_t(HGHCA_COUNTER_NUM), 1u << 31, ~0u}) {
        ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_STATS, stats, first), 0);
        for (uint64_t s : stats)
            EXPECT_EQ(s, 0u);
    }
}

TEST_F(PortCommands, TracingSaysWhatACommandDid)
{
    host.trace_on = true;
    driver.command(0x777);
    ASSERT_EQ(host.traces.size(), 1u);
    EXPECT_NE(host.traces[0].find("0x777"), std::string::npos);
}

}  // namespace
}  // namespace hghca::test::commands_test
