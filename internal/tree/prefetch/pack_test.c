/* SPDX-License-Identifier: BSD-3-Clause */
/* A job leaves a pack, and what it has changes on the storage in each way that a file can change,
 * with its old times put back: the next job gets what the storage has, and of a file that changes
 * after its check the old bytes, the new ones or an error, but never some of each. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "tree/prefetch/prefetch_priv.h"

#define CHUNK (64 * COP_KIB)
#define SIZE (3 * CHUNK - 100)
#define LARGE (COP_FETCH_GROUP_BYTES + SIZE)
#define SECOND (-2) /* of a file that changed between two of its chunks */

static char top[] = "/tmp/copper-pack-XXXXXX", source[64];
static size_t size = SIZE; /* of files */

/* ---- files ---- */

static void in_source(const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", source, name);
}

static void write_bytes(const char *name, int flags, size_t len, char with)
{
	char path[128], *bytes = malloc(len + 1);
	int fd;

	memset(bytes, with, len);
	in_source(name, path);
	fd = open(path, O_WRONLY | O_CREAT | flags, 0644);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
	free(bytes);
}

static void set_times(const char *name, const struct stat *of)
{
	const struct timespec times[] = {of->st_atim, of->st_mtim};
	char path[128];

	in_source(name, path);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void move(const char *from, const char *to)
{
	char a[128], b[128];

	in_source(from, a);
	in_source(to, b);
	assert_int_equal(rename(a, b), 0);
}

static void drop(const char *name)
{
	char path[128];

	in_source(name, path);
	assert_int_equal(unlink(path), 0);
}

static void make_dir(const char *name)
{
	char path[128];

	in_source(name, path);
	assert_int_equal(mkdir(path, 0755), 0);
}

/* What the storage has: the byte that the file consists of, or -errno. */
static int stored(const char *name)
{
	char path[128];
	uint8_t byte;
	int fd, rc;

	in_source(name, path);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	rc = read(fd, &byte, 1) == 1 ? byte : -EIO;
	close(fd);
	return rc;
}

/* ---- a job of one node ---- */

struct job {
	struct cop_stats stats;
	struct cop_prefetch_manifest_conf conf;
	struct cop_prefetch_manifest *manifest;
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_fetch *fetch;
};

static struct job *begin_job(void)
{
	struct job *j = calloc(1, sizeof(*j));
	struct cop_origin_conf origin = {.source = source,
		.max_ops = 8,
		.listing_max = 1000,
		.listing_attrs = COP_ORIGIN_LISTING_ATTRS,
		.stats = &j->stats};
	struct cop_fetch_conf conf = {.topo = {1, 8, 1},
		.chunk_bytes = CHUNK,
		.enoent_ttl_ms = 60000,
		.compress = true,
		.stats = &j->stats};

	j->conf = (struct cop_prefetch_manifest_conf){.path = "auto",
		.source = source,
		.record = true,
		.chunk_bytes = CHUNK,
		.pack_limit = COP_GIB};
	assert_int_equal(cop_prefetch_manifest_load(&j->conf, &j->manifest, NULL), 0);
	assert_int_equal(cop_origin_open(&origin, &j->origin, NULL), 0);
	j->cache = conf.cache = cop_cache_new(64 * COP_MIB, &j->stats);
	conf.origin = j->origin;
	conf.pack = cop_prefetch_manifest_pack(j->manifest);
	j->fetch = cop_fetch_new(&conf);
	return j;
}

struct answer {
	struct cop_waiter waiter;
	struct cop_obj *obj;
	int rc;
	_Atomic bool there;
};

static void answered(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct answer *a = COP_CONTAINER_OF(w, struct answer, waiter);

	a->obj = cop_obj_get(obj);
	a->rc = rc;
	atomic_store(&a->there, true);
}

/* The object, or NULL and *rc. */
static struct cop_obj *get(struct job *j, const struct cop_ask *ask, int *rc)
{
	struct answer a = {.waiter = {.completed = answered}};
	struct cop_obj *here = NULL;

	*rc = cop_fetch_get(j->fetch, ask, &a.waiter, &here);
	if (*rc == 0) {
		while (!atomic_load(&a.there))
			usleep(200);
	} else {
		a.obj = *rc > 0 ? here : NULL;
		a.rc = a.obj ? a.obj->error : *rc;
	}
	*rc = a.rc;
	if (a.rc && a.obj) {
		cop_obj_put(j->cache, a.obj);
		a.obj = NULL;
	}
	return a.obj;
}

static void record(struct job *j, enum cop_manifest_kind kind, const char *path,
	const struct cop_attr *attr, uint64_t bytes)
{
	struct cop_manifest_item item = {.kind = kind, .path = path, .len = strlen(path)};

	if (attr) {
		item.size = attr->size;
		item.mtime_s = attr->mtime_s;
		item.mtime_nsec = attr->mtime_nsec;
		cop_manifest_range_add(&item, 0, bytes);
	}
	assert_int_equal(
		cop_manifest_set_add(cop_prefetch_manifest_record(j->manifest), &item, 0), 0);
}

/* As a program does: the listing of d, then the name in it. -errno if it is no file. */
static int look_up(struct job *j, const char *path, struct cop_attr *attr)
{
	struct cop_listing_entry e;
	struct cop_obj *obj;
	int rc;

	obj = get(j, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = "d"}, &rc);
	if (!obj)
		return rc;
	record(j, COP_MANIFEST_DIR, "d", NULL, 0);
	rc = cop_listing_find(obj->data, path + 2, strlen(path + 2), &e) ? 0 : -ENOENT;
	if (!rc && e.has_attr)
		*attr = e.attr;
	cop_obj_put(j->cache, obj);
	if (rc || e.has_attr)
		return rc;
	obj = get(j, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = path}, &rc);
	if (!obj)
		return rc;
	cop_entry_get(obj->data, attr, NULL, NULL);
	cop_obj_put(j->cache, obj);
	return 0;
}

/* The byte that this chunk consists of, or -errno. */
static int read_chunk(struct job *j, const char *path, const struct cop_attr *attr, uint64_t index)
{
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = path,
		.version = attr->version,
		.size = attr->size,
		.index = index};
	size_t len = cop_fetch_chunk_len(j->fetch, attr->size, index);
	struct cop_obj *obj;
	const uint8_t *data;
	const void *part;
	uint8_t out[CHUNK];
	int rc, byte;

	obj = get(j, &ask, &rc);
	if (!obj)
		return rc;
	assert_int_equal(cop_fetch_chunk_part(obj, 0, len, out, &part), 0);
	data = part;
	byte = data[0];
	assert_memory_equal(data, data + 1, len - 1);
	cop_obj_put(j->cache, obj);
	return byte;
}

/* Reads a file of which the attributes are known: its byte, -errno, or SECOND. */
static int read_on(struct job *j, const char *path, const struct cop_attr *attr, uint64_t chunks)
{
	int first = read_chunk(j, path, attr, 0);

	record(j, COP_MANIFEST_FILE, path, attr, COP_MIN(chunks * CHUNK, attr->size));
	for (uint64_t i = 1; i < chunks && i * CHUNK < attr->size && first >= 0; i++) {
		int next = read_chunk(j, path, attr, i);

		if (next < 0)
			return next;
		if (next != first)
			return SECOND;
	}
	return first;
}

static int read_file(struct job *j, const char *path, uint64_t chunks)
{
	struct cop_attr attr;
	int rc = look_up(j, path, &attr);

	return rc ? rc : read_on(j, path, &attr, chunks);
}

static uint64_t no_parts(void *arg)
{
	(void)arg;
	return 0;
}

/* Ends the job; leaves: with its manifest and pack. */
static void end_job(struct job *j, bool leaves)
{
	struct cop_prefetch_pack_conf conf = {.manifest = j->manifest,
		.fetch = j->fetch,
		.cache = j->cache,
		.origin = j->origin,
		.begun = no_parts,
		.finish_ms = 100000};
	struct cop_prefetch_pack *p = leaves ? cop_prefetch_pack_start(&conf) : NULL;

	cop_prefetch_pack_finish(p);
	if (leaves)
		cop_prefetch_manifest_save(j->manifest, 0);
	assert_true(cop_prefetch_pack_join(p));
	assert_true(cop_prefetch_pack_free(p));
	cop_fetch_close(j->fetch);
	assert_true(cop_origin_close(j->origin));
	cop_fetch_free(j->fetch);
	cop_cache_free(j->cache);
	cop_prefetch_manifest_free(j->manifest);
	free(j);
}

/* Until the storage's stamps are old enough to tell a later change. */
static void age(void)
{
	bool young = true;

	while (young) {
		struct job *j = begin_job();
		int rc;
		struct cop_obj *obj =
			get(j, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = "d"}, &rc);
		struct cop_listing_entry e;
		struct cop_attr attr;

		assert_non_null(obj);
		cop_listing_dir(obj->data, &attr);
		young = cop_version_is_young(attr.version);
		for (uint32_t i = 0; i < cop_listing_count(obj->data); i++) {
			cop_listing_at(obj->data, i, &e);
			young |= !e.has_attr || cop_version_is_young(e.attr.version);
		}
		cop_obj_put(j->cache, obj);
		end_job(j, false);
		usleep(young * 5000);
	}
}

/* ---- the first job ---- */

static bool has_pack(void)
{
	struct job *j = begin_job();
	bool has = cop_prefetch_manifest_pack(j->manifest) != NULL;

	end_job(j, false);
	return has;
}

/* f and g have the same size and times. chunks: of f, that the job reads. */
static void first_job(uint64_t chunks)
{
	char path[128];
	struct stat st;
	struct job *j;

	make_dir("d");
	write_bytes("d/f", O_EXCL, size, 'f');
	write_bytes("d/g", O_EXCL, size, 'g');
	in_source("d/f", path);
	assert_int_equal(stat(path, &st), 0);
	set_times("d/g", &st);
	age();
	j = begin_job();
	assert_int_equal(read_file(j, "d/f", chunks), 'f');
	assert_int_equal(read_file(j, "d/g", 3), 'g');
	end_job(j, true);
	assert_true(has_pack());
}

/* ---- changes of d/f, after which it has its times again ---- */

/* Its times are set, which changes its change time. */
static void change_nothing(void)
{
}

static void change_in_place(void)
{
	write_bytes("d/f", 0, size, 'n');
}

static void replace(void)
{
	write_bytes("d/new", O_EXCL, size, 'n');
	move("d/new", "d/f");
}

static void remove_and_make(void)
{
	drop("d/f");
	write_bytes("d/f", O_EXCL, size, 'n');
}

static void shorten(void)
{
	char path[128];

	in_source("d/f", path);
	assert_int_equal(truncate(path, CHUNK + 5), 0);
}

static void shorten_and_fill(void)
{
	write_bytes("d/f", O_TRUNC, size, 'n');
}

static void lengthen(void)
{
	write_bytes("d/f", O_TRUNC, size + CHUNK, 'n');
}

static void change_places(void)
{
	move("d/f", "d/x");
	move("d/g", "d/f");
	move("d/x", "d/g");
}

static void move_away(void)
{
	move("d/f", "d/x");
}

static void replace_directory(void)
{
	move("d", "away");
	make_dir("d");
	write_bytes("d/f", O_EXCL, size, 'n');
	write_bytes("d/g", O_EXCL, size, 'm');
}

static void (*const changes[])(void) = {change_nothing, change_in_place, replace, remove_and_make,
	shorten, shorten_and_fill, lengthen, change_places, move_away, replace_directory};

static void do_change(unsigned i)
{
	struct stat file, dir;
	char path[128];

	in_source("d/f", path);
	assert_int_equal(stat(path, &file), 0);
	in_source("d", path);
	assert_int_equal(stat(path, &dir), 0);
	changes[i]();
	if (stored("d/f") >= 0)
		set_times("d/f", &file);
	set_times("d/g", &file);
	set_times("d", &dir);
}

/* ---- tests ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void new_source(void)
{
	nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(mkdir(top, 0755) | mkdir(source, 0755), 0);
}

static void what_has_not_changed_comes_from_the_pack(void **state)
{
	struct job *j;

	(void)state;
	new_source();
	first_job(3);
	j = begin_job();
	assert_int_equal(read_file(j, "d/f", 3), 'f');
	assert_int_equal(read_file(j, "d/g", 3), 'g');
	assert_int_equal(cop_stats_get(&j->stats, COP_ORIGIN_BYTES), 0);
	/* The listing, and three chunks of each. */
	assert_int_equal(cop_stats_get(&j->stats, COP_PREFETCH_PACKED), 7);
	end_job(j, false);
}

static void a_change_between_two_jobs_is_seen(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(changes); i++) {
		struct job *j;

		new_source();
		first_job(3);
		do_change(i);
		age();
		j = begin_job();
		assert_int_equal(read_file(j, "d/f", 4), stored("d/f"));
		assert_int_equal(read_file(j, "d/g", 4), stored("d/g"));
		end_job(j, false);
	}
}

static void so_is_one_after_the_pack_was_opened(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(changes); i++) {
		struct job *j;

		new_source();
		first_job(3);
		j = begin_job();
		do_change(i);
		assert_int_equal(read_file(j, "d/f", 4), stored("d/f"));
		assert_int_equal(read_file(j, "d/g", 4), stored("d/g"));
		end_job(j, false);
	}
}

/* A pack that has all of the file serves the file as it was at the check. Of a large file it has
 * what a read of the first chunk brought along, and the storage has the rest. */
static void a_change_after_the_check_mixes_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(changes) + 3; i++) {
		bool large = i >= COP_ARRAY_SIZE(changes);
		struct cop_attr attr;
		struct job *j;
		int byte;

		new_source();
		size = large ? LARGE : SIZE;
		first_job(large ? 1 : 3);
		j = begin_job();
		assert_int_equal(look_up(j, "d/f", &attr), 0);
		do_change(i % COP_ARRAY_SIZE(changes));
		byte = read_on(j, "d/f", &attr, UINT64_MAX / CHUNK);
		if (large)
			assert_true(byte == -ESTALE || byte == -ENOENT);
		else
			assert_int_equal(byte, 'f');
		end_job(j, false);
	}
	size = SIZE;
}

static bool is_packed(const char *path)
{
	struct job *j = begin_job();
	const struct cop_packfile *pack = cop_prefetch_manifest_pack(j->manifest);
	bool is = pack && cop_packfile_any(pack, path, 0);

	end_job(j, false);
	return is;
}

/* A file that was changed a moment ago may change again without another stamp. */
static void a_young_file_is_not_packed(void **state)
{
	struct stat st;
	char path[128];

	(void)state;
	new_source();
	make_dir("d");
	write_bytes("d/f", O_EXCL, size, 'f');
	write_bytes("d/g", O_EXCL, size, 'g');
	in_source("d/f", path);
	assert_int_equal(stat(path, &st), 0);
	st.st_mtim.tv_sec = time(NULL) + 50; /* young for so long */
	set_times("d/f", &st);
	do {
		struct job *j = begin_job();

		assert_int_equal(read_file(j, "d/f", 3), 'f');
		assert_int_equal(read_file(j, "d/g", 3), 'g');
		end_job(j, true);
	} while (!is_packed("d/g"));
	assert_false(is_packed("d/f"));
}

static int make_top(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(top));
	snprintf(source, sizeof(source), "%s/source", top);
	return setenv("XDG_CACHE_HOME", top, 1);
}

static int remove_top(void **state)
{
	(void)state;
	return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_not_changed_comes_from_the_pack),
		cmocka_unit_test(a_change_between_two_jobs_is_seen),
		cmocka_unit_test(so_is_one_after_the_pack_was_opened),
		cmocka_unit_test(a_change_after_the_check_mixes_nothing),
		cmocka_unit_test(a_young_file_is_not_packed),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
