/* SPDX-License-Identifier: BSD-3-Clause */
/* An entry blob is this head followed by the link target. It is read by copying, so it needs no
 * alignment. */
#include "fabric/wire/listing_priv.h"

#define ENTRY_MAGIC 0x32544e45u /* "ENT2" */

struct entry_head {
	uint32_t magic;
	uint32_t target_len;
	struct cop_attr attr;
};
_Static_assert(sizeof(struct entry_head) == 104, "entry heads have no padding");

int cop_entry_build(const struct cop_attr *attr, const char *target, size_t target_len, void **blob,
	size_t *len)
{
	struct entry_head head = {.magic = ENTRY_MAGIC, .attr = cop_attr_clean(attr)};
	char *out;

	if (!target)
		target_len = 0;
	if (target_len &&
		(!cop_attr_target_valid(target, target_len) || !cop_attr_may_link(attr->mode)))
		return -EINVAL;
	if (!cop_attr_valid(&head.attr))
		return -EINVAL;
	out = malloc(sizeof(head) + target_len);
	if (!out)
		return -ENOMEM;
	head.target_len = (uint32_t)target_len;
	memcpy(out, &head, sizeof(head));
	if (target_len)
		memcpy(out + sizeof(head), target, target_len);
	*blob = out;
	*len = sizeof(head) + target_len;
	return 0;
}

int cop_entry_check(const void *blob, size_t len)
{
	struct entry_head head;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, blob, sizeof(head));
	if (head.magic != ENTRY_MAGIC || head.target_len != len - sizeof(head) ||
		!cop_attr_valid(&head.attr))
		return -EBADMSG;
	if (!head.target_len)
		return 0;
	if (!cop_attr_target_valid((const char *)blob + sizeof(head), head.target_len) ||
		!cop_attr_may_link(head.attr.mode))
		return -EBADMSG;
	return 0;
}

void cop_entry_get(const void *blob, struct cop_attr *attr, const char **target, size_t *target_len)
{
	struct entry_head head;

	memcpy(&head, blob, sizeof(head));
	*attr = head.attr;
	if (target)
		*target = head.target_len ? (const char *)blob + sizeof(head) : NULL;
	if (target_len)
		*target_len = head.target_len;
}
