/* SPDX-License-Identifier: BSD-3-Clause */
/* Session threads. libfuse before 3.12 takes their settings in a structure, as do newer versions
 * for programs that use an older interface. */
#ifdef COP_OLD_LIBRARIES
#undef FUSE_USE_VERSION
#define FUSE_USE_VERSION 35
#endif
#include "slowfs_priv.h"

#include "base/base/compat.h"

int cop_slowfs_loop(struct fuse_session *session, unsigned threads)
{
#if COP_HAVE_FUSE_LOOP_CFG
	struct fuse_loop_config *loop = fuse_loop_cfg_create();
	int rc;

	if (!loop)
		return -ENOMEM;
	fuse_loop_cfg_set_max_threads(loop, threads);
	fuse_loop_cfg_set_idle_threads(loop, threads);
	rc = fuse_session_loop_mt(session, loop);
	fuse_loop_cfg_destroy(loop);
	return rc;
#else
	struct fuse_loop_config loop = {.max_idle_threads = threads};

	return fuse_session_loop_mt(session, &loop);
#endif
}
