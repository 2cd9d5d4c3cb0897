/* SPDX-License-Identifier: BSD-3-Clause */
/* Stand-ins for the provider entry points of Debian's libfabric.a whose objects need libraries that
 * have no static archive. libfabric treats NULL as "not available". Defining them here keeps the
 * linker from pulling those objects in. Linked into the static binary only. */
struct fi_provider;

struct fi_provider *fi_psm_ini(void);
struct fi_provider *fi_psm2_ini(void);
struct fi_provider *fi_efa_ini(void);
struct fi_provider *fi_verbs_ini(void);

struct fi_provider *fi_psm_ini(void)
{
	return (struct fi_provider *)0;
}

struct fi_provider *fi_psm2_ini(void)
{
	return (struct fi_provider *)0;
}

struct fi_provider *fi_efa_ini(void)
{
	return (struct fi_provider *)0;
}

struct fi_provider *fi_verbs_ini(void)
{
	return (struct fi_provider *)0;
}
