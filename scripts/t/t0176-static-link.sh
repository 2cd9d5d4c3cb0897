#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The places in the static binary that could ask the C library to load something at run time: no
# code that loads is left, and each reference to a function about which the linker warns is known,
# with the reason why it is harmless.
# covers: base endpoint
# modes: release
# limit: 60
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 7

libc=$(gcc -print-file-name=libc.a)
[ -e "$libc" ] || skip_all 'no libc.a here'
link=$(cd "$cop_root" && env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES make -n \
		-B V=1 MODE=release FABRIC=static build/copper |
	grep -e ' -o build/copper ')
case $link in
*' -static '*) ;;
*) bail 'the command that links the program is not found' "$link" ;;
esac

# Those that glibc itself marks, and all others that open locales or character sets.
objdump -h "$libc" | sed -n 's/.* \.gnu\.warning\.\([a-zA-Z0-9_]*\) .*/\1/p' |
	LC_ALL=C sort -u >"$T/marked"
ok 'glibc marks what needs its shared libraries' grep -qx getaddrinfo "$T/marked"
trace=
while read -r name; do
	trace+=" -Wl,-y,$name"
done < <(cat "$T/marked"; printf '%s\n' getnameinfo iconv_open setlocale newlocale dlopen \
		__wrap_dlopen __wrap___libc_dlopen_mode)
(cd "$cop_root" && eval "${link/ -o build\/copper / -o "$T/copper" }$trace") >"$T/link" 2>&1
ok 'the program can be linked again' test -x "$T/copper"

# ---- no code that loads is left

# With another C library than Debian 12's the list in the Makefile may need another name: the map of
# a link (-Wl,-M) shows which object brings in _dl_open.
is 'no code that loads a shared object is in it' \
	"$(nm "$T/copper" | awk '$3 ~ /^_*(_dl_open|dl_open_worker|libc_dlopen_mode|dlopen|dlmopen|dlsym|dlvsym)$/')" ''
is 'the tested program has no code that loads a shared object' "$(nm "$COPPER" | grep -c ' _dl_open$')" 0

# ---- which object refers to what

# OBJECT NAME: reason.
cat >"$T/known" <<'KNOWN'
host.o getaddrinfo: cop_host_address, which alone looks up names, as static_link.c lets it
libfabric_la-common.o getaddrinfo: fi_getinfo gets a number (ofi_open.c); fi_av_insert is not called
src_libfabric_la-rxm_init.o getaddrinfo: rxm_getinfo, the same number once more
src_libfabric_la-sock_av.o getaddrinfo: fi_av_insertsvc, not called
src_libfabric_la-sock_ep.o getaddrinfo: provider sockets without an address: this machine's own name, by what is built in
src_libfabric_la-sock_ep_msg.o getaddrinfo: passive endpoints, not opened
src_libfabric_la-udpx_ep.o getaddrinfo: provider udp without an address: this machine's own name, by what is built in
src_libfabric_la-util_av.o getaddrinfo: this machine's own name for provider sockets, as above; fi_av_insertsym, not called
src_libfabric_la-util_av.o getnameinfo: the same place, by what is built in
modules_iconv.c.o iconv_open: a module of libfuse's high-level interface, which is not used; iconv has only what is built in
modules_iconv.c.o setlocale: the same module, when it prints its help
json_tokener.c.o newlocale: numbers are read in the locale C, which is built in
libfabric_la-fabric.o __wrap_dlopen: providers in FI_PROVIDER_PATH, which are refused
fuse.c.o __wrap_dlopen: modules of the high-level interface, which are refused
os_unix.o __wrap_dlopen: extensions of SQLite, of which none is loaded
KNOWN
sed -n 's/.*[/(]\([^/() ]*\.o\))*: reference to \(.*\)$/\1 \2/p' "$T/link" >"$T/all"
# References among glibc's own objects end in the functions that refuse.
LC_ALL=C sort -u "$T/all" | while read -r object name; do
	case $(sed -n "s|.*/\(lib[a-z0-9]*\.a\)($object): reference to $name\$|\1|p" "$T/link" |
			head -n 1) in
	libc.a) ;;
	*) echo "$object $name" ;;
	esac
done >"$T/found"
ok 'references are found' grep -qx 'host.o getaddrinfo' "$T/found"
is 'each reference is known' \
	"$(LC_ALL=C comm -23 "$T/found" <(sed 's/:.*//' "$T/known" | LC_ALL=C sort))" ''
is 'the linker warns of our one place only' \
	"$(grep 'requires at runtime' "$T/link" | grep -v "Using 'getaddrinfo'")" ''
