// SPDX-License-Identifier: GPL-2.0-or-later
// The header buffers of the ETRNIC: the headers of a packet go to memory, and from there to the link (000:546).
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
    HeaderBuffers(const RegisterFile &registers, Stats &stats, Host &host)
        : registers_(registers), stats_(stats), host_(host)
    {
    }

    void reset() { next_ = 0; }
    // As Host::send_frame(). A packet whose buffer is not there is lost.
    FrameSent send(std::span<const iovec> parts);

private:
    const RegisterFile &registers_;
    Stats &stats_;
    Host &host_;
    uint32_t next_ = 0;   // buffer
};

}  // namespace hghca::ernic
