# SPDX-License-Identifier: Apache-2.0
# Targets: all (default), check, demo, install, uninstall, san, tsan, fuzz, fuzz-coverage, posix, tidy, tcb, clean. See CONTRIBUTING.md.

# A rule of the template below would be the first otherwise.
.DEFAULT_GOAL := all

CC ?= cc
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
# Sanitizers for `make san`; set by it, not by hand.
SANITIZE ?=
WERROR ?= -Werror

CJSON := $(shell pkg-config --libs libcjson)
# SHA-256 and Ed25519; static, as the other libraries of what is confined.
CRYPTO := -l:libcrypto.a
WARNINGS := -Wall -Wextra -Wshadow -Wconversion $(WERROR)
# The kernel's own headers end structures in arrays without a size, and ours put entries behind them.
ifneq ($(findstring clang,$(shell $(CC) --version)),)
WARNINGS += -Wno-gnu-variable-sized-type-not-at-end
endif
CPPFLAGS += -D_GNU_SOURCE -I.
CFLAGS ?= -O2 -g
CFLAGS_ALL = -std=gnu11 $(WARNINGS) -fPIE -fstack-protector-strong $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer,-D_FORTIFY_SOURCE=2) $(CFLAGS)
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)

# One archive for each directory, lowest first: a directory may include only from those before it.
DIRECTORIES := base jail loop wire virtio review record checklist relay secret sign root fs image machine cli
define archive
$(1)_SOURCES := $$(filter-out vmm/$(1)/main.c,$$(wildcard vmm/$(1)/*.c))
$(1)_OBJECTS := $$(patsubst %.c,$$(BUILD)/obj/%.o,$$($(1)_SOURCES))
$$(BUILD)/lib/lib$(1).a: $$($(1)_OBJECTS)
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^
endef
$(foreach directory,$(DIRECTORIES),$(eval $(call archive,$(directory))))

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')

EXECUTABLES := $(BUILD)/bin/mvagent $(BUILD)/libexec/mvagent/mvagent-vmm \
	$(BUILD)/libexec/mvagent/mvagent-fs $(BUILD)/libexec/mvagent/mvagent-blk \
	$(BUILD)/libexec/mvagent/mvagent-image $(BUILD)/libexec/mvagent/mvagent-relay \
	$(BUILD)/libexec/mvagent/mvagent-secret $(BUILD)/libexec/mvagent/mvagent-sign
GUEST := $(BUILD)/share/mvagent/initramfs.cpio
KERNEL := $(BUILD)/share/mvagent/vmlinux
# Lists of hosts for --allow-preset.
LISTS := $(patsubst share/%,$(BUILD)/share/mvagent/%,$(wildcard share/allow/*))
# The agent of `mvagent demo`.
DEMO_AGENT := $(BUILD)/share/mvagent/demo/agent.sh
HOSTILE_GUEST := $(BUILD)/share/mvagent/selftest.elf

# Not compiled: it makes the base image.
BASE := $(BUILD)/libexec/mvagent/mvagent-base
$(BASE): tools/image/base
	@mkdir -p $(@D)
	$(Q)cp $< $@

.PHONY: all executables kernel check demo install uninstall san tsan fuzz tidy tcb clean
all: executables $(GUEST) $(HOSTILE_GUEST) kernel
executables: $(EXECUTABLES) $(BASE) $(LISTS) $(DEMO_AGENT)
$(LISTS) $(DEMO_AGENT): $(BUILD)/share/mvagent/%: share/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(BUILD)/obj/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

archives = $(foreach name,$(1),$(BUILD)/lib/lib$(name).a)
# $(1): executable, $(2): directory of its main, $(3): archives in link order, $(4): libraries
define executable
$(1): $$(BUILD)/obj/vmm/$(2)/main.o $(call archives,$(3))
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) $$^ $(4) -o $$@
endef
CLI_ARCHIVES := cli image fs root relay secret sign checklist record review wire jail base
CLI_LIBRARIES := $(CJSON) $(CRYPTO) -l:libseccomp.a
$(eval $(call executable,$(BUILD)/bin/mvagent,cli,$(CLI_ARCHIVES),$(CLI_LIBRARIES)))
$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-vmm,machine,machine virtio loop wire jail base,-l:liburing.a -l:libseccomp.a -lfdt -lpthread))
$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-fs,fs,fs review virtio wire loop jail base,-l:liburing.a -l:libseccomp.a $(CRYPTO) -lpthread))
$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-blk,root,root virtio loop jail base,-l:liburing.a -l:libseccomp.a $(CRYPTO)))
$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-image,image,image root jail base,-larchive $(CJSON) $(CRYPTO) -l:libseccomp.a))

$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-relay,relay,relay wire loop jail base,-l:libcares.a -l:liburing.a -l:libseccomp.a -lpthread))

$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-secret,secret,secret wire loop jail base,-l:libnghttp2.a -l:libssl.a $(CRYPTO) -l:liburing.a -l:libseccomp.a -lpthread))

$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-sign,sign,sign wire jail base,$(CRYPTO) -l:libseccomp.a))

# The guest: one static program in an initramfs.
GUEST_SOURCES := $(wildcard guest/*.c) $(wildcard vmm/wire/session*.c) vmm/wire/notify.c vmm/wire/relay.c vmm/wire/names.c vmm/base/fd.c vmm/base/flow.c
GUEST_OBJECTS := $(patsubst %.c,$(BUILD)/obj/guest-static/%.o,$(GUEST_SOURCES))
GUEST_CFLAGS := -std=gnu11 $(WARNINGS) -Os -g -ffunction-sections -fno-pie -D_FORTIFY_SOURCE=2
$(BUILD)/obj/guest-static/%.o: %.c
	$(call say,GUESTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(GUEST_CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/guest/init: $(GUEST_OBJECTS)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -static -no-pie -Wl,--gc-sections -s $^ -o $@
# The same sources but main(), as the unit tests link them.
$(BUILD)/lib/libguest.a: $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out guest/init.c,$(wildcard guest/*.c)))
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^
$(GUEST): $(BUILD)/guest/init
	$(call say,CPIO,$@)
	@mkdir -p $(@D)
	$(Q)tools/image/initramfs $< $@

kernel: $(KERNEL)
KERNEL_INPUTS := tools/kernel/build $(wildcard kernel-config/* kernel-config/patches/*)
$(KERNEL): $(KERNEL_INPUTS)
	@mkdir -p $(@D)
	$(Q)tools/kernel/build --output $(@D)
	@touch $@

DEPENDENCIES := $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
-include $(DEPENDENCIES)

# Unit tests: one program a file, linked to everything below it.
UNIT_SOURCES := $(wildcard tests/unit/test_*.c)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(UNIT_SOURCES))
UNIT_LIBRARIES := $(shell pkg-config --libs cmocka libseccomp) -l:libnghttp2.a -l:libssl.a -l:liburing.a -l:libcares.a -lfdt -larchive $(CJSON) $(CRYPTO) -lpthread
$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(call archives,guest cli machine image fs root relay secret sign checklist record review virtio wire loop jail base)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(UNIT_LIBRARIES) -o $@
.PRECIOUS: $(BUILD)/obj/%.o
.PHONY: unit
unit: $(UNIT_TESTS) $(EXECUTABLES)

# Fuzz targets: replayed over their corpus by `check`, run by `fuzz T=SECONDS` (each target).
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_REPLAYS := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(FUZZ_SOURCES))
$(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/replay.o \
		$(call archives,guest cli machine image fs root relay secret sign checklist record review virtio wire loop jail base)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(UNIT_LIBRARIES) -o $@
.PHONY: replay
replay: $(FUZZ_REPLAYS)

# The hostile guest of the share: raw FUSE over vhost-user.
HOSTILE := $(addprefix $(BUILD)/tests/hostile/,fuse_client fuse_rules)
$(HOSTILE): $(BUILD)/tests/hostile/%: $(BUILD)/obj/tests/hostile/%.o $(call archives,virtio wire loop base)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -l:liburing.a -lpthread -o $@
# The hostile guest of the machine: a program without an operating system, in place of a kernel. It is
# installed for `mvagent selftest`.
HOSTILE_GUEST_CFLAGS := -std=gnu11 $(WARNINGS) -Os -g -ffreestanding -fno-pie -fno-stack-protector -fcf-protection=none \
	-fno-asynchronous-unwind-tables -mgeneral-regs-only -mno-red-zone
$(BUILD)/obj/hostile/%.o: %.c
	$(call say,GUESTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -I. $(HOSTILE_GUEST_CFLAGS) -MMD -MP -c $< -o $@
$(HOSTILE_GUEST): $(patsubst %.c,$(BUILD)/obj/hostile/%.o,$(wildcard tests/hostile/guest*.c)) tests/hostile/guest.lds
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LD) -m elf_x86_64 -static -nostdlib --build-id=none -z noexecstack --no-warn-rwx-segments \
		-T tests/hostile/guest.lds $(filter %.o,$^) -o $@
HOSTILE += $(HOSTILE_GUEST)
# mvagent for tests of what goes wrong, with that guest: it takes a KVM on which no Linux would boot.
FAULTS := $(BUILD)/tests/faults/bin/mvagent
$(FAULTS): $(BUILD)/obj/vmm/cli/main.o $(BUILD)/obj/tests/faults/any_kvm.o \
		$(call archives,$(CLI_ARCHIVES))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(CLI_LIBRARIES) -o $@
	@ln -sfn ../../libexec $(BUILD)/tests/faults/libexec
	@ln -sfn ../../share $(BUILD)/tests/faults/share
# Lets a system call of one of its processes fail.
$(BUILD)/tests/faults/inject: $(BUILD)/obj/tests/faults/inject.o
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -l:libseccomp.a -o $@
HOSTILE += $(FAULTS) $(BUILD)/tests/faults/inject
.PHONY: hostile
hostile: $(HOSTILE)

# Programs that try a file system. They are static, so that they run in any guest, and from a share.
POSIX := $(addprefix $(BUILD)/tests/posix/,conform random_files differential)
posix_objects = $(patsubst %.c,$(BUILD)/obj/guest-static/%.o,$(wildcard $(addprefix tests/posix/,$(1))))
$(BUILD)/tests/posix/conform: $(call posix_objects,conform*.c check.c deviation.c lock_peer.c subject.c)
$(BUILD)/tests/posix/random_files: $(call posix_objects,random_files.c random.c)
$(BUILD)/tests/posix/differential: $(call posix_objects,differential*.c random.c)
$(POSIX):
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -static -no-pie $^ -o $@
.PHONY: posix-programs
posix-programs: $(POSIX)

# A client of the guest tests, where there is a compiler for it. Without cgo it is static, and finds names by itself.
GO ?= $(shell command -v go)
CLIENTS := $(if $(GO),$(BUILD)/tests/clients/fetch)
$(BUILD)/tests/clients/fetch: tests/clients/fetch.go
	$(call say,GO,$<)
	@mkdir -p $(@D)
	$(Q)CGO_ENABLED=0 GO111MODULE=off GOCACHE=$(abspath $(BUILD))/go-cache $(GO) build -trimpath -ldflags '-s -w' -o $@ $<
.PHONY: client-programs
client-programs: $(CLIENTS)

STEPS ?= 1000000
.PHONY: posix
posix: all posix-programs
	$(Q)tests/posix/run --build $(BUILD) --steps $(STEPS)

# What tools/bench needs: the work of its guests, and a front end without a guest.
BENCH := $(BUILD)/bench/work $(BUILD)/bench/native
$(BUILD)/bench/work: $(BUILD)/obj/guest-static/tools/bench/work.o
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -static -no-pie $^ -o $@
$(BUILD)/bench/native: $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tools/bench/native*.c)) $(call archives,virtio loop base)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -l:liburing.a -lpthread -o $@
.PHONY: bench-programs
bench-programs: $(BENCH)

T ?= 60
FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SOURCES))
FUZZ_OBJECTS := $(patsubst %.c,$(BUILD)/obj/fuzz/%.o,$(foreach directory,$(DIRECTORIES),$($(directory)_SOURCES)) \
	$(filter-out guest/init.c,$(wildcard guest/*.c)))
FUZZ_CFLAGS := -std=gnu11 -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
$(BUILD)/obj/fuzz/%.o: %.c
	$(call say,FUZZCC,$<)
	@mkdir -p $(@D)
	$(Q)clang $(CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c $< -o $@
$(BUILD)/lib/libfuzz.a: $(FUZZ_OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^
$(BUILD)/fuzz/%: $(BUILD)/obj/fuzz/tests/fuzz/%.o $(BUILD)/lib/libfuzz.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)clang $(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined $^ $(UNIT_LIBRARIES) -o $@
.PRECIOUS: $(BUILD)/obj/fuzz/%.o
fuzz: $(FUZZ_TARGETS)
	$(Q)tools/fuzz $(BUILD)/fuzz $(T)
	$(Q)$(MAKE) --no-print-directory fuzz-coverage

# Which lines of the parsers their inputs reach, replayed in programs that count.
COVER_FLAGS := -fprofile-instr-generate -fcoverage-mapping
.PHONY: fuzz-coverage
fuzz-coverage:
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/cover CC=clang WERROR= CFLAGS='-O1 -g $(COVER_FLAGS)' \
		LDFLAGS='$(COVER_FLAGS)' replay
	$(Q)tools/fuzz-coverage $(BUILD)/cover/tests/fuzz $(BUILD)/fuzz/corpus

# The same tests with AddressSanitizer and UndefinedBehaviorSanitizer.
san:
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/san SANITIZE=address,undefined CFLAGS='-O1 -g' \
		unit replay executables hostile
	$(Q)tests/run --build $(BUILD)/san unit replay
	$(Q)tests/hostile/machine_driver.py --build $(BUILD)/san --sanitized

# The machine, whose threads share what they know, under ThreadSanitizer, while the hostile guest is at
# work. Fences (-Wno-tsan) are between guest and host, of which it sees the host's side only.
TSAN_MACHINE := $(BUILD)/tsan/libexec/mvagent/mvagent-vmm
.PHONY: tsan-machine
tsan-machine:
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/tsan SANITIZE=thread CFLAGS='-O1 -g -Wno-tsan' $(TSAN_MACHINE)
tsan: executables hostile tsan-machine
	$(Q)tests/hostile/machine_driver.py --build $(BUILD) --machine $(TSAN_MACHINE) --sanitized

check:
	$(Q)tools/setup
	$(Q)$(MAKE) --no-print-directory all image unit replay hostile posix-programs client-programs
	$(Q)tests/run --build $(BUILD) all

demo:
	$(Q)tools/setup
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tools/demo/start $(BUILD)/bin/mvagent

# The base image, for tests: made once and kept in the cache; here is a hard link to it where that
# can be.
.PHONY: image
image: $(BUILD)/share/mvagent/base.erofs
$(BUILD)/share/mvagent/base.erofs: tools/image/base
	@mkdir -p $(@D)
	$(Q)image=$$(tools/image/base) && { ln -f "$$image" $@ 2>/dev/null || cp "$$image" $@; }
	@touch -c $@

tidy:
	$(Q)tests/tidy

# What has to be trusted, counted.
tcb: executables
	$(Q)tools/tcb $(BUILD)

INSTALL ?= install
install: all
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/mvagent \
		$(DESTDIR)$(PREFIX)/share/mvagent/allow $(DESTDIR)$(PREFIX)/share/mvagent/demo \
		$(DESTDIR)$(PREFIX)/share/man/man1
	$(INSTALL) -m 0755 $(BUILD)/bin/mvagent $(DESTDIR)$(PREFIX)/bin/mvagent
	$(INSTALL) -m 0755 $(filter $(BUILD)/libexec/%,$(EXECUTABLES)) $(BASE) $(DESTDIR)$(PREFIX)/libexec/mvagent/
	$(INSTALL) -m 0644 $(KERNEL) $(GUEST) $(HOSTILE_GUEST) $(DESTDIR)$(PREFIX)/share/mvagent/
	$(INSTALL) -m 0644 $(LISTS) $(DESTDIR)$(PREFIX)/share/mvagent/allow/
	$(INSTALL) -m 0644 $(DEMO_AGENT) $(DESTDIR)$(PREFIX)/share/mvagent/demo/
	$(INSTALL) -m 0644 docs/mvagent.1 $(DESTDIR)$(PREFIX)/share/man/man1/mvagent.1

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/mvagent $(DESTDIR)$(PREFIX)/share/man/man1/mvagent.1
	rm -rf $(DESTDIR)$(PREFIX)/libexec/mvagent $(DESTDIR)$(PREFIX)/share/mvagent

clean:
	rm -rf $(BUILD)
