// SPDX-License-Identifier: GPL-2.0-or-later
// The protection domain table: what an R_Key of a peer names. A WQE names memory by its bus address, without a key.
#pragma once

#include <cstdint>

#include "ernic/register_file.h"
#include "host.h"
#include "transport/function.h"

namespace hghca::ernic {

// An entry is one range of addresses. It is contiguous on the bus, or with the extension PAGES a list of 64-bit bus
// addresses of pages of 4 KB, the first of which holds the first byte of the range.
class Protection final : public KeySpace {
public:
    // `strict`: a peer may name only what the real core takes.
    Protection(const RegisterFile &registers, Host &host, bool strict)
        : registers_(registers), host_(host), strict_(strict)
    {
    }

    Allowed check(Key key, KeyUser user, uint64_t va, uint64_t length, Access access) override;
    Found locate(Key key, KeyUser user, uint64_t va, uint64_t length, Access access, PacketSegments &out,
                 AbsentPage &absent) override;
    bool on_demand(Key) override { return false; }
    // The driver invalidates (004:72).
    Allowed invalidate_remotely(KeyUser, Key) override { return Allowed::Yes; }

private:
    static constexpr uint64_t kPageBytes = 4096;

    bool usable(Key key, KeyUser user, uint64_t va, uint64_t length, Access access) const;
    Found locate_pages(uint32_t entry, uint64_t va, uint64_t length, bool write, PacketSegments &out) const;
    Found push(uint64_t dma, uint64_t length, bool write, PacketSegments &out) const;
    uint64_t range_start(uint32_t entry) const;

    const RegisterFile &registers_;
    Host &host_;
    const bool strict_;
};

}  // namespace hghca::ernic
