/* SPDX-License-Identifier: BSD-3-Clause */
/* A static program that loads a shared object at run time also loads the system's C library, and
 * crashes if that differs from its own. glibc loads objects for name services (each module listed
 * in nsswitch.conf), character sets and non-ASCII domain names; libfabric for each provider in
 * $FI_PROVIDER_PATH, which site modulefiles set; libfuse for modules of its high-level interface.
 * Copper needs none of these, so we disable loading: the linker redirects every reference to the
 * functions below, in all archives, to this file (--wrap in the Makefile), which refuses. The
 * program then contains no code that maps a shared object.
 *
 * Names are resolved by methods built into glibc, the hosts file and DNS, regardless of
 * nsswitch.conf. Only the static binary links this file. */
#include <features.h>
#include <nss.h>
#include <stddef.h>

#if defined(__GLIBC__) && !__GLIBC_PREREQ(2, 34)
#error "glibc below 2.34 cannot look up a host name in a static program. Build on Debian 12 or another system with \
glibc 2.34: the program runs on older ones, too. Or build one for this system's libraries: make FABRIC=shared"
#endif

void *__wrap_dlopen(const char *file, int mode);
void *__wrap___dlopen(const char *file, int mode);
void *__wrap___libc_dlopen_mode(const char *file, int mode);
void *__wrap_dlsym(void *handle, const char *name);
void *__wrap___libc_dlsym(void *handle, const char *name);
void *__wrap___libc_dlvsym(void *handle, const char *name, const char *version);
int __wrap_dlclose(void *handle);
int __wrap___libc_dlclose(void *handle);
char *__wrap_dlerror(void);

void *__wrap_dlopen(const char *file, int mode)
{
	(void)file, (void)mode;
	return NULL;
}

void *__wrap___dlopen(const char *file, int mode)
{
	(void)file, (void)mode;
	return NULL;
}

void *__wrap___libc_dlopen_mode(const char *file, int mode)
{
	(void)file, (void)mode;
	return NULL;
}

void *__wrap_dlsym(void *handle, const char *name)
{
	(void)handle, (void)name;
	return NULL;
}

void *__wrap___libc_dlsym(void *handle, const char *name)
{
	(void)handle, (void)name;
	return NULL;
}

void *__wrap___libc_dlvsym(void *handle, const char *name, const char *version)
{
	(void)handle, (void)name, (void)version;
	return NULL;
}

int __wrap_dlclose(void *handle)
{
	(void)handle;
	return -1;
}

int __wrap___libc_dlclose(void *handle)
{
	(void)handle;
	return -1;
}

char *__wrap_dlerror(void)
{
	static char why[] = "this program is linked statically and loads nothing";

	return why;
}

#ifdef __GLIBC__
/* Runs before main, hence before any name is resolved. */
static void __attribute__((constructor)) fix_services(void)
{
	static const char *const databases[] = {
		"services", "passwd", "group", "networks", "protocols"};

	__nss_configure_lookup("hosts", "files dns");
	for (size_t i = 0; i < sizeof(databases) / sizeof(databases[0]); i++)
		__nss_configure_lookup(databases[i], "files");
}
#endif
