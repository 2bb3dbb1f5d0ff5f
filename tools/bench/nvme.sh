#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# NVMe over Fabrics with both ends in one guest: a disk in memory, exported at each of the addresses.
#
# An ADDRESS is one of IPv4, or `loop`: then the target is reached without a network.
#
# nvme.sh export ADDRESS...
# nvme.sh measure ADDRESS BLOCK     connects, reads at random with 64 commands under way, prints fio's JSON
set -e
NQN=nqn.2014-08.org.nvmexpress:hghca-bench
HOST="--hostnqn nqn.2014-08.org.nvmexpress:hghca-host --hostid 3a0f2f0e-7a3c-4f6e-9f6b-4f1a6c1f7b10"
MIB=128
SECONDS_EACH=2
CONFIG=/sys/kernel/config/nvmet

export_disk()
{
	modprobe -a configfs nvmet nvmet-rdma nvme-rdma nvme-loop
	modprobe brd rd_nr=1 rd_size=$((MIB * 1024))
	dd if=/dev/urandom of=/dev/ram0 bs=1M count=$MIB oflag=direct status=none
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
	mkdir $CONFIG/subsystems/$NQN $CONFIG/subsystems/$NQN/namespaces/1
	echo 1 > $CONFIG/subsystems/$NQN/attr_allow_any_host
	echo -n /dev/ram0 > $CONFIG/subsystems/$NQN/namespaces/1/device_path
	echo 1 > $CONFIG/subsystems/$NQN/namespaces/1/enable
	number=0
	for address; do
		number=$((number + 1))
		port=$CONFIG/ports/$number
		mkdir $port
		if [ $address = loop ]; then
			echo loop > $port/addr_trtype
		else
			echo rdma > $port/addr_trtype
			echo ipv4 > $port/addr_adrfam
			echo $address > $port/addr_traddr
			echo 4420 > $port/addr_trsvcid
		fi
		ln -s $CONFIG/subsystems/$NQN $port/subsystems/$NQN
	done
}

# The disk of our subsystem, once it is there.
disk()
{
	for try in $(seq 100); do
		for controller in /sys/class/nvme/nvme*; do
			[ "$(cat $controller/subsysnqn 2> /dev/null)" = $NQN ] || continue
			for found in /sys/class/nvme-subsystem/nvme-subsys*/nvme*n1 $controller/nvme*n1; do
				[ -b /dev/${found##*/} ] && echo /dev/${found##*/} && return
			done
		done
		sleep 0.05
	done
	return 1
}

measure()
{
	if [ $1 = loop ]; then
		place="-t loop"
	else
		place="-t rdma -a $1 -s 4420"
	fi
	nvme connect $place -n $NQN $HOST -i 2 -Q 64 > /dev/null
	trap "nvme disconnect -n $NQN > /dev/null" EXIT
	fio --name=bench --filename=$(disk) --ioengine=libaio --direct=1 --rw=randread --bs=$2 --iodepth=64 \
	    --time_based --runtime=$SECONDS_EACH --output-format=json
}

action=$1
shift
case $action in
export) export_disk "$@" ;;
measure) measure "$@" ;;
*) echo "usage: nvme.sh export ADDRESS... | nvme.sh measure ADDRESS BLOCK" >&2; exit 2 ;;
esac
