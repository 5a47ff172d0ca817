# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# What turns the source into a kernel, sourced by tools/kernel/build. This file is part of the
# cache's key: all that decides the bytes of the result is here, in kernel-config/ and in the
# compiler; what only talks about it is in the other file.
#
# Reads: tarball, patches, fragments, fragments_dir, source and work (directories).

recipe_unpack() {
	local file

	tar -C "$source" --strip-components=1 -xf "$tarball"
	if [ ! -f "$source/scripts/kconfig/merge_config.sh" ]; then
		echo "$tarball does not hold the source of Linux"
		return 1
	fi
	for file in "${patches[@]}"; do
		echo "patch ${file##*/}"
		patch -d "$source" -p1 --forward --batch <"$file"
	done
}

# The names and dates that a kernel remembers of its build are fixed, so that the same input
# gives the same bytes. Nothing of the caller's make or compiler flags may leak in.
recipe_environment() {
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES ARCH CROSS_COMPILE CC LD CFLAGS LDFLAGS \
		KCFLAGS KCPPFLAGS KBUILD_OUTPUT KCONFIG_CONFIG KCONFIG_ALLCONFIG
	export KBUILD_BUILD_TIMESTAMP='1970-01-01 00:00:00 UTC' KBUILD_BUILD_VERSION=1
	export KBUILD_BUILD_USER=mvagent KBUILD_BUILD_HOST=mvagent
	cd "$source" || return 1
}

recipe_configure() {
	recipe_environment
	scripts/kconfig/merge_config.sh -n -O . "${fragments[@]}"
	make olddefconfig
	"$fragments_dir/check.sh" .config "${fragments[@]}"
}

# Leaves vmlinux and config in $work/result. A loader needs the program headers and the entry,
# no symbols; the gaps between the 2 MiB aligned segments become holes.
recipe_compile() {
	recipe_environment
	make -j"$(nproc)" vmlinux
	objcopy --strip-all vmlinux "$work/stripped"
	cp --sparse=always "$work/stripped" "$work/result/vmlinux"
	chmod 0644 "$work/result/vmlinux"
	cp .config "$work/result/config"
}
