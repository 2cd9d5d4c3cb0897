/* SPDX-License-Identifier: BSD-3-Clause */
/* Stand-ins for provider entry points of Debian's libfabric.a whose objects need libraries without
 * a static archive. libfabric treats NULL as "not available"; these definitions keep the linker
 * from pulling in those objects. Linked only into the static binary. */
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
