/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses sacct output: one line per job, followed by one per step. */
#include "job/scheduler/scheduler.h"

#define FIELDS "JobIDRaw,State,ElapsedRaw,MaxRSS,TRESUsageInTot,Start,End"
enum { ID, STATE, ELAPSED, MAX_RSS, TRES, START, END, PARTS };
/* Allows for the difference between the clocks of two machines, and for the time between a job's
 * start and its first process. */
#define SLACK_S 60

static bool split_line(char *line, char *part[PARTS])
{
	unsigned n = 0;
	char *rest = line, *next;

	while ((next = strsep(&rest, "|"))) {
		if (n == PARTS)
			return false;
		part[n++] = next;
	}
	return n == PARTS;
}

/* Parses "1234", "5364K" or "1.5G" as bytes; 0 if there is no value. */
static uint64_t bytes_of(const char *text)
{
	static const char units[] = "KMGTP";
	char *end;
	double v = strtod(text, &end);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (end == text || !(v > 0) || (*end && (!unit || end[1])))
		return 0;
	for (const char *u = units; unit && u <= unit; u++)
		v *= 1024;
	return v < 1e18 ? (uint64_t)v : 0;
}

static bool has_ended(const char *state)
{
	static const char *const not_yet[] = {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING",
		"CONFIGURING", "RESIZING", "STOPPED", "SIGNALING", "STAGE_OUT"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(not_yet); i++)
		if (strncmp(state, not_yet[i], strlen(not_yet[i])) == 0)
			return false;
	return true;
}

/* How many seconds at_s is from the attempt's run time; more than SLACK_S means another attempt.
 * Slurm before 20.11 prints times in a format of its own, which we ignore. */
static double distance(char *const part[PARTS], double at_s)
{
	uint64_t start_s, end_s;

	if (cop_parse_u64(part[START], &start_s))
		return strchr(part[START], 'T') ? SLACK_S : 2 * SLACK_S;
	if (at_s < (double)start_s)
		return (double)start_s - at_s;
	if (cop_parse_u64(part[END], &end_s) || at_s <= (double)end_s)
		return 0;
	return at_s - (double)end_s;
}

static bool is_word(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return false;
	return *text != '\0';
}

static bool take_job(char *const part[PARTS], struct cop_slurm_account *out)
{
	if (!is_word(part[STATE]) || cop_parse_u64(part[ELAPSED], &out->elapsed_s))
		return false;
	snprintf(out->state, sizeof(out->state), "%s", part[STATE]);
	out->ended = has_ended(part[STATE]);
	out->max_rss_bytes = 0;
	*out->tres = '\0';
	return true;
}

static void take_step(char *const part[PARTS], struct cop_slurm_account *out)
{
	uint64_t bytes = bytes_of(part[MAX_RSS]);

	if (bytes <= out->max_rss_bytes)
		return;
	out->max_rss_bytes = bytes;
	snprintf(out->tres, sizeof(out->tres), "%s", is_word(part[TRES]) ? part[TRES] : "");
}

/* Chooses the nearest attempt; if two are equally near, the later. */
static int parse_lines(char *text, const char *job, double at_s, struct cop_slurm_account *out)
{
	size_t len = strlen(job);
	double best_s = SLACK_S, far_s;
	bool within = false;
	int rc = -ENOENT;
	char *rest = text, *line, *part[PARTS];

	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		if (!split_line(line, part))
			return -EBADMSG;
		if (strncmp(part[ID], job, len) != 0)
			within = false;
		else if (part[ID][len] == '.' && within)
			take_step(part, out);
		else if (!part[ID][len]) {
			far_s = distance(part, at_s);
			within = far_s <= best_s;
			best_s = within ? far_s : best_s;
			if (within)
				rc = take_job(part, out) ? 0 : -EBADMSG;
		}
		if (rc == -EBADMSG)
			return rc;
	}
	return rc;
}

int cop_slurm_account_parse(
	const char *text, const char *job, double at_s, struct cop_slurm_account *out)
{
	char *own = strdup(text);
	int rc;

	*out = (struct cop_slurm_account){0};
	if (!own)
		return -ENOMEM;
	rc = parse_lines(own, job, at_s, out);
	free(own);
	return rc;
}

int cop_slurm_account(const char *job, const char *cluster, double at_s, uint32_t timeout_ms,
	struct cop_slurm_account *out)
{
	char *argv[] = {"sacct", "--noheader", "--parsable2", "--duplicates", "--noconvert",
		"--format=" FIELDS, "--jobs", (char *)job, NULL, (char *)cluster, NULL};
	struct cop_buf text = {0};
	int rc;

	if (cluster && *cluster)
		argv[8] = "--clusters";
	setenv("SLURM_TIME_FORMAT", "%s", 1);
	rc = cop_slurm_command(argv, timeout_ms, &text);
	if (!rc)
		rc = cop_slurm_account_parse(text.data ? text.data : "", job, at_s, out);
	cop_buf_free(&text);
	return rc;
}
