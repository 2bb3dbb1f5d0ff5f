// SPDX-License-Identifier: GPL-2.0-or-later
// What the device counts that no register shows.
#pragma once

#include <cstdint>

namespace hghca::ernic {

// Name, meaning.
#define ERNIC_STATS(X)                                                                          \
    X(bad_accesses, "accesses of registers that are not of four aligned bytes")                 \
    X(bad_indices, "SQPI and RQCI that the queue cannot have, which are ignored")               \
    X(pin_doorbells, "doorbells that go by pins (QPCONF bit 4 is 0), so that none is written")  \
    X(dma_errors, "writes of doorbells, CQEs, records and error entries to memory that is not there") \
    X(illegal_wqes, "WQEs that are discarded")                                                  \
    X(fatal, "QPs that became fatal")                                                           \
    X(mads_dropped, "MADs that found no slot, or none that is long enough")                     \
    X(records, "records and entries written")                                                               \
    X(frames_ignored, "frames that are not of RoCE v2, where no Ethernet adapter is behind the device") \
    X(frames_passed, "frames from the link that the Ethernet adapter has")                      \
    X(frames_overrun, "frames from the link for the Ethernet adapter, which took no more")      \
    X(frames_forwarded, "frames from the Ethernet adapter that are on the link")

// Of the port, since the last reset: fields of Counters.
#define ERNIC_PORT_COUNTERS(X)                                                                  \
    X(rx_pause, "pause frames that were obeyed")                                                \
    X(tx_pause, "pause frames sent")                                                            \
    X(rx_buffer_overflow, "frames that found the receive buffer of their class full")

struct Stats {
#define ERNIC_STATS_FIELD(name, text) uint64_t name = 0;
    ERNIC_STATS(ERNIC_STATS_FIELD)
#undef ERNIC_STATS_FIELD
};

}  // namespace hghca::ernic
