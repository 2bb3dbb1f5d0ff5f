// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/transport.h"

#include <algorithm>

#include "device.h"
#include "jingzhao/queues.h"
#include "transport/engine.h"

namespace hghca {

struct Transport::State {
    explicit State(Device &device) : engine(device) {}
    Engine engine;
};

Transport::Transport(Device &device) : device_(device), state_(std::make_unique<State>(device)) {}

Transport::~Transport() = default;

void Transport::clear()
{
    state_->engine.clear();
}

void Transport::doorbell(const SendDoorbell &db)
{
    Engine &engine = state_->engine;
    Qp *qp = device_.initialized ? device_.qps->find(db.qpn) : nullptr;
    if (!qp) {
        device_.counters_.db_bad_object++;
        return;
    }
    if (qp->a.usr_page != db.uar_page) {
        device_.counters_.db_bad_page++;
        return;
    }
    if (qp->state < QpState::Rts) {
        device_.counters_.db_bad_state++;
        return;
    }
    engine.send_queue.ring(*qp, db);
    if (qp->state == QpState::Error)
        engine.flush(*qp);
    else
        engine.schedule(*qp);
}

void Transport::state_changed(Qp &qp, QpState from)
{
    state_->engine.state_changed(qp, from);
}

uint8_t Transport::resume(Qp &qp, uint32_t what) { return state_->engine.page_faults.resume(qp, what); }

uint32_t Transport::reduced_kbps(Qp &qp)
{
    state_->engine.now_ns = device_.host.now_ns();
    return state_->engine.congestion.reduced_kbps(qp);
}

void Transport::restart_flow_control()
{
    state_->engine.now_ns = device_.host.now_ns();
    state_->engine.flow_control.restart();
}

void Transport::receive(const iovec *parts, int count)
{
    if (device_.initialized)
        state_->engine.receive(parts, count);
}

void Transport::flush()
{
    if (device_.initialized)
        state_->engine.flush();
}

void Transport::run()
{
    if (device_.initialized)
        state_->engine.run();
}

bool Transport::has_work() const
{
    const Engine &engine = state_->engine;
    return !engine.flushes.empty() || (!engine.link_full && (!engine.scheduler.empty() || engine.flow_control.due()));
}

uint64_t Transport::next_deadline() const
{
    const Engine &engine = state_->engine;
    return std::min(engine.timers.next(), engine.flow_control.next_deadline());
}

void Transport::expire(uint64_t now_ns)
{
    if (device_.initialized)
        state_->engine.expire(now_ns);
}

}  // namespace hghca
