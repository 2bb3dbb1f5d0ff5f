# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception that ends the tool with a message instead of a traceback."""


class ToolError(Exception):
    """An error that the user can correct.

    what: one sentence, the failure.
    cure: one sentence, how to correct it, or None.
    log:  path of a log file with details, or None.
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
