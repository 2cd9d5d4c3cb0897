/* SPDX-License-Identifier: BSD-3-Clause */
#include <zlib.h>

#include "trace/read/inflate_priv.h"

#define INPUT_BYTES (256 * COP_KIB)

struct cop_inflate {
	int fd;
	off_t at; /* offset in the file */
	enum { UNKNOWN, PLAIN, GZIP, ZIP } form;
	bool ended;
	const char *fault;
	z_stream z;
	struct ahead ahead;
	struct member *member; /* if set, the source of bytes instead of zlib */
	size_t copied;         /* bytes already copied from it */
	uint64_t given;        /* bytes of the content that precede `out` */
	const unsigned char *out;
	struct {
		uint64_t apart, last;
		cop_inflate_visit *visit; /* NULL: do not report points */
		void *arg;
	} mark;
	bool bare;  /* reading began within a member, whose trailer zlib does not process */
	bool alone; /* other threads must not inflate ahead */
	struct {
		bool inside; /* within a stored member */
		bool stored, described;
		uint64_t left; /* bytes left of a stored member */
		uint32_t crc, want;
	} zip;
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

/* Appends new input after the bytes not yet consumed by zlib. */
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

/* Reads until the buffer has n bytes. Returns whether it does, or -errno. */
static int has_input(struct cop_inflate *in, size_t n)
{
	ssize_t got = 1;

	while (in->z.avail_in < n && got > 0)
		got = refill_input(in);
	return got < 0 ? (int)got : in->z.avail_in >= n;
}

static void skip_input(struct cop_inflate *in, size_t n)
{
	in->z.next_in += n;
	in->z.avail_in -= (unsigned)n;
}

/* ---- places ---- */

static uint64_t raw_now(const struct cop_inflate *in)
{
	return in->given + (uint64_t)(in->z.next_out - in->out);
}

/* Whether a point is due. */
static bool is_due(const struct cop_inflate *in)
{
	return in->mark.visit && raw_now(in) - in->mark.last >= in->mark.apart;
}

static void mark_member(struct cop_inflate *in)
{
	const struct cop_inflate_point at = {
		.raw = raw_now(in), .packed = (uint64_t)in->at - in->z.avail_in};

	in->mark.last = at.raw;
	in->mark.visit(in->mark.arg, &at, NULL, 0);
}

/* Reports a point; zlib is at the start of a block. */
static void mark_block(struct cop_inflate *in)
{
	const struct cop_inflate_point at = {.raw = raw_now(in),
		.packed = (uint64_t)in->at - in->z.avail_in,
		.bits = (unsigned)in->z.data_type & 7,
		.inside = true};
	unsigned char window[COP_INFLATE_WINDOW];
	unsigned len = sizeof(window);

	if (inflateGetDictionary(&in->z, window, &len) != Z_OK)
		return;
	in->mark.last = at.raw;
	in->mark.visit(in->mark.arg, &at, window, len);
}

void cop_inflate_mark(struct cop_inflate *in, uint64_t apart, cop_inflate_visit *visit, void *arg)
{
	in->mark.apart = apart;
	in->mark.visit = visit;
	in->mark.arg = arg;
	in->alone = true;
}

/* ---- gzip ---- */

/* Skips a member's checksum and length. Returns 0 or -errno. */
static int skip_trailer(struct cop_inflate *in)
{
	int rc = has_input(in, 8);

	if (rc < 0)
		return rc;
	in->bare = false;
	if (!rc) {
		end_stream(in, "the gzip data is cut off");
		return 0;
	}
	skip_input(in, 8);
	inflateReset2(&in->z, GZIP_ONLY);
	return 0;
}

/* Called at the end of a member. The next one may already be inflated. Zeros may follow, which pad
 * the file to a tape block; any other trailing data is reported. */
static int next_member(struct cop_inflate *in)
{
	ssize_t n = 0;

	if (in->bare) {
		int rc = skip_trailer(in);

		if (rc || in->ended)
			return rc;
	}
	in->member =
		in->alone ? NULL : cop_ahead_take(&in->ahead, (uint64_t)in->at - in->z.avail_in);
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
	if (!in->ended && is_due(in))
		mark_member(in);
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
	rc = inflate(&in->z, in->mark.visit ? Z_BLOCK : Z_NO_FLUSH);
	if (rc == Z_STREAM_END)
		return next_member(in);
	if (rc == Z_OK && (in->z.data_type & 192) == 128 && is_due(in))
		mark_block(in);
	if (rc == Z_MEM_ERROR)
		return -ENOMEM;
	if (rc != Z_OK && rc != Z_BUF_ERROR)
		end_stream(in, "the gzip data is damaged");
	return 0;
}

/* Copies bytes from a member inflated ahead. After its last byte, reading continues in the file
 * after the member, in the buffer or beyond it. */
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

/* ---- zip ---- */

/* A zip file is read sequentially by its local headers (APPNOTE 6.3, 4.3.7), so the central
 * directory at its end is not needed and may be missing. */
#define ZIP_HEADER 30u

static uint32_t u16(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const unsigned char *p)
{
	return u16(p) | u16(p + 2) << 16;
}

static bool is_zip(const struct cop_inflate *in)
{
	return in->z.avail_in >= 4 && !memcmp(in->z.next_in, "PK\3\4", 4);
}

/* Returns the size of a stored member, which for a large file is in the extra field (4.5.3). */
static uint64_t stored_size(const unsigned char *header)
{
	const unsigned char *p = header + ZIP_HEADER + u16(header + 26),
			    *end = p + u16(header + 28);
	uint32_t size = u32(header + 18);

	for (; size == UINT32_MAX && end - p >= 4; p += 4 + u16(p + 2))
		if (u16(p) == 1 && end - p >= 20)
			return u32(p + 12) | (uint64_t)u32(p + 16) << 32;
	return size;
}

static const char zip_cut[] = "the zip data is cut off", zip_damaged[] = "the zip data is damaged";

static int begin_member(struct cop_inflate *in)
{
	const unsigned char *p;
	int rc = has_input(in, ZIP_HEADER);

	if (rc < 0)
		return rc;
	p = in->z.next_in;
	if (!is_zip(in)) {
		bool directory = in->z.avail_in >= 2 && !memcmp(p, "PK", 2);

		end_stream(in, in->z.avail_in && !directory ? zip_damaged : NULL);
		return 0;
	}
	rc = rc ? has_input(in, ZIP_HEADER + u16(p + 26) + u16(p + 28)) : 0;
	if (rc <= 0) {
		end_stream(in, zip_cut);
		return rc;
	}
	p = in->z.next_in;
	in->zip.stored = !u16(p + 8);
	in->zip.described = u16(p + 6) & 8;
	in->zip.left = stored_size(p);
	in->zip.want = u32(p + 14);
	in->zip.crc = 0;
	in->zip.inside = true;
	if (u16(p + 6) & 1)
		end_stream(in, "the zip data is encrypted");
	else if ((u16(p + 8) && u16(p + 8) != 8) || (in->zip.stored && in->zip.described))
		end_stream(in, "the zip data is stored in a way that cannot be read");
	skip_input(in, ZIP_HEADER + u16(p + 26) + u16(p + 28));
	inflateReset2(&in->z, -15);
	return 0;
}

/* Skips the data descriptor that follows a member written to a pipe (4.3.9): an optional signature,
 * the checksum, and two sizes of 4 or 8 bytes. */
static int end_member(struct cop_inflate *in)
{
	const unsigned char *p;
	size_t n = 12;
	int rc;

	in->zip.inside = false;
	if (in->zip.described) {
		rc = has_input(in, 28);
		p = in->z.next_in;
		if (rc < 0)
			return rc;
		if (in->z.avail_in >= 16 && !memcmp(p, "PK\7\10", 4)) {
			p += 4;
			n += 4;
		}
		if (in->z.avail_in < n) {
			end_stream(in, zip_cut);
			return 0;
		}
		in->zip.want = u32(p);
		if (in->z.avail_in >= n + 10 && memcmp(in->z.next_in + n, "PK", 2))
			n += 8;
		skip_input(in, n);
	}
	if (in->zip.want != in->zip.crc)
		end_stream(in, zip_damaged);
	return 0;
}

static int copy_stored(struct cop_inflate *in)
{
	size_t n = (size_t)COP_MIN(
		COP_MIN(in->zip.left, (uint64_t)in->z.avail_out), (uint64_t)in->z.avail_in);

	memcpy(in->z.next_out, in->z.next_in, n);
	in->z.next_out += n;
	in->z.avail_out -= (unsigned)n;
	skip_input(in, n);
	in->zip.left -= n;
	return in->zip.left ? Z_OK : Z_STREAM_END;
}

static int some_zip(struct cop_inflate *in)
{
	unsigned char *out = in->z.next_out;
	ssize_t n = in->z.avail_in ? 1 : refill_input(in);
	int rc;

	if (n < 0)
		return (int)n;
	if (!n && !(in->zip.stored && !in->zip.left)) {
		end_stream(in, zip_cut);
		return 0;
	}
	rc = in->zip.stored ? copy_stored(in) : inflate(&in->z, Z_NO_FLUSH);
	in->zip.crc = (uint32_t)crc32(in->zip.crc, out, (unsigned)(in->z.next_out - out));
	if (rc == Z_MEM_ERROR)
		return -ENOMEM;
	if (rc == Z_STREAM_END)
		return end_member(in);
	if (rc != Z_OK && rc != Z_BUF_ERROR)
		end_stream(in, zip_damaged);
	return 0;
}

/* ---- all formats ---- */

static ssize_t read_packed(struct cop_inflate *in, void *data, size_t len)
{
	int rc = 0;

	len = COP_MIN(len, (size_t)1 << 30);
	in->z.next_out = data;
	in->z.avail_out = (unsigned)len;
	in->out = data;
	while (!rc && !in->ended && in->z.avail_out) {
		if (in->form == ZIP)
			rc = in->zip.inside ? some_zip(in) : begin_member(in);
		else
			rc = in->member ? copy_some(in) : inflate_some(in);
	}
	return rc ? rc : (ssize_t)(len - in->z.avail_out);
}

/* The start of a plain file is already in the buffer. */
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
		in->form = has_magic(in) ? GZIP : is_zip(in) ? ZIP : PLAIN;
	}
	n = in->form == PLAIN ? read_plain(in, data, len) : read_packed(in, data, len);
	in->given += n > 0 ? (uint64_t)n : 0;
	return n;
}

const char *cop_inflate_fault(const struct cop_inflate *in)
{
	return in->fault;
}

bool cop_inflate_is_plain(const struct cop_inflate *in)
{
	return in->form == PLAIN;
}

bool cop_inflate_is_gzip(const struct cop_inflate *in)
{
	return in->form == GZIP;
}

bool cop_inflate_ahead(struct cop_inflate *in, unsigned most)
{
	return in->form == GZIP && !in->alone && cop_ahead_work(&in->ahead, in->fd, most);
}

/* ---- seeking ---- */

/* Starts zlib at the point, or at the start of the file. Returns 0 or -errno. */
static int go_to(
	struct cop_inflate *in, const struct cop_inflate_point *at, const void *window, size_t len)
{
	unsigned char byte;
	ssize_t n = 1;

	in->z.avail_in = 0;
	in->ended = false;
	in->fault = NULL;
	in->at = (off_t)(at->packed - (at->bits ? 1 : 0));
	in->given = at->raw;
	in->bare = at->inside;
	if (inflateReset2(&in->z, at->inside ? -15 : GZIP_ONLY) != Z_OK)
		return -ENOMEM;
	if (at->bits)
		n = read_at(in, &byte, 1);
	if (n != 1)
		return n < 0 ? (int)n : -ESPIPE;
	if (at->bits)
		inflatePrime(&in->z, (int)at->bits, byte >> (8 - at->bits));
	return !len || inflateSetDictionary(&in->z, window, (unsigned)len) == Z_OK ? 0 : -EIO;
}

/* Reads and discards everything before byte raw. */
static int drop_upto(struct cop_inflate *in, uint64_t raw)
{
	char *room = malloc(INPUT_BYTES);
	ssize_t n = room ? 1 : -ENOMEM;

	while (n > 0 && in->given < raw)
		n = cop_inflate_read(in, room, COP_MIN(raw - in->given, (uint64_t)INPUT_BYTES));
	free(room);
	return n < 0 ? (int)n : n ? 0 : -ESPIPE;
}

int cop_inflate_seek(struct cop_inflate *in, const struct cop_inflate_point *at, const void *window,
	size_t len, uint64_t raw)
{
	const struct cop_inflate_point begin = {0};
	int rc = 0;

	in->alone = true;
	if (in->form == PLAIN) {
		in->z.avail_in = 0;
		in->at = (off_t)raw;
		in->given = raw;
		return 0;
	}
	if (in->form != GZIP)
		return -ESPIPE;
	if (at || raw < in->given)
		rc = go_to(in, at ? at : &begin, window, len);
	return rc ? rc : drop_upto(in, raw);
}
