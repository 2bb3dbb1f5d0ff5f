// SPDX-License-Identifier: GPL-2.0-or-later
// The table of section 4 of the interface document.
#pragma once

#include <cstdint>

#include "hcr.h"

namespace hghca {

enum : uint8_t {
    kInput = 1,          // in_param is a mailbox
    kOutput = 2,         // out_param is a mailbox
    kBeforeInit = 4,     // works before INIT_HCA
    kFixedModifier = 8,  // in_modifier must be the row's
};

constexpr uint32_t kAnyModifier = ~0u;  // the handler judges op_modifier

struct CommandInterface::Row {
    uint16_t op;
    Handler handler;
    uint8_t flags;
    uint32_t op_modifiers = 1;   // bit m: op_modifier m is allowed
    uint32_t in_modifier = 0;
    uint32_t caps = 0;           // without them the command is off
    uint32_t no_inbox = 0;       // bit m: op_modifier m takes no mailbox
    Handler afterwards = nullptr;   // changes what the output tells; once that stands in its mailbox
};

}  // namespace hghca
