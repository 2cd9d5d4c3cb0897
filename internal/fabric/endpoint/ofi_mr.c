/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory. The provider chooses the FI_MR_* bits that it needs (fi_mr(3)); only this file
 * handles them. A key of our choice is random: only a peer that received the key can use it. */
#include "fabric/endpoint/ofi_priv.h"

#include <assert.h>
#include <sys/random.h>

#include "base/base/compat.h"

/* Providers refuse a key in use. A collision is practically impossible with 64 random bits, but not
 * with the 16 bits of some providers. */
#define KEY_TRIES 16

static int next_key(struct ofi *o, uint64_t *key)
{
	size_t bytes = o->info->domain_attr->mr_key_size;

	if (o->keys_left == 0) {
		if (getrandom(o->keys, sizeof(o->keys), 0) != sizeof(o->keys))
			return -EIO;
		o->keys_left = COP_ARRAY_SIZE(o->keys);
	}
	*key = o->keys[--o->keys_left];
	if (bytes > 0 && bytes < sizeof(*key))
		*key &= ((uint64_t)1 << (8 * bytes)) - 1;
	return 0;
}

static int reg_once(struct ofi *o, const void *buf, size_t len, uint64_t access, uint64_t key,
	struct fid_mr **mr)
{
	int rc = fi_mr_reg(o->domain, buf, len, access, 0, key, 0, mr, NULL);

	if (rc || !(o->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return rc;
	rc = fi_mr_bind(*mr, &o->ep->fid, 0);
	if (rc == 0)
		rc = fi_mr_enable(*mr);
	if (rc)
		fi_close(&(*mr)->fid);
	return rc;
}

static int register_memory(
	struct ofi *o, const void *buf, size_t len, uint64_t access, struct ofi_mr **out)
{
	bool own_key = !(o->info->domain_attr->mr_mode & (FI_MR_PROV_KEY | COP_FI_MR_BASIC));
	struct ofi_mr *m = calloc(1, sizeof(*m));
	uint64_t key = 0;
	int rc = 0;

	if (!m)
		return -ENOMEM;
	m->base.fabric = &o->base;
	for (int i = 0; i < KEY_TRIES; i++) {
		if (own_key && (rc = next_key(o, &key)))
			break;
		rc = cop_endpoint_ofi_errno(reg_once(o, buf, len, access, key, &m->mr));
		if (rc != -ENOKEY || !own_key)
			break;
	}
	if (rc) {
		free(m);
		return rc;
	}
	cop_list_push_back(&o->mrs, &m->link);
	*out = m;
	return 0;
}

int cop_endpoint_ofi_reg(struct cop_endpoint *f, void *buf, size_t len, struct cop_endpoint_mr **mr,
	uint64_t *addr, uint64_t *key)
{
	struct ofi *o = cop_endpoint_ofi_of(f);
	struct ofi_mr *m;
	int rc;

	assert(cop_endpoint_ofi_on_thread(o));
	if (o->stopping)
		return -ESHUTDOWN;
	rc = register_memory(o, buf, len, FI_REMOTE_WRITE, &m);
	if (rc)
		return rc;
	*key = fi_mr_key(m->mr);
	if (*key == FI_KEY_NOTAVAIL) {
		cop_endpoint_ofi_unreg(&m->base);
		return -ENOKEY;
	}
	*addr = o->info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | COP_FI_MR_BASIC)
			? (uint64_t)(uintptr_t)buf
			: 0;
	*mr = &m->base;
	return 0;
}

void cop_endpoint_ofi_unreg(struct cop_endpoint_mr *mr)
{
	struct ofi_mr *m = COP_CONTAINER_OF(mr, struct ofi_mr, base);

	assert(cop_endpoint_ofi_on_thread(cop_endpoint_ofi_of(mr->fabric)));
	cop_list_remove(&m->link);
	if (m->mr)
		fi_close(&m->mr->fid);
	free(m);
}

int cop_endpoint_ofi_reg_local(
	struct ofi *o, const void *buf, size_t len, uint64_t access, struct ofi_mr **mr)
{
	*mr = NULL;
	if (!(o->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return 0;
	return register_memory(o, buf, len, access, mr);
}
