// SPDX-License-Identifier: GPL-2.0-or-later
// The one seam between the device core and the world around it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace hghca {

enum class [[nodiscard]] FrameSent : uint8_t {
    Yes,        // or lost on the way
    LinkFull,   // not sent: the link takes nothing now
};

// Who has made the ICRC of a frame.
enum class Icrc : uint8_t {
    Unknown,   // software or another machine has, or it is absent: the receiver verifies
    Device,    // a device core, over the frame exactly as it is here
};

// Everything the core needs from outside. The core is deterministic: given the
// same calls and the same answers from its Host it does the same.
//
// The core is called from one thread at a time, by any thread, under a lock that
// is the caller's: in QEMU the BQL. A Host method may call back into *another*
// device (a frame sent is a frame received there), never into the device that
// called it; so all devices on one link are under one lock. Counters are read
// under it too. Devices that never meet share nothing, and need no common lock.
//
// Guest memory is under no lock. What software and the device use at the same
// time there is read and written in one access, and in order: the owner of a CQE
// or EQE, doorbell records, the status record, the link from a WQE to the next one.
class Host {
public:
    virtual ~Host() = default;

    // Direct pointer to guest memory [dma, dma + len), or nullptr when it is not
    // plain RAM or not contiguous on the host. Valid until Device::dma_changed().
    virtual uint8_t *map(uint64_t dma, uint64_t len, bool write) = 0;
    // Must follow every write through a pointer that map() gave.
    virtual void dirty(uint64_t dma, uint64_t len) = 0;
    // DMA by copy, for what map() refuses. False: no memory there, nothing moved.
    virtual bool read(uint64_t dma, void *buffer, uint64_t len) = 0;
    virtual bool write(uint64_t dma, const void *buffer, uint64_t len) = 0;

    // Calls `change` once with a pointer to the eight bytes at `dma`, a multiple of 8, good until it returns: for an
    // atomic operation on memory that map() refuses. False: no memory there, `change` was not called.
    using Change = void (*)(uint64_t *word, void *context);
    virtual bool update(uint64_t dma, Change change, void *context) = 0;

    // Sends MSI-X message number `vector`.
    virtual void raise_vector(unsigned vector) = 0;
    // Deasserts the interrupt that a vector asserts while MSI-X is off.
    virtual void lower_interrupt() = 0;

    // Sends an Ethernet frame without FCS. With LinkFull the Host calls Device::link_ready() when the link takes frames
    // again. `icrc` holds for this call: whoever keeps or changes the frame drops it.
    virtual FrameSent send_frame(std::span<const iovec> parts, Icrc icrc) = 0;

    // A frame from the link that is for the Ethernet adapter behind the device. False: that takes no more now, and the
    // frame is lost. Only a device that shares its port with such an adapter calls it.
    virtual bool pass_frame(std::span<const iovec> /*parts*/) { return false; }

    // One timer: Device::timer() at or after `deadline_ns` on the clock of
    // now_ns(); UINT64_MAX turns it off.
    virtual void set_timer(uint64_t deadline_ns) = 0;
    virtual uint64_t now_ns() = 0;
    virtual uint64_t random() = 0;

    // Asks for Device::run() soon, from outside any call into the device.
    virtual void schedule() = 0;

    enum class Trace { Success, Error, Undefined };
    // One line for the trace log; only called when tracing() says so.
    virtual bool tracing() { return false; }
    virtual void trace(Trace, const char * /*text*/) {}
};

}  // namespace hghca
