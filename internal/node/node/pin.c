/* SPDX-License-Identifier: BSD-3-Clause */
#include "pin.h"

#include "base/log/log.h"

static bool is_near(const char *cpus)
{
	return cpus && strcmp(cpus, "near") == 0;
}

int cop_pin_listed(const char *cpus, struct cop_err *err)
{
	struct cop_err why = {0};
	int rc = cpus && !is_near(cpus) ? cop_cpus_pin(cpus, &why) : 0;

	return rc ? cop_err_set(err, -rc, "--cpus %s: %s", cpus, why.text) : 0;
}

/* mpiexec or srun may have bound this task to the same core as the application's first rank, and
 * then the two share it. */
static void tell_of_launcher(void)
{
	struct cop_buf mine = {0}, cpuset = {0};

	if (cop_cpus_bound(&mine, &cpuset))
		cop_log_warn(
			"the launcher bound this node to cpus=%s of %s: if the application runs there, give -b LIST, or start the node unbound "
			"(mpiexec or srun --cpu-bind=none)",
			mine.data, cpuset.data);
	cop_buf_free(&mine);
	cop_buf_free(&cpuset);
}

void cop_pin_near(const char *cpus, const struct cop_endpoint *f)
{
	const char *network = f ? cop_endpoint_network(f) : "none";
	struct cop_buf near = {0};
	struct cop_err why = {0};

	if (!cpus)
		tell_of_launcher();
	if (!is_near(cpus))
		return;
	if (f)
		cop_endpoint_near_cpus(f, &near);
	if (!near.len)
		cop_log_warn(
			"--cpus near: not pinned, since this machine does not say which processors are near network=%s",
			network);
	else if (cop_cpus_pin(near.data, &why))
		cop_log_warn("--cpus near: not pinned: %s", why.text);
	else
		cop_log_info("pinned near network=%s cpus=%s", network, near.data);
	cop_buf_free(&near);
}
