// SPDX-License-Identifier: GPL-2.0-or-later
// A driver that means harm to RSNIC: any register of the initialization segment at any time, and any entry of the
// command queue; from power-on, or with a device at work.
#include <cstring>
#include <iterator>

#include "device.h"
#include "driver.h"
#include "fake_host.h"
#include "script.h"

namespace hghca::fuzz {
namespace {

using namespace hghca::test;

constexpr size_t kMemory = 1 << 20;
constexpr unsigned kTurns = 20000;
constexpr uint64_t kInitDelayNs = 1000;
constexpr unsigned kLogPackets = 2;   // of the retransmission buffer
constexpr uint32_t kNameAndSize = HGHCA_CMDQ_LOG_SIZE << 4 | HGHCA_CMDQ_LOG_STRIDE;

// The opcodes of all commands.
constexpr uint16_t kOps[] = {
#define HGHCA_FUZZ_OP(name, function, op, ...) op,
    HGHCA_COMMANDS(HGHCA_FUZZ_OP)
#undef HGHCA_FUZZ_OP
};

Config rsnic_config()
{
    Config config{};
    config.mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
    config.profile = Profile::Rsnic;
    config.slice_work = 16;
    config.init_delay_ns = kInitDelayNs;
    return config;
}

// Made once: a run is shorter than making it.
struct World {
    World() : device(host, rsnic_config()), driver(host, device), mailbox(host.alloc(4096)), queue(host.alloc(4096))
    {
        TestDriver::Layout &layout = driver.layout;
        layout.log_qps = layout.log_cqs = 5;
        layout.log_eqs = 3;
        layout.log_mpts = 8;
        layout.mtt_bytes = 16 << 10;
        layout.packet_base = host.alloc(4096ull << kLogPackets) | kLogPackets;
        mark = host.mark();
    }

    FakeHost host{kMemory};
    Device device;
    TestDriver driver;
    uint64_t mailbox, queue, mark;
};

class Script {
public:
    Script(World &world, Record first) : world_(world), device_(world.device), driver_(world.driver)
    {
        world_.host.rewind(world_.mark);
        driver_.reset();
        const uint8_t how = first.u8();
        if (how & 1)   // initializing: nothing has an effect yet
            return;
        world_.host.clock_ns += kInitDelayNs;
        turn(HGHCA_SEG_DISABLED);   // the address alone
        if (how & 2)
            initialize();
        turn(HGHCA_SEG_FULL_DRIVER);
    }
    void step(Record r)
    {
        switch (r.u8() % 12) {
        case 0:
            access(r);
            break;
        case 1: {
            const uint32_t offset = r.below(6) * 4;
            set(offset, r.u32());
            break;
        }
        case 2:
        case 3:
        case 4:
            post(r);
            break;
        case 5:
            set(HGHCA_SEG_CMDQ_DB, r.u32());
            break;
        case 6:
            change(r);
            break;
        case 7:
            command(r);
            break;
        case 8:
            world_.host.clock_ns += r.u32();
            device_.run();
            break;
        case 9:
            turn(r.u8() % 4);
            break;
        case 10:
            post_init(r);
            break;
        default:
            if (r.one_in(4))
                driver_.reset();
            else
                device_.run();
        }
        check();
    }
    // What was rung ends, whatever it was. Then the device is healed, and its queue executes commands.
    void finish()
    {
        settle();
        check();
        driver_.reset();
        require(!device_.failed() && !device_.has_work(), "a reset heals");
        require(!get(HGHCA_SEG_CMDQ_H) && get(HGHCA_SEG_CMDQ_L) == kNameAndSize, "a reset turns the queue off");
        check();
        world_.host.clock_ns += kInitDelayNs;
        turn(HGHCA_SEG_FULL_DRIVER);
        for (unsigned i = 0; i < HGHCA_CMDQ_ENTRIES; i++)
            write(i, {0, HGHCA_NOP_IN_MODIFIER, 0, 0, HGHCA_CMD_NOP, HGHCA_CMDQ_HW});
        set(HGHCA_SEG_CMDQ_DB, UINT32_MAX);
        settle();
        for (unsigned i = 0; i < HGHCA_CMDQ_ENTRIES; i++) {
            hghca_cmdq_entry entry;
            std::memcpy(&entry, slot(i), sizeof(entry));
            const uint32_t status = field_get(HGHCA_HCR_STATUS_MASK, le32(entry.hcr[HGHCA_HCR_STATUS / 4]));
            require(!entry.owner && !status, "every entry that was rung is executed");
        }
        check();
    }

private:
    struct Words {
        uint64_t in;
        uint32_t modifier;
        uint64_t out;
        uint32_t token, last, owner;
    };

    uint32_t get(uint64_t offset) { return uint32_t(device_.hcr_read(offset, 4)); }
    void set(uint64_t offset, uint32_t value) { device_.hcr_write(offset, value, 4); }
    bool initializing() { return get(HGHCA_SEG_INIT) & HGHCA_SEG_INITIALIZING; }
    uint8_t *slot(unsigned index) { return world_.host.at(world_.queue + index * sizeof(hghca_cmdq_entry)); }
    void turn(uint32_t mode)
    {
        set(HGHCA_SEG_CMDQ_H, uint32_t(world_.queue >> 32));
        set(HGHCA_SEG_CMDQ_L, uint32_t(world_.queue) | field_put(HGHCA_SEG_NIC_INTERFACE_MASK, mode));
    }
    // By the HCR: INIT_HCA with all capabilities, some ICM, and an EQ that takes every event.
    void initialize()
    {
        const TestDriver::Layout &l = driver_.layout;
        TestDriver::must(driver_.init_hca(driver_.offered()), "INIT_HCA");
        driver_.map_icm(HGHCA_ICM_CONTEXT, l.qpc, 2048ull << l.log_qps);
        driver_.map_icm(HGHCA_ICM_CONTEXT, l.cqc, 128ull << l.log_cqs);
        driver_.map_icm(HGHCA_ICM_CONTEXT, l.eqc, 64ull << l.log_eqs);
        driver_.map_icm(HGHCA_ICM_TPT, l.mpt, 64ull << l.log_mpts);
        driver_.map_icm(HGHCA_ICM_TPT, l.mtt, l.mtt_bytes);
        driver_.async = driver_.create_eq(6, 0);
        TestDriver::must(driver_.map_eq(driver_.async.eqn, ~0ull), "MAP_EQ");
    }
    void settle()
    {
        for (unsigned turns = 0; device_.has_work(); turns++) {
            require(turns < kTurns, "the device comes to rest");
            device_.run();
        }
    }
    // What the segment says holds at any time.
    void check()
    {
        const bool failed = device_.failed();
        const uint32_t health = get(HGHCA_SEG_HEALTH);
        require((get(HGHCA_SEG_CMDQ_L) & ~HGHCA_SEG_CMDQ_ADDR_MASK) == kNameAndSize, "the size of the queue is fixed");
        require(!get(HGHCA_SEG_CMDQ_DB) && !get(HGHCA_SEG_CLEAR_INT), "what can be written alone reads 0");
        require(get(HGHCA_SEG_TIMER_L) == uint32_t(world_.host.clock_ns), "the timer is the clock");
        require(bool(field_get(HGHCA_SEG_SYNDROME_MASK, health)) == failed, "a device that has failed says why");
        require(get(HGHCA_SEG_FAILURE) == (failed ? health : 0), "the health buffer has the failure");
        require(!failed || (!device_.has_work() && get(HGHCA_HCR_BASE) == UINT32_MAX),
                "a device that has failed is silent");
        require(!initializing() || !device_.has_work(), "a device that is initializing does nothing");
    }

    void access(Record &r)
    {
        const uint64_t offset = r.u16() % (HGHCA_SEG_SIZE + 0x10);
        const unsigned size = 1u << r.u8() % 4;
        device_.hcr_write(offset, r.u64(), size);
        device_.hcr_read(offset, size);
    }
    void write(unsigned index, const Words &w)
    {
        const uint32_t words[] = {uint32_t(w.in >> 32),  uint32_t(w.in),  w.modifier,
                                  uint32_t(w.out >> 32), uint32_t(w.out), w.token, w.last};
        hghca_cmdq_entry entry{};
        static_assert(std::size(words) == sizeof(entry.hcr) / sizeof(entry.hcr[0]));
        for (size_t i = 0; i < std::size(words); i++)
            entry.hcr[i] = le32(words[i]);
        entry.owner = le32(w.owner);
        std::memcpy(slot(index), &entry, sizeof(entry));
    }
    // An entry with any of the commands, and its bit.
    void post(Record &r)
    {
        const unsigned index = r.u8() % HGHCA_CMDQ_ENTRIES;
        const uint8_t how = r.u8();
        Words w{};
        w.in = how & 1 ? world_.mailbox : r.u32();
        w.out = how & 2 ? world_.mailbox : r.u32();
        const uint32_t op = how & 4 ? r.u16() : kOps[r.u8() % std::size(kOps)];
        w.modifier = how & 8 ? r.u32() : r.u8();
        w.token = r.u32();
        w.last = field_put(HGHCA_HCR_OPMOD_MASK, how >> 4 & 3) | (how & 0x40 ? HGHCA_HCR_EVENT : 0) |
                 (op & HGHCA_HCR_OP_MASK);
        w.owner = how & 0x80 ? 0 : HGHCA_CMDQ_HW;
        write(index, w);
        set(HGHCA_SEG_CMDQ_DB, 1u << index);
    }
    // INIT_HCA as a driver gives it, with some of it changed.
    void post_init(Record &r)
    {
        const unsigned index = r.u8() % HGHCA_CMDQ_ENTRIES;
        const hghca_init_hca init = driver_.init_mailbox(r.u8() & 1 ? r.u32() : 0);
        uint8_t *mailbox = world_.host.at(world_.mailbox);
        std::memcpy(mailbox, &init, sizeof(init));
        for (unsigned i = 0; i < 2; i++) {
            const uint8_t at = r.u8(), bits = r.u8();
            mailbox[at % sizeof(init)] ^= bits;
        }
        write(index, {world_.mailbox, 0, 0, 0, HGHCA_CMD_INIT_HCA, HGHCA_CMDQ_HW});
        set(HGHCA_SEG_CMDQ_DB, 1u << index);
    }
    // By the HCR, whether it takes commands or not.
    void command(Record &r)
    {
        if (initializing())
            return;   // go would not fall
        const uint16_t op = kOps[r.u8() % std::size(kOps)];
        const uint8_t modifier = r.u8(), op_modifier = r.u8() & 0xf;
        driver_.command(op, world_.mailbox, modifier, op_modifier, world_.mailbox);
    }
    void change(Record &r)
    {
        const uint16_t at = r.u16();
        for (unsigned i = 0; i < 12; i++)
            world_.host.at(at & 0x8000 ? world_.queue : world_.mailbox)[(at + i) % 4096] = r.u8();
    }

    World &world_;
    Device &device_;
    TestDriver &driver_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static World world;
    Script script(world, first_record(data, size));
    play_rest(data, size, script);
    script.finish();
    return 0;
}

}  // namespace hghca::fuzz
