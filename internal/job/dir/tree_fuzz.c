/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "job/dir/dir_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_job_tree tree;
	struct cop_err err = {0};
	int rc = cop_job_tree_parse((const char *)data, size, "fuzz", &tree, &err);

	if ((rc != 0) != (err.code != 0) || (rc == 0) != (tree.hosts.count != 0))
		abort();
	cop_job_tree_free(&tree);
	return 0;
}
