/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <math.h>

#include "base/base/grow.h"
#include "report/jobdata/jobdata_priv.h"

/* Returns whether the header has any of the columns. */
static bool find_columns(struct sheet *s, const struct cop_csv_record *r)
{
	bool any = false;

	for (unsigned c = 0; s->column[c]; c++) {
		s->at[c] = -1;
		for (unsigned f = 0; f < r->n && s->at[c] < 0; f++)
			if (strcmp(r->field[f].text, s->column[c]) == 0)
				s->at[c] = (int)f;
		any |= s->at[c] >= 0;
	}
	return any;
}

static int read_rows(struct sheet *s, struct cop_csv *csv)
{
	struct cop_csv_record r;
	unsigned rows = 0;
	int rc;

	while ((rc = cop_csv_next(csv, &r)) > 0 && !r.cut && rows++ < SHEET_ROWS_MAX) {
		rc = s->row(s->arg, s, &r);
		if (rc)
			return rc;
	}
	return rc == -ENOMEM ? rc : 0;
}

int cop_jobdata_sheet_from(struct sheet *s, cop_csv_read *read, void *arg)
{
	struct cop_csv csv = {0};
	struct cop_csv_record r;
	int rc = cop_csv_open(&csv, read, arg);

	if (!rc && cop_csv_next(&csv, &r) <= 0)
		rc = -ENOENT;
	if (!rc && !find_columns(s, &r))
		rc = -ENOENT;
	if (!rc && s->head)
		rc = s->head(s->arg, &r);
	if (!rc)
		rc = read_rows(s, &csv);
	cop_csv_free(&csv);
	return rc;
}

struct input {
	int fd;
	uint64_t left;
};

static ssize_t read_input(void *arg, void *data, size_t len)
{
	struct input *in = arg;

	return cop_read_left(in->fd, &in->left, data, len);
}

static int open_input(struct input *in, const char *dir, const char *name)
{
	int d = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (d < 0)
		return -ENOENT;
	in->fd = cop_open_regular(d, name, &in->left);
	close(d);
	return in->fd < 0 ? -ENOENT : 0;
}

int cop_jobdata_sheet(struct sheet *s, const char *dir, const char *name)
{
	struct input in;
	int rc = open_input(&in, dir, name);

	if (rc)
		return rc;
	rc = cop_jobdata_sheet_from(s, read_input, &in);
	close(in.fd);
	return rc;
}

int cop_jobdata_with_file(
	struct cop_jobdata *j, const char *dir, const char *name, cop_jobdata_from_fn *from)
{
	struct input in;
	int rc;

	if (open_input(&in, dir, name))
		return 0;
	rc = from(j, read_input, &in);
	close(in.fd);
	return rc;
}

const char *cop_jobdata_text(
	const struct sheet *s, const struct cop_csv_record *r, unsigned column, size_t *len)
{
	int at = s->at[column];
	bool has = at >= 0 && (unsigned)at < r->n;

	if (len)
		*len = has ? r->field[at].len : 0;
	return has ? r->field[at].text : "";
}

double cop_jobdata_number(const struct sheet *s, const struct cop_csv_record *r, unsigned column)
{
	const char *text = cop_jobdata_text(s, r, column, NULL);
	char *end;
	double v = strtod(text, &end);

	return *text && !*end && isfinite(v) ? v : NAN;
}

uint64_t cop_jobdata_count(const struct sheet *s, const struct cop_csv_record *r, unsigned column)
{
	double v = cop_jobdata_number(s, r, column);

	return isnan(v) || v < 0 ? 0 : v >= 0x1p63 ? (uint64_t)1 << 63 : (uint64_t)v;
}

int cop_jobdata_rank(
	const struct sheet *s, const struct cop_csv_record *r, unsigned column, int32_t *rank)
{
	static const char *const names[] = {"min", "median", "max"};
	const char *text = cop_jobdata_text(s, r, column, NULL);
	uint64_t n;

	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			*rank = -1 - i;
			return 0;
		}
	if (cop_parse_u64(text, &n) || n > INT32_MAX)
		return -EINVAL;
	*rank = (int32_t)n;
	return 0;
}

char *cop_jobdata_copy(const char *text, size_t len)
{
	return strndup(text, COP_MIN(len, (size_t)65536));
}

/* array is the address of a pointer of any type. Doubles the capacity when n is a power of two. */
void *cop_jobdata_more(void *array, size_t *n, size_t size, size_t max)
{
	char *grown;

	if (*n >= max)
		return NULL;
	memcpy(&grown, array, sizeof(grown));
	grown = cop_grown_plain(grown, *n, size);
	if (!grown)
		return NULL;
	memcpy(array, &grown, sizeof(grown));
	memset(grown + *n * size, 0, size);
	return grown + (*n)++ * size;
}

int cop_jobdata_add_value(struct cop_jobdata_values *v, const char *name, double value)
{
	struct cop_jobdata_value *one;

	if (v->n >= COP_JOBDATA_VALUES_MAX)
		return 0;
	one = cop_jobdata_more(&v->at, &v->n, sizeof(*one), COP_JOBDATA_VALUES_MAX);
	if (!one)
		return -ENOMEM;
	one->value = value;
	one->name = cop_jobdata_copy(name, strlen(name));
	return one->name ? 0 : -ENOMEM;
}

double cop_jobdata_value(const struct cop_jobdata_values *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->at[i].name && strcmp(v->at[i].name, name) == 0)
			return v->at[i].value;
	return NAN;
}
