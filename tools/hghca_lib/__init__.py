# SPDX-License-Identifier: GPL-2.0-or-later
"""What tools/hghca is made of: one noun a file."""
