# SPDX-License-Identifier: Apache-2.0
# Targets: all (default), check, demo, install, san, fuzz, tidy, bench, clean. See CONTRIBUTING.md.

CC ?= cc
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
# Sanitizers for `make san`; set by it, not by hand.
SANITIZE ?=
WERROR ?= -Werror

PKGS := liburing libseccomp libcjson
WARNINGS := -Wall -Wextra -Wshadow -Wconversion $(WERROR)
CPPFLAGS += -D_GNU_SOURCE -I.
CFLAGS ?= -O2 -g
CFLAGS_ALL = -std=gnu11 $(WARNINGS) -fPIE -fstack-protector-strong $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer,-D_FORTIFY_SOURCE=2) $(CFLAGS)
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)

# One archive for each directory, lowest first: a directory may include only from those before it.
DIRECTORIES := base loop wire virtio root fs machine cli
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
	$(BUILD)/libexec/mvagent/mvagent-fs $(BUILD)/libexec/mvagent/mvagent-blk
GUEST := $(BUILD)/share/mvagent/initramfs.cpio
KERNEL := $(BUILD)/share/mvagent/vmlinux

.PHONY: all executables kernel check demo install san fuzz tidy clean
all: executables $(GUEST) kernel
executables: $(EXECUTABLES)

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
$(eval $(call executable,$(BUILD)/bin/mvagent,cli,cli wire base,-lcjson))
$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-vmm,machine,machine virtio loop wire base,-l:liburing.a -lfdt -lpthread))
$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-fs,fs,fs virtio loop base,-l:liburing.a))
$(eval $(call executable,$(BUILD)/libexec/mvagent/mvagent-blk,root,root virtio loop base,-l:liburing.a))

# The guest: one static program in an initramfs.
GUEST_SOURCES := $(wildcard guest/*.c) $(wildcard vmm/wire/session*.c) vmm/base/fd.c
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
UNIT_LIBRARIES := -lcmocka -l:liburing.a -lfdt -lcjson -lpthread
$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(call archives,cli machine fs root virtio wire loop base)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(UNIT_LIBRARIES) -o $@
.PRECIOUS: $(BUILD)/obj/%.o
.PHONY: unit
unit: $(UNIT_TESTS)

clean:
	rm -rf $(BUILD)
