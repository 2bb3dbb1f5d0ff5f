// SPDX-License-Identifier: GPL-2.0-or-later
// A row of HGHCA_COMMANDS, as the device uses it.
#pragma once

#include <cstdint>

#include "jingzhao/commands.h"

namespace hghca {

struct CommandInterface::Row {
    uint16_t op;
    const char *name;
    Handler handler;
    hghca_cmd_param in, out;
    hghca_cmd_when when;
    uint32_t in_modifier;    // the one that is allowed, or kAnyModifier
    uint32_t op_modifiers;   // bit m: op_modifier m is allowed; kAnyModifier: the handler checks it
    uint32_t caps;           // without them the command is off
    bool extension;          // the document has no such command

    static constexpr uint32_t kAnyModifier = ~0u;

    bool takes(const Command &command) const
    {
        return (in_modifier == kAnyModifier || command.in_modifier == in_modifier) &&
               (op_modifiers == kAnyModifier ||
                (command.op_modifier < 32 && op_modifiers >> command.op_modifier & 1));
    }
    bool has_input(const Command &command) const
    {
        return in == HGHCA_CMD_PARAM_MBOX || (in == HGHCA_CMD_PARAM_OPT && !command.op_modifier);
    }
    bool has_output() const { return out == HGHCA_CMD_PARAM_MBOX; }
};

}  // namespace hghca
