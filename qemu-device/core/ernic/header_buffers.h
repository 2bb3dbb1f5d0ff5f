// SPDX-License-Identifier: GPL-2.0-or-later
// The header and SGL buffers of the ETRNIC: the headers of a packet go to memory, and from there to the link (000:546),
// by a list that names them (000:548).
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "ernic/register_file.h"
#include "ernic/stats.h"
#include "host.h"

namespace hghca::ernic {

class HeaderBuffers {
public:
    HeaderBuffers(RegisterFile &registers, Stats &stats, Host &host)
        : registers_(registers), stats_(stats), host_(host)
    {
    }

    void reset() { next_ = next_list_ = 0; }
    // As Host::send_frame(). A packet whose buffer is not there is lost.
    FrameSent send(std::span<const iovec> parts);

private:
    // Of memory on the bus.
    struct Range {
        uint32_t address, bytes;
    };

    // Lists that are long enough.
    uint32_t lists() const;
    bool through_list(Range &headers, uint32_t rest_bytes);
    void finish_list();
    void show_lists(uint32_t tail, uint32_t head);

    RegisterFile &registers_;
    Stats &stats_;
    Host &host_;
    uint32_t next_ = 0;        // buffer
    uint32_t next_list_ = 0;
};

}  // namespace hghca::ernic
