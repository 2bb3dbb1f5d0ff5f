# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception that ends the tool with a message instead of a traceback."""


class ToolError(Exception):
    """Something the user can act on.

    what: one sentence, what failed.
    cure: one sentence, what to do about it, or None.
    log:  path of a log file that says more, or None.
    """

    def __init__(self, what, cure=None, log=None):
        super().__init__(what)
        self.what = what
        self.cure = cure
        self.log = log

    def __str__(self):
        lines = [self.what]
        if self.log:
            lines.append(f"  log:  {self.log}")
        if self.cure:
            lines.append(f"  cure: {self.cure}")
        return "\n".join(lines)


class UsageError(ToolError):
    """Wrong arguments: exit status 2."""
