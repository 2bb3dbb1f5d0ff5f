# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca ci`: build a kernel's tree, boot it on RDMA devices, run a plan of tests, and compare with an earlier run."""
