/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of copper/mark.h: options from PERFFLOW_OPTIONS and the job's environment. */

COPPER_MARK_I_COLD unsigned copper_mark_i_roll(unsigned x, int n)
{
	return x << n | x >> (32 - n);
}

/* Processes one block of SHA-1 (FIPS 180-4). */
COPPER_MARK_I_COLD void copper_mark_i_sha1(unsigned h[5], const unsigned char block[64])
{
	static const unsigned k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
	unsigned w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (unsigned)block[4 * i] << 24 | (unsigned)block[4 * i + 1] << 16 |
		       (unsigned)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (; i < 80; i++)
		w[i] = copper_mark_i_roll(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (i = 0; i < 80; i++) {
		unsigned f = i < 20              ? (b & c) | (~b & d)
			     : i < 40 || i >= 60 ? b ^ c ^ d
						 : (b & c) | (b & d) | (c & d);
		unsigned next = copper_mark_i_roll(a, 5) + f + e + k[i / 20] + w[i];

		e = d;
		d = c;
		c = copper_mark_i_roll(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

/* Computes the first eight hex digits of a text's SHA-1, which is how PerfFlowAspect writes a job
 * name. */
COPPER_MARK_I_COLD void copper_mark_i_digest(const char *text, char out[16])
{
	unsigned h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	size_t len = strlen(text), at = 0;
	unsigned long long bits = 8ULL * len;
	unsigned char block[64];
	int i, ended = 0, last = 0;

	while (!last) {
		size_t n = len - at < 64 ? len - at : 64;

		memset(block, 0, sizeof(block));
		memcpy(block, text + at, n);
		at += n;
		if (n < 64 && !ended) {
			block[n] = 0x80;
			ended = 1;
		}
		last = ended && n < 56;
		for (i = 0; last && i < 8; i++)
			block[56 + i] = (unsigned char)(bits >> (56 - 8 * i));
		copper_mark_i_sha1(h, block);
	}
	snprintf(out, 16, "%08x", h[0]);
}

/* Finds the job's name: job and step number, or the directory of Flux's socket; "1" outside a
 * job. */
COPPER_MARK_I_COLD void copper_mark_i_job(char *out, size_t size)
{
	const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
	const char *uri = getenv("FLUX_URI");

	if (!job) {
		job = getenv("LSB_JOBID");
		step = getenv("LS_JOBPID");
	}
	snprintf(out, size, "1");
	if (job && step) {
		snprintf(out, size, "%s.%s", job, step);
	} else if (uri) {
		const char *path = strstr(uri, "://");
		char *slash;

		path = path ? strchr(path + 3, '/') : uri;
		snprintf(out, size, "%s", path ? path : "");
		slash = strrchr(out, '/');
		if (slash)
			slash[slash == out] = '\0';
	}
}

COPPER_MARK_I_COLD void copper_mark_i_instance(char *out, size_t size)
{
	const char *above = getenv("PERFFLOW_INSTANCE_PATH"), *flux = getenv("FLUX_JOB_ID");
	char job[600], digest[16];

	copper_mark_i_job(job, sizeof(job));
	copper_mark_i_digest(job, digest);
	snprintf(
		out, size, ".{%s%s%s}", above ? above : "", above ? "." : "", flux ? flux : digest);
}

struct copper_mark_i_options {
	char name[256], include[256], dir[2048];
	int enable, usage, compact, object;
};

/* Parses one of two words, in lower case, upper case or capitalized. Prints a message and returns
 * -1 for any other. */
COPPER_MARK_I_COLD int copper_mark_i_either(
	const char *key, const char *value, const char *no, const char *yes, int otherwise)
{
	const char *word[2];
	char wrong[80];
	int i;
	size_t n;

	word[0] = no;
	word[1] = yes;
	for (i = 0; i < 2; i++) {
		for (n = 0; value[n] && (value[n] | 32) == (word[i][n] | 32); n++)
			;
		if (!value[n] && !word[i][n])
			return i;
	}
	snprintf(wrong, sizeof(wrong), "PERFFLOW_OPTIONS: not a value of %s: ", key);
	copper_mark_i_say(wrong, value, "; ignored");
	return otherwise;
}

COPPER_MARK_I_COLD void copper_mark_i_option(
	struct copper_mark_i_options *o, const char *key, const char *value)
{
	if (!strcmp(key, "name"))
		snprintf(o->name, sizeof(o->name), "%s", value);
	else if (!strcmp(key, "log-filename-include"))
		snprintf(o->include, sizeof(o->include), "%s", value);
	else if (!strcmp(key, "log-dir"))
		snprintf(o->dir, sizeof(o->dir), "%s", value);
	else if (!strcmp(key, "log-enable"))
		o->enable = copper_mark_i_either(key, value, "False", "True", o->enable);
	else if (!strcmp(key, "cpu-mem-usage") || !strcmp(key, "cpu_mem_usage"))
		o->usage = copper_mark_i_either(key, value, "False", "True", o->usage);
	else if (!strcmp(key, "log-event"))
		o->compact = copper_mark_i_either(key, value, "Verbose", "Compact", o->compact);
	else if (!strcmp(key, "log-format"))
		o->object = copper_mark_i_either(key, value, "Array", "Object", o->object);
	else
		copper_mark_i_say("PERFFLOW_OPTIONS: no option is called ", key, "; ignored");
}

COPPER_MARK_I_COLD void copper_mark_i_parse(struct copper_mark_i_options *o)
{
	const char *at = getenv("PERFFLOW_OPTIONS");
	char word[2304], *value;

	memset(o, 0, sizeof(*o));
	o->enable = 1;
	strcpy(o->name, "generic");
	strcpy(o->include, "hostname,pid");
	for (; at && *at; at += *at == ':') {
		size_t len = strcspn(at, ":");

		snprintf(word, sizeof(word), "%.*s", (int)(len < 2300 ? len : 2300), at);
		at += len;
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		if (value)
			copper_mark_i_option(o, word, value);
		else if (len)
			copper_mark_i_say("PERFFLOW_OPTIONS: not KEY=VALUE: ", word, "; ignored");
	}
}

/* Sets the file's name without ".pfw": the words of log-filename-include, in order. */
COPPER_MARK_I_COLD void copper_mark_i_call(
	struct copper_mark_i_process *p, const struct copper_mark_i_options *o)
{
	char word[64], part[800], host[256] = "localhost";
	const char *at = o->include;
	size_t len = 0, n;

	gethostname(host, sizeof(host) - 1);
	len = (size_t)snprintf(
		p->name, sizeof(p->name), "perfflow.%s", o->object ? "object" : "array");
	for (; *at; at += *at == ',') {
		n = strcspn(at, ",");
		snprintf(word, sizeof(word), "%.*s", (int)(n < 60 ? n : 60), at);
		at += n;
		part[0] = '\0';
		if (!strcmp(word, "name"))
			snprintf(part, sizeof(part), ".%s", o->name);
		else if (!strcmp(word, "hostname"))
			snprintf(part, sizeof(part), ".%s", host);
		else if (!strcmp(word, "pid"))
			strcpy(part, ".\1");
		else if (!strcmp(word, "instance-path"))
			copper_mark_i_instance(part, sizeof(part));
		else
			copper_mark_i_say("PERFFLOW_OPTIONS: log-filename-include knows no ", word,
				"; ignored");
		part[200] = '\0'; /* a file name has at most 255 bytes */
		if (len + strlen(part) < 220)
			len += (size_t)snprintf(p->name + len, sizeof(p->name) - len, "%s", part);
	}
	for (n = 0; p->name[n]; n++)
		if (p->name[n] == '/')
			p->name[n] = '-';
}

/* Sets the directory. Returns 0 if its path is too long. */
COPPER_MARK_I_COLD int copper_mark_i_place(
	struct copper_mark_i_process *p, const struct copper_mark_i_options *o)
{
	const char *job = getenv("COPPER_JOB_DIR"), *dir = o->dir;
	char here[2048];

	p->in_job = !*dir && job && *job;
	if (p->in_job)
		dir = job;
	/* Make it absolute: the program may change its directory before its first event. */
	if (*dir == '/' || !getcwd(here, sizeof(here)))
		here[0] = '\0';
	if (snprintf(p->dir, sizeof(p->dir), "%s%s%s%s", here, *here ? "/" : "", *dir ? dir : ".",
		    p->in_job ? "/trace" : "") < (int)sizeof(p->dir))
		return 1;
	copper_mark_i_say(p->in_job ? "COPPER_JOB_DIR" : "PERFFLOW_OPTIONS: log-dir", "",
		" is too long a path; nothing is written");
	return 0;
}

COPPER_MARK_I_COLD int copper_mark_i_start(void)
{
	struct copper_mark_i_process *p = &copper_mark_i_process_1;
	struct copper_mark_i_options o;

	if (copper_mark_i_inside_1) /* called from a signal handler that interrupted this function
				     */
		return 1;
	copper_mark_i_inside_1++;
	pthread_mutex_lock(&copper_mark_i_list_1);
	if (!p->state) {
		copper_mark_i_parse(&o);
		p->compact = o.compact;
		p->object = o.object;
		p->usage = o.usage;
		p->pid = (int)getpid();
		copper_mark_i_call(p, &o);
		o.enable = copper_mark_i_place(p, &o) && o.enable;
		__atomic_store_n(&p->state, o.enable ? 2 : 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&copper_mark_i_list_1);
	copper_mark_i_inside_1--;
	return p->state;
}
