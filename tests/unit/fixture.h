// SPDX-License-Identifier: GPL-2.0-or-later
// One device in one world, with its driver.
#pragma once

#include <gtest/gtest.h>

#include "device.h"
#include "driver.h"
#include "fake_host.h"
#include "jingzhao/cq.h"
#include "jingzhao/eq.h"
#include "jingzhao/qp_table.h"

namespace hghca::test {

inline Config test_config(FakeHost &host, uint32_t cache_entries = 0)
{
    Config config{};
    config.mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
    config.cache_entries = cache_entries;
    config.device_memory = host.on_device();
    return config;
}

class DeviceTest : public ::testing::Test {
protected:
    explicit DeviceTest(uint32_t cache_entries = 0) : device(host, test_config(host, cache_entries)), driver(host, device) {}

    FakeHost host;
    Device device;
    TestDriver driver;
};

// The number of EQEs of `type` that wait in `eq`; takes all.
inline unsigned take_events(TestDriver &driver, TestDriver::Eq &eq, unsigned type)
{
    unsigned n = 0;
    hghca_eqe eqe;
    while (driver.poll(eq, eqe))
        n += eqe.type == type;
    return n;
}

}  // namespace hghca::test
