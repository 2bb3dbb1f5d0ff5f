// SPDX-License-Identifier: GPL-2.0-or-later
// A guest that writes into the memory it has lent the device. With a cache of one context of each kind all of them
// are read back again and again. What the guest may take from itself is its own; the other one is to stay as it is.
#include "device.h"
#include "world.h"

namespace hghca::fuzz {
namespace {

class Script {
public:
    explicit Script(World &world) : world_(world)
    {
        world_.owns_memory[0] = true;
    }
    void step(Record r)
    {
        switch (r.u8() % 8) {
        case 0:
            world_.post(r);
            break;
        case 1:
            world_.receive(r);
            break;
        case 2:
        case 3:
        case 4:
            change(r);
            break;
        case 5:
            world_.pass_time(r);
            break;
        case 6:
            world_.poll();
            break;
        default:
            control(r);
        }
    }

private:
    struct Table {
        uint64_t dma;
        uint64_t entry;
        uint64_t count;
    };
    Table table(uint8_t which) const
    {
        const TestDriver &d = world_.net.a.driver;
        const TestDriver::Layout &l = d.layout;
        const Table all[] = {{d.qpc_dma, 2048, 1ull << l.log_qps}, {d.qpc_dma, 2048, 1ull << l.log_qps},
                             {d.cqc_dma, 128, 1ull << l.log_cqs},  {d.eqc_dma, 64, 1ull << l.log_eqs},
                             {d.srqc_dma, 128, 1ull << l.log_srqs}, {d.mcg_dma, 256, 1ull << l.log_mcgs},
                             {d.mpt_dma, 64, 1ull << l.log_mpts},  {d.mtt_dma, 8, 256}};
        return all[which % 8];
    }
    // Bytes of an entry, of the context more often than of its header; or all of another one.
    void change(Record &r)
    {
        const Table t = table(r.u8());
        const uint64_t index = r.u8() % t.count;
        uint8_t *entry = world_.net.a.host.at(t.dma + index * t.entry);
        const uint8_t how = r.u8();
        if (how % 16 == 15) {
            std::memcpy(entry, world_.net.a.host.at(t.dma + r.u8() % t.count * t.entry), t.entry);
            return;
        }
        for (unsigned n = 1 + how % 4; n; n--) {
            const uint16_t at = r.u16();
            const uint8_t value = r.u8();
            uint8_t &byte = entry[(t.entry > 16 && at & 0x8000 ? 16 + at % (t.entry - 16) : at) % t.entry];
            byte = how & 0x40 ? value : uint8_t(byte ^ value);
        }
    }
    void control(Record &r)
    {
        const uint8_t what = r.u8();
        Endpoint *e = world_.endpoint(r.u8());
        TestDriver &d = world_.net.a.driver;
        switch (what % 8) {
        case 0:
            if (e)
                d.modify(r.u8() & 1 ? HGHCA_CMD_RTS2SQD_QPEE : HGHCA_CMD_SQD2RTS_QPEE, e->qp.qpn, hghca_qpc{});
            break;
        case 1:
            if (e)
                e->node.driver.arm(e->cq);
            break;
        case 2:
            world_.serve_faults(r.u8() & 1);
            return;
        case 3:
            d.arm(d.async);
            break;
        case 4: {   // each QUERY looks at a context as it is
            static constexpr uint32_t kQueries[] = {HGHCA_CMD_QUERY_QP, HGHCA_CMD_QUERY_CQ, HGHCA_CMD_QUERY_SRQ,
                                                    HGHCA_CMD_QUERY_MPT, HGHCA_CMD_READ_MGM, HGHCA_CMD_QUERY_EQ};
            d.command(kQueries[r.u8() % 6], 0, r.u8(), 0, d.out_mailbox());
            break;
        }
        case 5: {   // each end of an object
            static constexpr uint32_t kEnds[] = {HGHCA_CMD_HW2SW_CQ, HGHCA_CMD_HW2SW_SRQ, HGHCA_CMD_HW2SW_MPT,
                                                 HGHCA_CMD_HW2SW_EQ};
            d.command(kEnds[r.u8() % 4], 0, r.u8());
            break;
        }
        case 6:
            if (e)
                d.to_error(e->qp.qpn);
            break;
        default:
            world_.net.a.host.copy_only = r.u8() & 1;
            world_.net.a.device.dma_changed();
        }
        world_.settle_now();
    }

    World &world_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Record first = first_record(data, size);
    const uint8_t mask = first.u8();
    World &world = world_of(first.u8() | 1);
    world.begin(mask & ~(1u << kRaw));
    Script script(world);
    play_rest(data, size, script);
    // A context can say that there is no end of retries: the end is when no packet is under way.
    for (unsigned i = 0; i < 64; i++)
        world.run_timers(16, 1'000'000'000);
    return 0;
}

}  // namespace hghca::fuzz
