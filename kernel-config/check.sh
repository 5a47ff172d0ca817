#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh CONFIG FRAGMENT...
#
# Every line of the fragments is a wish: "CONFIG_X=value" or "# CONFIG_X is not set". Kconfig
# drops a wish silently when a dependency is missing, so compare each one with the final CONFIG.
# Prints each wish that did not come true and exits 1; exits 2 when called wrongly.
set -eu

if [ $# -lt 2 ]; then
	echo "usage: check.sh CONFIG FRAGMENT..." >&2
	exit 2
fi
for file in "$@"; do
	if [ ! -r "$file" ]; then
		echo "check.sh: cannot read $file" >&2
		exit 2
	fi
done

# A later fragment overrides an earlier one, as merge_config.sh does. A symbol that the final
# configuration does not mention at all is as good as "not set".
awk '
function parse(line) {
	if (match(line, /^CONFIG_[A-Za-z0-9_]+=/)) {
		name = substr(line, 1, RLENGTH - 1)
		value = substr(line, RLENGTH + 1)
		return 1
	}
	if (line ~ /^# CONFIG_[A-Za-z0-9_]+ is not set$/) {
		split(line, word, " ")
		name = word[2]
		value = "n"
		return 1
	}
	return 0
}
FNR == 1 { file_number++ }
!parse($0) {
	if (file_number > 1 && $0 !~ /^#/ && $0 !~ /^[ \t]*$/) {
		printf "%s:%d: not a configuration line: %s\n", FILENAME, FNR, $0
		bad++
	}
	next
}
file_number == 1 { real[name] = value; next }
{
	if (!(name in wanted))
		order[++count] = name
	wanted[name] = value == "" ? "n" : value
	origin[name] = FILENAME ":" FNR
}
END {
	if (count == 0) {
		print "no options in the fragments"
		exit 1
	}
	for (i = 1; i <= count; i++) {
		name = order[i]
		got = (name in real) ? real[name] : "n"
		if (got != wanted[name]) {
			printf "%s: wanted %s=%s, got %s\n", origin[name], name, wanted[name], got
			bad++
		}
	}
	exit bad > 0
}' "$@" >&2
