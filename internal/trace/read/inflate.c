/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "trace/read/inflate_priv.h"

#define INPUT_BYTES (256 * COP_KIB)

struct cop_inflate {
	int fd;
	off_t at; /* in the file */
	enum { UNKNOWN, PLAIN, GZIP } form;
	bool ended;
	const char *fault;
	z_stream z;
	struct ahead ahead;
	struct member *member; /* is read instead of zlib's output */
	size_t copied;         /* of it */
	unsigned char input[INPUT_BYTES];
};

int cop_inflate_open(int fd, struct cop_inflate **out)
{
	struct cop_inflate *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	in->fd = fd;
	if (inflateInit2(&in->z, GZIP_ONLY) != Z_OK) {
		free(in);
		return -ENOMEM;
	}
	cop_ahead_init(&in->ahead);
	*out = in;
	return 0;
}

void cop_inflate_close(struct cop_inflate *in)
{
	if (!in)
		return;
	inflateEnd(&in->z);
	cop_ahead_fini(&in->ahead);
	free(in);
}

static ssize_t read_at(struct cop_inflate *in, void *data, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(in->fd, (char *)data + got, len - got, in->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		got += (size_t)n;
		in->at += n;
	}
	return (ssize_t)got;
}

/* Puts new bytes behind those that zlib has not taken. */
static ssize_t refill_input(struct cop_inflate *in)
{
	ssize_t n;

	if (in->z.avail_in)
		memmove(in->input, in->z.next_in, in->z.avail_in);
	n = read_at(in, in->input + in->z.avail_in, sizeof(in->input) - in->z.avail_in);
	in->z.next_in = in->input;
	if (n > 0)
		in->z.avail_in += (unsigned)n;
	return n;
}

static bool has_magic(const struct cop_inflate *in)
{
	return in->z.avail_in >= 2 && in->z.next_in[0] == 0x1f && in->z.next_in[1] == 0x8b;
}

static void end_stream(struct cop_inflate *in, const char *fault)
{
	in->ended = true;
	in->fault = fault;
}

/* A member has ended. The next one may be inflated already. Zeros may follow, to the end of a
 * tape's block; anything else that is no member is reported. */
static int next_member(struct cop_inflate *in)
{
	ssize_t n = 0;

	in->member = cop_ahead_take(&in->ahead, (uint64_t)in->at - in->z.avail_in);
	if (in->member)
		return 0;
	do {
		while (in->z.avail_in && !*in->z.next_in) {
			in->z.next_in++;
			in->z.avail_in--;
		}
		if (in->z.avail_in < 2)
			n = refill_input(in);
	} while (n > 0 && !*in->z.next_in);
	if (n < 0)
		return (int)n;
	if (!in->z.avail_in)
		end_stream(in, NULL);
	else if (!has_magic(in))
		end_stream(in, "something that is not gzip follows the gzip data");
	else
		inflateReset(&in->z);
	return 0;
}

static int inflate_some(struct cop_inflate *in)
{
	ssize_t n = in->z.avail_in ? 1 : refill_input(in);
	int rc;

	if (n < 0)
		return (int)n;
	if (!n) {
		end_stream(in, "the gzip data is cut off");
		return 0;
	}
	rc = inflate(&in->z, Z_NO_FLUSH);
	if (rc == Z_STREAM_END)
		return next_member(in);
	if (rc == Z_MEM_ERROR)
		return -ENOMEM;
	if (rc != Z_OK && rc != Z_BUF_ERROR)
		end_stream(in, "the gzip data is damaged");
	return 0;
}

/* Bytes of a member that is inflated already. Behind it the file goes on, in the buffer or not. */
static int copy_some(struct cop_inflate *in)
{
	struct member *m = in->member;
	size_t n = COP_MIN(m->len - in->copied, (size_t)in->z.avail_out);
	uint64_t packed = m->end - m->start;

	memcpy(in->z.next_out, m->text + in->copied, n);
	in->z.next_out += n;
	in->z.avail_out -= (unsigned)n;
	in->copied += n;
	if (in->copied < m->len)
		return 0;
	in->copied = 0;
	in->member = NULL;
	if (packed <= in->z.avail_in) {
		in->z.next_in += packed;
		in->z.avail_in -= (unsigned)packed;
	} else {
		in->at = (off_t)m->end;
		in->z.avail_in = 0;
	}
	cop_ahead_give(&in->ahead, m);
	return next_member(in);
}

static ssize_t read_gzip(struct cop_inflate *in, void *data, size_t len)
{
	int rc = 0;

	len = COP_MIN(len, (size_t)1 << 30);
	in->z.next_out = data;
	in->z.avail_out = (unsigned)len;
	while (!rc && !in->ended && in->z.avail_out)
		rc = in->member ? copy_some(in) : inflate_some(in);
	return rc ? rc : (ssize_t)(len - in->z.avail_out);
}

/* The beginning of a plain file is in the buffer. */
static ssize_t read_plain(struct cop_inflate *in, void *data, size_t len)
{
	size_t had = COP_MIN(len, (size_t)in->z.avail_in);
	ssize_t n;

	memcpy(data, in->z.next_in, had);
	in->z.next_in += had;
	in->z.avail_in -= (unsigned)had;
	if (had == len)
		return (ssize_t)len;
	n = read_at(in, (char *)data + had, len - had);
	return n < 0 ? n : (ssize_t)had + n;
}

ssize_t cop_inflate_read(struct cop_inflate *in, void *data, size_t len)
{
	ssize_t n;

	if (in->form == UNKNOWN) {
		n = refill_input(in);
		if (n < 0)
			return n;
		in->form = has_magic(in) ? GZIP : PLAIN;
	}
	return in->form == GZIP ? read_gzip(in, data, len) : read_plain(in, data, len);
}

const char *cop_inflate_fault(const struct cop_inflate *in)
{
	return in->fault;
}

bool cop_inflate_is_plain(const struct cop_inflate *in)
{
	return in->form == PLAIN;
}

bool cop_inflate_ahead(struct cop_inflate *in, unsigned most)
{
	return in->form == GZIP && cop_ahead_work(&in->ahead, in->fd, most);
}
