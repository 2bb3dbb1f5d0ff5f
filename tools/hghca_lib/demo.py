# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca demo`: stock programs move data between two HCAs of one guest, and between devices of each kind."""

import time

from . import cli, machine, pair, run

PERFTESTS = [
    ("ib_write_bw", "-s 65536 -n 2000", "bandwidth"),
    ("ib_read_lat", "-s 8 -n 1000", "latency"),
    ("ib_send_bw", "-s 65536 -n 2000", "bandwidth"),
]


def main(options):
    start = time.monotonic()
    chosen = {"kernel": cli.chosen_kernel(options), "userland": options.userland}
    with run.booted(machine.Config(**chosen)) as guests:
        machine_ready_s = time.monotonic() - start
        print(f"One guest with two HCAs on one Ethernet link, ready after {machine_ready_s:.0f} s.")
        rows = tests(guests[0])
    print_table(("test", "result", "verdict"), rows)
    with run.booted(machine.Config(devices=["hghca", *machine.KINDS], **chosen)) as guests:
        print("\nOne guest with a device of each kind on the link.")
        devices = kinds(guests[0])
    print_table(("device", "result", "verdict"), devices)
    rows += devices
    return 0 if all(passed for _, _, passed in rows) else 1


def tests(g):
    """Run everything; rows of (test, result, passed)."""
    rows = [device_info(g)]
    if not rows[0][2]:
        return rows
    gids = pair.client_gid(g), pair.server_gid(g)
    rows.append(pingpong(g, gids))
    rows.append(rping(g))
    for name, options, kind in PERFTESTS:
        rows.append(perftest(g, gids, name, options, kind))
    rows.append(kernel_log(g))
    return rows


def kinds(g):
    """An HCA talks to one of each kind; the loopback controllers, which have no link, are DMA engines. Rows as tests()."""
    gid = pair.client_gid(g)
    names = machine.device_names(["hghca", *machine.DEVICES])
    rows = [talk(g, gid, number, kind, names[number - 1]) for number, kind in enumerate(machine.DEVICES, 2)]
    return [*rows, dma_engine(g), kernel_log(g)]


def talk(g, gid, number, kind, name):
    """A pingpong with HCA `number` of the guest, which has a namespace of its own."""
    # A message fits into a slot of an ERNIC.
    size = 4096 if kind in machine.ERNICS else 65536
    rate, client, (_, done) = pair.pingpong(g, number, gid=gid, device=name, size=size)
    show(client, done)
    return kind, f"{rate:.0f} MB/s with hghca, data checked" if rate else "failed", bool(rate)


def dma_engine(g):
    found = g.run("ls /sys/bus/pci/drivers/rdma-loopback/*/dma")
    show("ls /sys/bus/pci/drivers/rdma-loopback/*/dma", found)
    return machine.LOOPBACK, f"a DMA engine, {found.stdout.strip()}" if found.status == 0 else "failed", found.status == 0


def show(title, result):
    """The output of a program, under its command."""
    print(f"\n$ {title}")
    for line in result.output.strip().splitlines():
        print(f"  {line}")


def device_info(g):
    shown = [g.run(f"ibv_devinfo -d {pair.CLIENT_DEVICE}"),
             g.run(f"ibv_devinfo -d {pair.SERVER_DEVICE}", netns=pair.SERVER_SPACE)]
    for device, result in zip((pair.CLIENT_DEVICE, pair.SERVER_DEVICE), shown):
        show(f"ibv_devinfo -d {device}", result)
    active = sum("PORT_ACTIVE" in result.stdout for result in shown)
    return "ibv_devinfo", f"{active} of 2 ports active", active == 2


def pingpong(g, gids):
    rate, client, (_, done) = pair.pingpong(g, gid=gids[0])
    show(client, done)
    return "ibv_rc_pingpong -c", f"{rate:.0f} MB/s, data checked" if rate else "failed", bool(rate)


def rping(g):
    """100 pings over one connection of the connection manager; -V compares the data."""
    client = f"rping -c -a {pair.SERVER_ADDRESS} -C 100 -S 4096 -V"
    served, done = pair.run(g, f"rping -s -a {pair.SERVER_ADDRESS} -C 100 -S 4096 -V", client, 7174)
    show(client, done)
    passed = served.status == done.status == 0
    return "rping -V", "100 pings of 4 KiB, data checked" if passed else f"status {done.status}", passed


def perftest(g, gids, name, options, kind):
    served, done = pair.perftest(g, name, options, gids=gids)
    show(f"{name} {options}", done)
    rows = pair.perftest_rows(done.stdout)
    passed = served.status == done.status == 0 and bool(rows)
    if not passed:
        return name, f"status {done.status}", False
    row = rows[-1]
    if kind == "bandwidth":
        return name, f"{row[3]:.0f} MiB/s at {row[0] / 1024:.0f} KiB", True
    return name, f"{row[4]:.1f} us at {row[0]:.0f} B, typical", True


def kernel_log(g):
    warnings = g.warnings()
    for record in warnings:
        print(f"  kernel: {record.text}")
    return "kernel log", f"{len(warnings)} warnings", not warnings


def print_table(head, rows):
    rows = [head, *((name, result, "pass" if passed else "FAIL") for name, result, passed in rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    print()
    for number, row in enumerate(rows):
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
