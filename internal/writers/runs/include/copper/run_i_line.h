/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of copper/run.h: one line of tab-separated fields. */

struct copper_run_i_text {
	long long now_ns;
	size_t len;
	char text[COPPER_RUN_I_LINE];
};

/* Adds a field, truncated at a character boundary to at most `most` bytes. */
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

COPPER_RUN_I_COLD void copper_run_i_time(struct copper_run_i_text *t)
{
	char *end = t->text + t->len;

	*end++ = '\t';
	end = copper_run_i_whole(end, (unsigned long long)t->now_ns / 1000000000, 1);
	*end++ = '.';
	end = copper_run_i_whole(end, (unsigned long long)t->now_ns / 1000 % 1000000, 6);
	t->len = (size_t)(end - t->text);
}

COPPER_RUN_I_COLD void copper_run_i_point(
	struct copper_run_i_text *t, const char *key, double value, long long step)
{
	char *end;

	copper_run_i_word(t, "metric", *key ? key : "metric");
	t->text[t->len++] = '\t';
	end = copper_run_i_whole(t->text + t->len, step > 0 ? (unsigned long long)step : 0, 1);
	t->len = (size_t)(end - t->text);
	copper_run_i_time(t);
	end = t->text + t->len;
	*end++ = '\t';
	end = copper_run_i_real(end, value);
	*end++ = '\n';
	t->len = (size_t)(end - t->text);
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
