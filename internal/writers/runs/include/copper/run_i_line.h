/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of copper/run.h: one line, its parts separated by tabs. */

struct copper_run_i_text {
	long long now_ns;
	size_t len;
	char text[COPPER_RUN_I_LINE];
};

/* Adds a part of at most `most` bytes, without half a character at its end. */
COPPER_RUN_I_COLD void copper_run_i_add(struct copper_run_i_text *t, const char *part, size_t most)
{
	static const char plain[] = "\\\t\n\r", coded[] = "\\tnr";
	size_t len = strlen(part), i;

	if (len > most)
		for (len = most; len && ((unsigned char)part[len] & 0xc0) == 0x80;)
			len--;
	t->text[t->len++] = '\t';
	for (i = 0; i < len; i++) {
		const char *at = (unsigned char)part[i] <= '\\' ? strchr(plain, part[i]) : NULL;

		if (at)
			t->text[t->len++] = '\\';
		t->text[t->len++] = at ? coded[at - plain] : part[i];
	}
}

static inline void copper_run_i_word(struct copper_run_i_text *t, const char *word, const char *key)
{
	size_t len = strlen(word);

	memcpy(t->text + t->len, word, len);
	t->len += len;
	copper_run_i_add(t, key, COPPER_RUN_I_KEY);
}

static inline void copper_run_i_begin(struct copper_run_i_text *t)
{
	t->len = 0;
	t->now_ns = copper_run_i_now();
}

/* Adds a number of at least so many digits. */
COPPER_RUN_I_COLD void copper_run_i_whole(
	struct copper_run_i_text *t, char before, unsigned long long n, int digits)
{
	char text[24];
	int at = sizeof(text);

	for (; n || digits > 0; n /= 10, digits--)
		text[--at] = (char)('0' + n % 10);
	t->text[t->len++] = before;
	memcpy(t->text + t->len, text + at, sizeof(text) - (size_t)at);
	t->len += sizeof(text) - (size_t)at;
}

COPPER_RUN_I_COLD void copper_run_i_time(struct copper_run_i_text *t)
{
	copper_run_i_whole(t, '\t', (unsigned long long)t->now_ns / 1000000000, 1);
	copper_run_i_whole(t, '.', (unsigned long long)t->now_ns / 1000 % 1000000, 6);
}

COPPER_RUN_I_COLD void copper_run_i_point(
	struct copper_run_i_text *t, const char *key, double value, long long step)
{
	copper_run_i_word(t, "metric", *key ? key : "metric");
	copper_run_i_whole(t, '\t', step > 0 ? (unsigned long long)step : 0, 1);
	copper_run_i_time(t);
	t->len += (size_t)snprintf(t->text + t->len, 40, "\t%.17g\n", value);
}

/* Writes the lines. */
COPPER_RUN_I_COLD void copper_run_i_put(struct copper_run_i_text *t)
{
	pthread_mutex_lock(&copper_run_i_lock_1);
	if (copper_run_i_on())
		copper_run_i_write(t->text, t->len, t->now_ns);
	pthread_mutex_unlock(&copper_run_i_lock_1);
}

static inline void copper_run_i_pair(const char *word, const char *key, const char *value)
{
	struct copper_run_i_text t;

	if (!*key)
		return;
	copper_run_i_begin(&t);
	copper_run_i_word(&t, word, key);
	copper_run_i_add(&t, value, COPPER_RUN_I_VALUE);
	t.text[t.len++] = '\n';
	copper_run_i_put(&t);
}
