/* SPDX-License-Identifier: BSD-3-Clause */
/* wire: bytes to messages and back, and the tags that authenticate them. Pure: no sockets, no
 * threads, no clocks, and no allocation unless it is mentioned. Everything that comes from outside
 * is checked here before anyone uses it; fuzzed. All integers are little endian. */
#ifndef COP_FABRIC_WIRE_H
#define COP_FABRIC_WIRE_H

#include "base/base/base.h"

/* ---- bounded reading and writing of payloads ---- */

/* A reader never passes end: after a short read `bad` is set and everything else reads as zero. */
struct cop_rd {
	const uint8_t *p, *end;
	bool bad;
};
struct cop_rd cop_rd_init(const void *data, size_t len);
uint8_t cop_rd_u8(struct cop_rd *r);
uint16_t cop_rd_u16(struct cop_rd *r);
uint32_t cop_rd_u32(struct cop_rd *r);
uint64_t cop_rd_u64(struct cop_rd *r);
/* A string or byte run with a 16-bit length before it; points into the message, not terminated. */
const char *cop_rd_str(struct cop_rd *r, size_t *len);
/* Returns the rest of the message. */
const void *cop_rd_rest(struct cop_rd *r, size_t *len);
/* Whether nothing was truncated and nothing is left over. */
bool cop_rd_done(const struct cop_rd *r);

/* A writer into a fixed buffer; `bad` is set when it did not fit. */
struct cop_wr {
	uint8_t *start, *p, *end;
	bool bad;
};
struct cop_wr cop_wr_init(void *data, size_t size);
void cop_wr_u8(struct cop_wr *w, uint8_t v);
void cop_wr_u16(struct cop_wr *w, uint16_t v);
void cop_wr_u32(struct cop_wr *w, uint32_t v);
void cop_wr_u64(struct cop_wr *w, uint64_t v);
void cop_wr_str(struct cop_wr *w, const char *data, size_t len);
void cop_wr_bytes(struct cop_wr *w, const void *data, size_t len);
size_t cop_wr_len(const struct cop_wr *w);

/* ---- attributes, entries, listings ---- */

/* The result of stat(2), as the root read it. Times are seconds since the epoch (negative before
 * it), and nanoseconds after those seconds. */
struct cop_attr {
	uint64_t ino;    /* as the mount shows it: unique in the tree */
	uint64_t size;   /* bytes */
	uint64_t blocks; /* 512-byte units */
	int64_t atime_s, mtime_s, ctime_s;
	uint64_t version; /* changes whenever ino, size, mtime or ctime change; never 0; young or
			     not */
	uint32_t atime_nsec, mtime_nsec, ctime_nsec; /* 0 to 999999999 */
	uint32_t mode, nlink, uid, gid;
	uint32_t rdev_major, rdev_minor;
	uint32_t blksize;
};

/* XXH3 of those fields; always even, never 0. */
uint64_t cop_attr_version(const struct cop_attr *a);

/* Timestamps distinguish two changes only if a tick of the storage lies between them. An object
 * that is read less than two ticks after its last change may change again without getting a
 * different stamp. Its version is young: the odd number next to the version that it has afterwards.
 * So later answers are never mistaken for early ones. (git's index calls such an entry racy.) */

/* The version of attributes that were read at this moment, in ns since the epoch. */
uint64_t cop_attr_version_at(const struct cop_attr *a, int64_t now_ns);
static inline bool cop_version_is_young(uint64_t version)
{
	return version & 1;
}
/* Whether both have the same stamps, young or not. */
static inline bool cop_version_same(uint64_t a, uint64_t b)
{
	return (a | 1) == (b | 1);
}
/* How long a young version stays young: two ticks, in ms. The stamps themselves show the tick: if
 * both are whole seconds, it is a second. */
uint64_t cop_attr_young_ms(const struct cop_attr *a);

/* An entry blob: the attributes of one name and, for a symlink, its target. */
/* Allocates; the caller frees. -ENOMEM, -EINVAL for a target over 4095 bytes. */
int cop_entry_build(const struct cop_attr *attr, const char *target, size_t target_len, void **blob,
	size_t *len);
/* 0 if every later cop_entry_* call on this blob is safe; -EBADMSG. */
int cop_entry_check(const void *blob, size_t len);
void cop_entry_get(
	const void *blob, struct cop_attr *attr, const char **target, size_t *target_len);

/* A listing blob: a whole directory, immutable, used in place by everyone who holds it. It is sent
 * and stored in this form: the root builds it once, and it is never parsed into anything else.
 * Entries are sorted by their cookies, which are 62-bit hashes of the names (made unique by
 * counting up). So a directory offset means the same name in every later version of the directory,
 * and a lookup is a binary search. "." and ".." are not in it. */

enum {
	COP_LISTING_COMPLETE = 1, /* it has all names that the storage listed */
	COP_LISTING_HIDES = 2,    /* a name that is not in it may exist: ask for it */
};

struct cop_listing_entry {
	uint64_t cookie;  /* > 2, < 2^63: the directory offset just after this entry */
	const char *name; /* not terminated */
	size_t name_len;
	uint8_t type; /* DT_* of dirent.h */
	uint64_t ino; /* the inode number, with or without attributes; 0: unknown */
	bool has_attr;
	struct cop_attr attr; /* valid if has_attr */
	const char *target;   /* of a symlink, if it was read; else NULL */
	size_t target_len;
};

/* Builder; zero-initialised is empty. */
struct cop_listing_builder {
	struct cop_buf items; /* private */
	uint32_t count;
	bool failed;
};
/* Copies its arguments. Names that are empty, ".", "..", contain a slash or NUL, or are longer than
 * 255 bytes are refused (-EINVAL). */
int cop_listing_add(struct cop_listing_builder *b, const char *name, size_t name_len, uint8_t type,
	const struct cop_attr *attr, const char *target, size_t target_len);
/* Adds a name without attributes; ino: the inode number that they would contain. */
int cop_listing_add_bare(struct cop_listing_builder *b, const char *name, size_t name_len,
	uint8_t type, uint64_t ino);
/* Allocates *blob; the caller frees. The builder is empty afterwards. -ENOMEM, -EEXIST for a
 * duplicate name. */
int cop_listing_build(struct cop_listing_builder *b, const struct cop_attr *dir, uint32_t flags,
	void **blob, size_t *len);
void cop_listing_builder_free(struct cop_listing_builder *b);
/* Merges two listings: the names of both, with the attributes from the known one if it has them,
 * and the directory's own attributes and flags from the newer one. The caller frees *blob. -ENOMEM;
 * -E2BIG if there are too many names (65,536) or they are too long for one listing. */
int cop_listing_merge(const void *known, const void *newer, void **blob, size_t *len);

/* 0 if every later cop_listing_* call on this blob (8-byte aligned) is safe and lookups in it are
 * valid: all offsets are inside the blob, cookies strictly ascend and are close enough to their
 * names' hashes, and names are well formed; -EBADMSG. */
int cop_listing_check(const void *blob, size_t len);
uint32_t cop_listing_count(const void *blob);
uint32_t cop_listing_flags(const void *blob);
void cop_listing_dir(const void *blob, struct cop_attr *dir);
/* Fills *e and returns true if the name exists. */
bool cop_listing_find(
	const void *blob, const char *name, size_t name_len, struct cop_listing_entry *e);
/* Index of the first entry with a cookie above this one (0: the first); count if there is none. */
uint32_t cop_listing_seek(const void *blob, uint64_t cookie);
void cop_listing_at(const void *blob, uint32_t index, struct cop_listing_entry *e);

/* ---- pages: the attributes of a large directory, in parts ---- */

/* The listing of a directory with many names has no attributes; pages bring them. The hash of a
 * name tells which of n pages it is in, whatever other names exist, and the names of a page are
 * adjacent in a listing. A page is a listing blob with the attributes of each name in it and
 * without COP_LISTING_COMPLETE: a name without attributes, because it is gone or was not answered,
 * is omitted and proves nothing. */

#define COP_PAGE_NAMES 1000u /* names per page on average, */
#define COP_PAGE_MOST 4000u  /* and at most; hashes that somebody has chosen get no page */
#define COP_PAGES_MAX 4096u  /* more than the largest listing needs */

struct cop_listing_page {
	uint64_t version; /* of the directory */
	uint32_t pages;   /* how many pages its names are divided into, 1 to COP_PAGES_MAX */
	uint32_t index;   /* which of them this is, below pages */
};

/* Into how many pages the names of a listing are divided. */
uint32_t cop_listing_pages(const void *listing);
/* Which of this many pages a name is in. */
uint32_t cop_listing_page_of(const char *name, size_t name_len, uint32_t pages);
/* The entries of a listing that belong to this page: from *first up to, but not including, *end. */
void cop_listing_page_range(
	const void *listing, uint32_t pages, uint32_t index, uint32_t *first, uint32_t *end);
/* 0 if the blob is this page: a listing (cop_listing_check) of this version of the directory, young
 * or not, that contains only names of this page, each with attributes; -EBADMSG. */
int cop_listing_page_check(const void *blob, size_t len, const struct cop_listing_page *page);

/* ---- packed chunks (LZ4 block format)
 * --------------------------------------------------------------
 *
 * A chunk compressed in blocks of 64 KiB, each on its own, so that a reader of 128 KiB unpacks
 * three blocks at most. It is sent and stored in this form. Each block carries 32 bits of the XXH3
 * of its unpacked bytes, checked when it is unpacked. */

#define COP_PACK_BLOCK (64 * COP_KIB)

/* 0 and a blob that the caller frees; -ENODATA if packing would save less than a tenth; -ENOMEM. */
int cop_pack(const void *raw, size_t len, void **blob, size_t *blob_len);
/* 0 if the blob can be read as raw_len bytes; -EBADMSG. */
int cop_pack_check(const void *blob, size_t blob_len, size_t raw_len);
/* Unpacks bytes off..off+len of a checked blob. -EBADMSG for damaged blocks and for bytes beyond
 * its end, -ENOMEM. */
int cop_pack_read(const void *blob, size_t off, size_t len, void *out);

/* ---- small fixed records, sent as they are (little endian, no padding) ---- */

/* A run of data in a sparse file. */
struct cop_extent {
	uint64_t start, end; /* bytes, end exclusive */
};

/* What statvfs says about the source. */
struct cop_statfs {
	uint64_t bsize, frsize, blocks, bfree, bavail, files, ffree, favail, namemax;
};

/* ---- the job's secret ---- */

#define COP_WIRE_SECRET_BYTES 32
struct cop_wire_secret {
	uint8_t bytes[COP_WIRE_SECRET_BYTES];
};
/* Makes a secret from any text or bytes (a secret file's content without trailing white space), by
 * BLAKE2b. -EINVAL if they are shorter than 16 bytes. */
int cop_wire_secret_from(const void *data, size_t len, struct cop_wire_secret *out);
/* BLAKE2b-256 over context and data, keyed by the secret, for other authenticated exchanges (the
 * rendezvous). */
void cop_wire_mac(const struct cop_wire_secret *s, const char *context, const void *data,
	size_t len, uint8_t out[32]);
/* The seed of checksums for one purpose, which only nodes that have the secret know. */
uint64_t cop_wire_seed(const struct cop_wire_secret *s, const char *purpose);

/* ---- random bytes and constant-time comparison ---- */

/* Random bytes from the kernel's generator. Never fails. */
void cop_wire_random(void *out, size_t len);
/* 64 random bits. */
uint64_t cop_wire_random64(void);

/* ---- frames: what encloses every message between two nodes
 * ----------------------------------------
 *
 *     0  u32 magic "COP1"   4 u8 version   5 u8 type   6 u16 flags
 *     8  u32 length of the whole message, tag included   12 u32 zero
 *    16  u64 session: the id that the receiver gave to the session
 *    24  u64 counter: 1, 2, 3... of this direction of the session
 *    32  u64 request id
 *    40  payload
 *   end  16-byte tag over everything before it (handshake messages: 32 bytes, below)
 *
 * The tag is SipHash-2-4 with 128-bit output under a 128-bit key of one direction of one session.
 * SipHash (Aumasson and Bernstein, 2012) is a keyed PRF made for authenticating short messages;
 * measured here it takes 50 ns for 64 bytes and 7.5 us for 16,000 (2.1 GB/s), keyed BLAKE2b-128 345
 * ns and 18.9 us. Bulk bytes never pass through it: their checksum does. Messages are
 * authenticated, not encrypted: what travels is a read-only tree that the job's own network may
 * see. */

#define COP_FRAME_HEAD 40
#define COP_FRAME_TAG 16
/* How many bytes of a sealed message are not payload. */
#define COP_FRAME_OVERHEAD (COP_FRAME_HEAD + COP_FRAME_TAG)

enum cop_frame_type {
	COP_FRAME_HELLO = 1,   /* initiator to responder: who it is, where it is, its nonce */
	COP_FRAME_WELCOME = 2, /* responder to initiator: its nonce, proof of the secret */
	COP_FRAME_REQUEST = 3, /* this and those below are sealed */
	COP_FRAME_REPLY = 4,
	COP_FRAME_PULL = 5,
	COP_FRAME_PING = 6,
	COP_FRAME_PONG = 7,
	COP_FRAME_REQUESTS = 8, /* several requests, each with an id of its own */
	COP_FRAME_TYPES
};

struct cop_frame {
	uint8_t type;
	uint16_t flags;
	uint64_t session, counter, request;
	const uint8_t *payload; /* points into the message */
	size_t payload_len;
};

/* One direction of a session. With a key and zeros otherwise, it is a fresh one. */
struct cop_frame_tx {
	uint8_t key[16];
	uint64_t counter; /* of the last message sealed */
};
struct cop_frame_rx {
	uint8_t key[16];
	uint64_t highest; /* largest counter accepted */
	uint64_t seen;    /* bit i: highest - i was accepted */
};
struct cop_frame_keys {
	struct cop_frame_tx tx;
	struct cop_frame_rx rx;
	uint64_t body_seed; /* of the checksums of bodies that travel by RMA; secret */
};

/* Checks only the form: magic, version, type, length and zero fields. 0 or -EBADMSG. The payload of
 * a handshake message ends before its 32-byte tag, that of any other before its 16-byte tag.
 * Nothing in *f may be trusted until the tag has been checked. */
int cop_frame_parse(const void *msg, size_t len, struct cop_frame *f);

/* Starts a message in buf: returns a writer positioned at the payload. Uses type, flags, session
 * and request of *f. */
struct cop_wr cop_frame_begin(void *buf, size_t size, const struct cop_frame *f);
/* Gives the message its length, counter and tag. Returns its length, 0 if it did not fit. */
size_t cop_frame_seal(struct cop_frame_tx *tx, struct cop_wr *w);
/* Checks form, tag, then replay window (the last 64 counters may come out of order, each once; as
 * in RFC 4303 section 3.4.3). 0, -EBADMSG (form), -EACCES (tag), -EALREADY (counter seen before or
 * too old). On failure *rx is unchanged. */
int cop_frame_open(struct cop_frame_rx *rx, const void *msg, size_t len, struct cop_frame *f);

/* ---- the handshake
 * --------------------------------------------------------------------------------------
 *
 *     A -> B  HELLO    from, to, A's session id, B's session id that A holds, A's config hash,
 * nonce_A, A's address, MAC_hello B -> A  WELCOME  to A's session id: B's session id, nonce_B,
 * MAC_welcome over HELLO and WELCOME A -> B  any sealed message of the new session
 *
 * MACs and keys are BLAKE2b keyed by the job's secret with a context per use; keys and MAC_welcome
 * cover both messages whole, so they are bound to both ranks, both nonces, both session ids and the
 * address. WELCOME proves to A that B knows the secret now (nonce_A is fresh). The first sealed
 * message proves the same of A to B (nonce_B is fresh); until then B keeps a half-open session and
 * changes nothing else, so a replayed HELLO opens nothing. HELLO is itself MACed: an unverified
 * peer gets no answer and costs no state. A reflected HELLO is addressed to another rank, a
 * reflected WELCOME has another context, a reflected sealed message another key. Every holder of
 * the secret can claim any rank: the secret identifies the job and its user, not a node. */

#define COP_HELLO_NONCE 32
#define COP_HELLO_ADDRESS_MAX 512
/* The longest HELLO, and the length of every WELCOME. */
#define COP_HELLO_MAX (COP_FRAME_HEAD + 34 + COP_HELLO_NONCE + COP_HELLO_ADDRESS_MAX + 32)
#define COP_WELCOME_LEN (COP_FRAME_HEAD + 8 + COP_HELLO_NONCE + 32)

struct cop_hello {
	uint32_t from, to;
	uint64_t session; /* the initiator's id for the session */
	uint64_t current; /* the responder's id of a session that the initiator has and asks about,
			     or 0 */
	uint64_t config_hash; /* a hash of the settings that both must share */
	uint8_t nonce[COP_HELLO_NONCE];
	const char *address; /* not terminated when read */
	size_t address_len;
};

/* msg has COP_HELLO_MAX bytes. Returns the length; 0 for an address that is empty or too long. */
size_t cop_hello_write(const struct cop_wire_secret *s, const struct cop_hello *h, void *msg);
/* 0 if the message is valid and from a peer that has the secret; -EBADMSG, -EACCES. The caller
 * compares the ranks. */
int cop_hello_read(
	const struct cop_wire_secret *s, const void *msg, size_t len, struct cop_hello *h);

/* Writes the responder's answer to a HELLO that cop_hello_read accepted, with the session's keys as
 * the responder uses them. session 0 refuses the HELLO: the initiator was started with another
 * config hash. msg has COP_WELCOME_LEN bytes. Returns the length; 0 if the HELLO is not one. */
size_t cop_welcome_write(const struct cop_wire_secret *s, const void *hello, size_t hello_len,
	uint64_t session, void *msg, struct cop_frame_keys *keys);
/* 0, with the responder's session id and the keys as the initiator uses them, if this answers
 * exactly this HELLO and comes from a peer that has the secret; -EPROTO if that peer refuses;
 * -EBADMSG, -EACCES. */
int cop_welcome_read(const struct cop_wire_secret *s, const void *hello, size_t hello_len,
	const void *msg, size_t len, uint64_t *session, struct cop_frame_keys *keys);

#endif
