# SPDX-License-Identifier: BSD-3-Clause
#
# make                 build/copper (one static binary), build/slowfs and build/copper-sim
# make FABRIC=shared   build/shared/copper, linked with the system's libfabric.so
# make demo            1, 2 and 4 nodes on this machine import a real package (installs what it needs; any user who has that)
# make quick           an answer in three minutes: the unit tests and a dozen system tests (needs no root)
#                      M=rpc: the unit tests of a module or district and the system tests that name it
# make check           the release build with all its unit and system tests (installs what is missing; root)
# make check-all       everything: the other builds, sanitizers, lint, fuzzers' corpora, Slurm, MPI, browsers (installs
#                      them; root). REST=yes: what make check has left
#                      LOAD=20 with either: beside 20 busy processes and one that drops the kernel's caches (scripts/load.sh)
# make old             build/old/copper, as with the oldest libraries that will do
# make sim             build/copper-sim only, which simulates up to 100,000 nodes
# make unit            unit tests only            make system T="t0100"  chosen system tests only
# make bench           the measurements behind the figures in the manual
# make portability     built, tested and run in root file systems of other Debian releases and for aarch64 (root, mmdebstrap; an hour, resumable)
# make fuzz-run        each fuzz target for FUZZ_SECONDS (600), and what came of it (clang)
# make lint            layers, formatting habits, shell scripts: of what has changed; ALL=1 of everything
# make install         program, manual, completion, modulefile; DESTDIR and PREFIX (/usr/local); FABRIC as built
# make uninstall       takes away what install with the same variables put there
# make deb, make rpm   a Debian package; an RPM package, linked with the system's libfabric: in build/
# make dist            build/copper-VERSION.tar.gz, the source, which needs no git
# make bindist         build/copper-VERSION-linux-MACHINE.tar.gz: the static binary, manual, wrappers; RUNNER=qemu-aarch64 if cross-built
# MODE=debug|asan|tsan|fuzz|cov with any of these builds in build/MODE
#
# CFLAGS and LDFLAGS are the user's and come last. V=1 shows the commands. WERROR=-Werror, as make check has it: no warnings.

MODE ?= release
FABRIC ?= static
PREFIX ?= /usr/local
NUMBER := 0.2.0
# What the system and the user do not have, install-deps.sh demo put there.
UNPACKED := build/deps
VERSION := $(shell scripts/packaging/version.sh $(NUMBER))

ifeq ($(MODE),release)
BUILD := build$(if $(filter shared,$(FABRIC)),/shared)
else
BUILD := build/$(MODE)
endif

# Only the thread sanitizer has to tell the libraries' code from ours (scripts/tsan.supp).
ARCHIVES := $(if $(filter tsan,$(MODE)),,$(filter static,$(FABRIC)))
LINKAGE := $(if $(filter releasestatic,$(MODE)$(FABRIC)),static,$(if $(filter release,$(MODE)),shared libfabric,$(if $(ARCHIVES),archives,shared libraries)))
CPPFLAGS_ALL := -D_GNU_SOURCE -DFUSE_USE_VERSION=314 -Iinternal -idirafter /usr/include/fuse3
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef $(WERROR)
CFLAGS_ALL := -std=gnu11 -pthread -g -fno-omit-frame-pointer $(WARN)
LDFLAGS_ALL := -pthread

OPT_release := -O2
OPT_debug := -O0
# Reports want names and lines only (-g1), not variables.
OPT_asan := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
OPT_tsan := -O1 -g1 -fsanitize=thread
OPT_cov := -O0 --coverage
OPT_fuzz := -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined
# As a shared library beside libasan, libubsan ignores its log_path. clang links both statically.
LINK_asan = $(if $(findstring clang,$(shell $(CC) --version 2>/dev/null)),,-static-libubsan)
ifeq ($(MODE),fuzz)
CC := clang
endif
CFLAGS_ALL += $(OPT_$(MODE))
LDFLAGS_ALL += $(OPT_$(MODE)) $(LINK_$(MODE))

# How the libraries are linked, and why: vendor/README.md
comma := ,
NO_PROVIDERS := internal/fabric/endpoint/absent_providers.c
NO_LOADER_SRC := internal/base/base/static_link.c
STATIC_ONLY := $(NO_PROVIDERS) $(NO_LOADER_SRC)
LIBS_SIM = $(DEPS) -llz4 -lxxhash -lsodium -lz -lm
LIBS_SLOWFS = $(DEPS) -lfuse3 -lxxhash
LIBS_SHARED := -lfuse3 -lfabric -llz4 -lxxhash -lsodium -lz -lsqlite3 -lm
# Nothing is loaded at run time (internal/base/base/static_link.c).
NO_LOADER := $(patsubst %,-Wl$(comma)--wrap=%,dlopen __dlopen __libc_dlopen_mode dlsym __libc_dlsym __libc_dlvsym dlclose __libc_dlclose dlerror)
LIBS_STATIC = $(DEPS) -static $(NO_LOADER) -Wl,--start-group -lfuse3 -lfabric -llz4 -lxxhash -lsodium -lz -lsqlite3 -luuid -lm -latomic -ldl -lrt -Wl,--end-group
# Those that have no archive here are shared as well (SLES, RHEL).
archive = $(if $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),-l:lib$(1).a,-l$(1))
LIBS_MIXED = $(foreach l,fuse3 lz4 xxhash sodium z sqlite3,$(call archive,$(l))) -lfabric -lm -ldl -lrt
# A program of the shared libfabric loads twenty more, some of which wait as it starts.
LIBS_TEST = $(if $(ARCHIVES),$(DEPS) -no-pie -Wl$(comma)-Bstatic -lfuse3 -lfabric -llz4 -lxxhash -lsodium -lz -lsqlite3 -luuid -Wl$(comma)-Bdynamic -latomic -lm -ldl -lrt,$(LIBS_SHARED))
LIBS = $(if $(filter-out release,$(MODE)),$(LIBS_TEST),$(if $(filter shared,$(FABRIC)),$(LIBS_MIXED),$(LIBS_STATIC)))

INTERNAL := $(wildcard internal/*/*/*.c)
# What stands for the network and the storage in tests.
FAKES := $(filter %_fake.c %_fake_ops.c,$(INTERNAL))
SRC := $(filter-out %_test.c %_fuzz.c $(FAKES),$(INTERNAL))
ifneq ($(MODE)$(FABRIC),releasestatic)
SRC := $(filter-out $(if $(ARCHIVES),$(NO_LOADER_SRC),$(STATIC_ONLY)),$(SRC))
endif
ifneq ($(and $(filter static,$(FABRIC)),$(wildcard $(UNPACKED))),)
CPPFLAGS_ALL += -idirafter $(UNPACKED)/include -idirafter $(UNPACKED)/include/fuse3
DEPS := -L$(UNPACKED)/lib
endif
CMD_SRC := $(wildcard cmd/copper/*.c)
SLOWFS_SRC := $(wildcard cmd/slowfs/*.c)
SIM_SRC := $(wildcard cmd/copper-sim/*.c)
TEST_SRC := $(filter %_test.c,$(INTERNAL))
FUZZ_SRC := $(filter %_fuzz.c,$(INTERNAL))
BENCH_SRC := $(wildcard scripts/bench/*.c)

MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
# OBJECTS=build/obj: those of another build with the same compiler and flags, already made, but for the one that says how it is linked.
OBJECTS ?= $(BUILD)/obj
obj = $(patsubst $(OBJECTS)/internal/base/base/version.o,$(BUILD)/obj/internal/base/base/version.o,$(patsubst %.c,$(OBJECTS)/%.o,$(1)))
OBJ := $(call obj,$(SRC))
SLOWFS_OBJ := $(call obj,$(SLOWFS_SRC) $(filter-out $(STATIC_ONLY),$(filter internal/base/base/% internal/mount/dirops/%,$(SRC))))
SIM_USES := base/base base/log base/opt base/table job/topo prof/tracer prof/stats prof/telemetry fabric/wire cache/cache \
	storage/manifest storage/model storage/packfile storage/spill tree/guess tree/fetch
# The nodes' own code, but what is behind rpc.h and origin.h; some functions have another one before them (cmd/copper-sim/memory.c).
SIM_OBJ := $(call obj,$(SIM_SRC) $(filter $(patsubst %,internal/%/%,$(SIM_USES)),$(filter-out $(STATIC_ONLY),$(SRC))))
SIM_WRAP := $(patsubst %,-Wl$(comma)--wrap=%,calloc free $(addprefix cop_,cache_alloc cache_release hash64 listing_check))
# Unit tests are linked with archives but for the C library, whose modules they may load.
TEST_OBJ := $(filter-out $(call obj,$(STATIC_ONLY)),$(OBJ)) $(call obj,$(FAKES))
# An object by itself comes before what libfabric's archive has of the same name.
ABSENT := $(if $(ARCHIVES),$(call obj,$(NO_PROVIDERS)))
# Each takes from an archive only what it needs. What a fuzz target can need is in the modules that its own may include, and so on downwards.
TEST_LIB := $(BUILD)/test.a
FUZZ_LIB := $(BUILD)/fuzz.a
# All unit tests are one program (cmd/unit), but those that define functions of the libraries. M: those of a module or district.
ifneq ($(filter threaded,$(MAKECMDGOALS)),)
TESTS := $(shell scripts/threaded.sh build/obj)
else
TESTS := $(patsubst internal/%.c,%,$(if $(M),$(filter internal/$(M)/%,$(TEST_SRC)) $(wildcard internal/*/$(M)/*_test.c),$(TEST_SRC)))
endif
OWN_FUSE := $(patsubst %,mount/fuse/%_test,answers local pages requests)
APART := $(OWN_FUSE) storage/origin/end_test storage/origin/unanswered_test job/rendezvous/resolve_test
TOGETHER := $(filter-out $(APART),$(TESTS))
FUZZERS := $(patsubst internal/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))
ifeq ($(MODE),fuzz)
BELOW := $(shell scripts/reachable.sh $(FUZZ_SRC))
FUZZ_OBJ := $(foreach m,$(BELOW),$(filter $(BUILD)/obj/internal/$(m)/%,$(TEST_OBJ)))
endif
ALL_OBJ := $(OBJ) $(call obj,$(FAKES) $(CMD_SRC) $(SLOWFS_SRC) $(SIM_SRC) cmd/unit/main.c $(TEST_SRC) $(FUZZ_SRC) $(BENCH_SRC))

ifndef V
say = @echo "  $(1) $(2)";
endif

.PHONY: all old sim demo quick check check-all unit system soak portability bench bench-tools fuzz fuzz-run lint install uninstall deb rpm dist bindist clean help tests threaded FORCE
all: $(BUILD)/copper $(BUILD)/slowfs $(BUILD)/copper-sim

$(BUILD)/copper: $(call obj,$(CMD_SRC)) $(OBJ)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/slowfs: $(SLOWFS_OBJ)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS_SLOWFS)

sim: $(BUILD)/copper-sim
$(BUILD)/copper-sim: $(SIM_OBJ)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $(SIM_WRAP) $(LDFLAGS) -o $@ $^ $(LIBS_SIM)

$(TEST_LIB): $(TEST_OBJ)
$(FUZZ_LIB): $(FUZZ_OBJ)
$(TEST_LIB) $(FUZZ_LIB):
	$(call say,AR,$@)rm -f $@ && $(shell $(CC) -print-prog-name=ar) rcs $@ $^

$(BUILD)/test/unit: $(BUILD)/obj/cmd/unit/main.o $(TOGETHER:%=$(BUILD)/obj/internal/%.o)
$(APART:%=$(BUILD)/test/%): $(BUILD)/test/%: $(BUILD)/obj/internal/%.o
$(BUILD)/test/unit $(APART:%=$(BUILD)/test/%): $(ABSENT) $(TEST_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) $(TEST_LIB) $(LIBS_TEST) -lcmocka

# main of DISTRICT/MODULE/NAME_test.c is DISTRICT_MODULE_NAME_test there.
$(TOGETHER:%=$(BUILD)/obj/internal/%.o): MAIN = -Dmain=$(subst /,_,$(*:internal/%=%)) -Wno-missing-prototypes
$(BUILD)/obj/cmd/unit/main.o: CPPFLAGS_ALL += -I$(BUILD)/test
$(BUILD)/obj/cmd/unit/main.o: $(BUILD)/test/unit.list
$(BUILD)/test/unit.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(foreach t,$(TOGETHER),'TEST("$(t)", $(subst /,_,$(t)))') >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# Those of an archive would be defined twice.
$(OWN_FUSE:%=$(BUILD)/test/%): LIBS_TEST = $(LIBS_SHARED)

$(BUILD)/fuzz/%: $(BUILD)/obj/internal/%.o $(ABSENT) $(FUZZ_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LIBS_TEST) -ljson-c

$(BUILD)/bench/%: $(BUILD)/obj/scripts/bench/%.o $(ABSENT) $(TEST_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS_TEST)

$(BUILD)/obj/%.o: %.c Makefile | $(BUILD)/needed
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) $(CPPFLAGS) $(CFLAGS_ALL) $(MAIN) -MMD -MP $(CFLAGS) -c -o $@ $<

# A compiler and libraries that lack or are too old are named before anything is compiled.
HOW_TO_GET := on Debian and Ubuntu scripts/install-deps.sh build installs what is missing (root, or sudo); elsewhere install
NO_CARET = $(if $(findstring clang,$(shell $(CC) --version 2>/dev/null)),-fno-caret-diagnostics,-fno-diagnostics-show-caret)
$(BUILD)/needed: vendor/needed.c
	@mkdir -p $(@D)
	@$(CC) --version >/dev/null 2>&1 || { echo "make: there is no C compiler called $(CC): $(HOW_TO_GET) gcc and the libraries in vendor/README.md" >&2; exit 1; }
	@$(CC) $(CPPFLAGS_ALL) $(CPPFLAGS) -pthread -fsyntax-only $(NO_CARET) $< || \
		{ echo "make: $(HOW_TO_GET) what is named above" >&2; exit 1; }
	@touch $@

# As with the oldest libraries that will do (internal/base/base/compat.h): only the files that know of them differ.
old: $(BUILD)/old/copper $(BUILD)/old/slowfs
OLD_SRC := $(filter $(SRC) $(CMD_SRC) $(SLOWFS_SRC),$(shell grep -ls 'base/compat\.h"' $(INTERNAL) cmd/*/*.c))
older = $(foreach o,$(1),$(if $(filter $(o),$(call obj,$(OLD_SRC))),$(o:$(BUILD)/obj/%=$(BUILD)/old/obj/%),$(o)))
$(BUILD)/old/obj/%.o: %.c Makefile | $(BUILD)/needed
	@mkdir -p $(@D)
	$(call say,CC,$< (old))$(CC) -DCOP_OLD_LIBRARIES $(CPPFLAGS_ALL) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP $(CFLAGS) -c -o $@ $<
$(BUILD)/old/copper: $(call older,$(call obj,$(CMD_SRC)) $(OBJ))
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/old/slowfs: $(call older,$(SLOWFS_OBJ))
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS_SLOWFS)

# A test's own code runs for less time than it would take to optimize it.
$(BUILD)/obj/%_test.o: CFLAGS_ALL += -O0

# Objects of tests are kept: another object in the archive means another link, not another compilation.
.SECONDARY: $(call obj,$(TEST_SRC) $(FUZZ_SRC) $(BENCH_SRC))

# Another commit is another version, for this one object; nodes of different versions do not talk to each other.
$(BUILD)/version: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' >$@
$(BUILD)/obj/internal/base/base/version.o: $(BUILD)/version
$(BUILD)/obj/internal/base/base/version.o: CPPFLAGS_ALL += -DCOP_VERSION='"$(VERSION)"' -DCOP_BUILD='"$(MODE), $(LINKAGE)"'

# The assembler puts these files into the program (internal/report/html/css.c, internal/trace/timeline/page_files.c).
$(BUILD)/obj/internal/report/html/css.o: internal/report/html/html.css
$(BUILD)/obj/internal/trace/timeline/page_files.o: $(addprefix internal/trace/timeline/page.,css js html)

# One file for processors that have it; base looks before it goes there.
ifeq ($(MACHINE),x86_64)
$(BUILD)/obj/internal/base/base/hash_avx2.o: CFLAGS_ALL += -mavx2
endif

-include $(ALL_OBJ:.o=.d) $(patsubst %.c,$(BUILD)/old/obj/%.d,$(OLD_SRC))

# threaded: those that concern the thread sanitizer, as far as the objects of the release build tell.
tests threaded: $(BUILD)/test/unit $(patsubst %,$(BUILD)/test/%,$(filter $(APART),$(TESTS)))
fuzz: $(FUZZERS)
bench-tools: $(patsubst scripts/%.c,$(BUILD)/%,$(BENCH_SRC))

unit: tests
	scripts/check.sh --build $(BUILD) --unit-only

system: all
	scripts/check.sh --build $(BUILD) --system-only $(T)

quick:
	scripts/check.sh --quick $(M)

check:
	scripts/install-deps.sh check
	$(if $(LOAD),scripts/load.sh $(LOAD)) scripts/check.sh

check-all:
	scripts/install-deps.sh all
	$(if $(LOAD),scripts/load.sh $(LOAD)) scripts/check.sh --all $(if $(REST),--rest)

# All processors build, unless -j said how many.
demo:
	scripts/install-deps.sh demo
	$(MAKE) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc)) $(BUILD)/copper $(BUILD)/slowfs
	BUILD=$(BUILD) scripts/demo.sh

soak: all
	BUILD=$(BUILD) scripts/soak.sh $(or $(MINUTES),30)
	BUILD=$(BUILD) scripts/soak-stop.sh

portability: $(BUILD)/copper
	scripts/portability.sh

bench: all bench-tools
	scripts/bench/run.sh --json $(BUILD)/bench.json

fuzz-run:
	$(MAKE) MODE=fuzz fuzz
	scripts/fuzz-run.sh $(T)

lint:
	scripts/lint.sh $(if $(ALL),--all)

install: $(BUILD)/copper
uninstall:
install uninstall:
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" scripts/packaging/install.sh $@ $(BUILD)

deb: $(BUILD)/copper
	scripts/packaging/deb.sh $(BUILD) build

rpm:
	$(MAKE) FABRIC=shared build/shared/copper
	scripts/packaging/rpm.sh build/shared build

dist:
	scripts/packaging/dist.sh source $(VERSION) build

bindist: $(BUILD)/copper
	scripts/packaging/dist.sh binary $(BUILD) $(MACHINE) build

compile_commands.json: Makefile
	bear -- $(MAKE) -B all tests

clean:
	rm -rf build compile_commands.json

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile
