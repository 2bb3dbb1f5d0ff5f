#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Which features a kernel has: probe.sh OUTPUT COMPILER FLAG...
#
# Each file of probes/ compiles without an error if the kernel has the feature of
# its name.  All are compiled as one, and the compiler names the files with errors.
# OUTPUT is a header that defines COMPAT_HAS_<NAME> for each of the others.
set -e

output=$1
shift
probes=$(cd "$(dirname "$0")/probes" && pwd)
said=$(for probe in "$probes"/*.c; do echo "#include \"$probe\""; done |
       LC_ALL=C "$@" -fsyntax-only -x c - 2>&1) || true

absent() {
	echo "$said" | grep -q "/probes/$1\.c:.* error: "
}

# One always compiles, and one never does.  Without that, or if the compiler has not read
# them all, no answer is worth anything.
if absent present || ! absent missing || echo "$said" | grep -q "compilation terminated"; then
	echo "$said" | grep -m 5 error >&2
	echo "the kernel's features cannot be probed: \`$1\` does not compile for this kernel" >&2
	exit 1
fi

{
	echo "/* What $(basename "$0") has found. */"
	for probe in "$probes"/*.c; do
		name=$(basename "$probe" .c)
		if ! absent "$name"; then
			echo "#define COMPAT_HAS_$(echo "$name" | tr '[:lower:]' '[:upper:]') 1"
		fi
	done
} > "$output"
