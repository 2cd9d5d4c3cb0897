/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories. A pass reads the names, then the attributes of the children (children.c). On slow
 * storage, it starts on the attributes before the directory has reported its end, because that
 * report takes an operation of its own; if more names turn up, the next pass reads all names first.
 * The worker that ends the pass compares the directory's attributes with those from before the
 * pass. If the directory has changed, it starts another pass on its own thread; otherwise it
 * replies. */
#include "storage/origin/list_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define REREADS 3
#define BLOCK (64 * COP_KIB)
/* Limits the size of a listing: a directory too large for a blob (wire.h) is not read to its end. A
 * record takes 32 bytes plus the name. */
#define BLOB_MAX (64 * COP_MIB)
#define RECORD_BYTES 32

static void put_listing(struct listing *l)
{
	if (atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	if (l->fd >= 0)
		close(l->fd);
	free(l->path);
	free(l);
}

static struct pass *new_pass(struct listing *l)
{
	struct pass *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	atomic_fetch_add(&l->refs, 1);
	p->l = l;
	p->refs = 1;
	return p;
}

void cop_origin_pass_put(struct pass *p)
{
	bool last;

	pthread_mutex_lock(&p->lock);
	last = --p->refs == 0;
	pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	for (uint32_t i = 0; i < p->count; i++)
		free(cop_origin_children(p)[i].target);
	cop_buf_free(&p->names);
	cop_buf_free(&p->children);
	free(p->attrs);
	free(p->batch);
	pthread_mutex_destroy(&p->lock);
	put_listing(p->l);
	free(p);
}

static void forget_pass(struct listing *l)
{
	struct pass *p = l->pass;

	l->pass = NULL;
	if (p)
		cop_origin_pass_put(p);
}

static void end_listing(struct listing *l, int rc, void *blob, size_t len)
{
	const char *what = l->page.pages   ? "origin_page"
			   : l->names_only ? "origin_names"
					   : "origin_list";

	if (!rc && !l->page.pages)
		cop_stats_add(l->request.o->stats, COP_ORIGIN_LISTS, 1);
	forget_pass(l);
	cop_origin_request_trace(&l->request, what, rc, len);
	l->request.path = NULL;
	cop_origin_request_end(&l->request, rc, blob, len);
	put_listing(l);
}

/* ---- names ---- */

static uint8_t known_type(uint8_t type)
{
	switch (type) {
	case DT_FIFO:
	case DT_CHR:
	case DT_DIR:
	case DT_BLK:
	case DT_REG:
	case DT_LNK:
	case DT_SOCK:
		return type;
	default:
		return DT_UNKNOWN;
	}
}

int cop_origin_add_child(struct pass *p, struct child *c, const char *name)
{
	c->name = (uint32_t)p->names.len;
	cop_buf_add(&p->names, name, c->name_len);
	cop_buf_add(&p->children, c, sizeof(*c));
	if (p->names.failed || p->children.failed)
		return -ENOMEM;
	p->count++;
	return 0;
}

static bool is_full(const struct pass *p, size_t name_len)
{
	uint32_t most = p->l->page.pages   ? COP_PAGE_MOST
			: p->l->names_only ? UINT32_MAX
					   : p->l->request.o->listing_max;

	return p->count >= most ||
	       p->names.len + name_len + (p->count + 1) * (size_t)RECORD_BYTES > BLOB_MAX;
}

static int add_name(struct pass *p, const struct dirent64 *d)
{
	size_t len = strlen(d->d_name);
	struct child c = {.ino = cop_origin_ino(p->l->request.o, p->l->dev, d->d_ino),
		.name_len = (uint8_t)len,
		.type = known_type(d->d_type)};

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 0;
	if (len == 0 || len > 255) {
		p->left_out = true;
		return 0;
	}
	if (!cop_origin_page_wants(p->l, d->d_name, len))
		return 0;
	return is_full(p, len) ? -E2BIG : cop_origin_add_child(p, &c, d->d_name);
}

/* Reads the next names. Returns their total size in bytes, or -errno. */
static ssize_t read_block(struct pass *p, char *block)
{
	ssize_t n;
	int rc = 0;

	cop_origin_count(p->l->request.o);
	n = getdents64(p->l->fd, block, BLOCK);
	if (n < 0)
		return -errno;
	for (ssize_t at = 0; at < n && !rc;) {
		const struct dirent64 *d = (const void *)(block + at);

		rc = add_name(p, d);
		at += d->d_reclen;
	}
	return rc ? rc : n;
}

/* Whether this block, which was not full, is probably the last one, so that the attributes can be
 * read before the directory reports its end. */
static bool may_be_all(const struct pass *p, ssize_t n)
{
	const struct listing *l = p->l;

	return n + (ssize_t)sizeof(struct dirent64) <= (ssize_t)BLOCK && p->count &&
	       !l->names_only && !l->page.pages && p->count <= l->request.o->listing_attrs &&
	       cop_origin_reads_ahead(l->request.o);
}

static int read_names(struct pass *p)
{
	char *block = malloc(BLOCK);
	ssize_t n = block ? 1 : -ENOMEM;

	while (n > 0) {
		n = read_block(p, block);
		p->at_end = n == 0;
		if (n > 0 && may_be_all(p, n))
			break;
	}
	free(block);
	return n < 0 ? (int)n : 0;
}

int cop_origin_check_end(struct pass *p)
{
	struct cop_origin_real *o = p->l->request.o;
	char block[1024];
	ssize_t n;

	cop_origin_count(o);
	n = getdents64(p->l->fd, block, sizeof(block));
	if (n < 0)
		return -errno;
	if (n > 0) {
		atomic_store(&o->in_pieces, true);
		pthread_mutex_lock(&p->lock);
		p->more = true;
		pthread_mutex_unlock(&p->lock);
	}
	return 0;
}

/* ---- passes ---- */

/* The descriptor was opened for attributes only, so open the directory again. */
static int reopen(struct listing *l)
{
	l->known = NULL;
	close(l->fd);
	l->fd = cop_origin_open_read(l->request.o, l->path, O_DIRECTORY);
	return l->fd < 0 ? l->fd : cop_origin_statx(l->request.o, l->fd, "", &l->before, &l->dev);
}

static int begin_pass(struct listing *l)
{
	int rc = cop_origin_statx(l->request.o, l->fd, "", &l->before, &l->dev);

	if (!rc && l->known && !cop_origin_known_holds(l))
		rc = reopen(l);
	if (!rc && !l->known && l->passes++ && lseek(l->fd, 0, SEEK_SET) < 0)
		rc = -errno;
	if (rc)
		return rc;
	if (l->page.pages && !cop_version_same(l->before.version, l->page.version))
		return -ESTALE;
	l->pass = new_pass(l);
	if (!l->pass)
		return -ENOMEM;
	l->pass->at_end = true;
	if (l->known)
		return cop_origin_known_names(l->pass);
	return l->names ? cop_origin_page_names(l->pass) : read_names(l->pass);
}

static void start_pass(struct listing *l)
{
	uint64_t begin = cop_now_ns();
	int rc;

	forget_pass(l);
	rc = begin_pass(l);
	cop_origin_took(l->request.o, begin);
	/* On success, the attributes are being read, and l may have been freed already. */
	if (!rc)
		rc = cop_origin_read_children(l->pass);
	if (rc < 0)
		end_listing(l, rc, NULL, 0);
	else if (!rc)
		cop_origin_pass_done(l);
}

static int add_child(struct listing *l, struct cop_listing_builder *b, const struct child *c)
{
	const struct cop_attr *attr = c->has_attr ? c->attr : NULL;
	const char *name = l->pass->names.data + c->name;
	uint8_t type = attr ? known_type(IFTODT(attr->mode)) : c->type;

	if (!attr)
		return cop_listing_add_bare(b, name, c->name_len, type, c->ino);
	return cop_listing_add(
		b, name, c->name_len, type, attr, type == DT_LNK ? c->target : NULL, c->target_len);
}

/* If a name was listed but did not exist when it was looked up, the directory has changed. If its
 * timestamps prove that it has not, one of the two answers was wrong: the name is then listed
 * without attributes, and its lookup requests them again. */
static int assemble_listing(struct listing *l, bool moved, void **blob, size_t *len)
{
	struct cop_listing_builder b = {0};
	bool complete = !moved && !l->pass->left_out;
	int rc = 0;

	for (uint32_t i = 0; i < l->pass->count && !rc; i++) {
		const struct child *c = &cop_origin_children(l->pass)[i];

		if (c->gone && (moved || cop_version_is_young(l->before.version)))
			continue;
		rc = add_child(l, &b, c);
		if (rc == -EINVAL) {
			complete = false;
			rc = 0;
		}
	}
	if (rc) {
		cop_listing_builder_free(&b);
		return rc;
	}
	return cop_listing_build(&b, &l->before,
		complete ? cop_origin_listing_flags(l->request.o, l->fd, l->dev) : 0, blob, len);
}

/* If the storage did not answer for some child, the requester has waited long enough: there is no
 * second pass. */
void cop_origin_pass_done(struct listing *l)
{
	bool last = l->passes > REREADS || l->pass->gave_up, moved = false;
	struct cop_attr after;
	void *blob = NULL;
	size_t len = 0;
	int rc = l->pass->error;

	if (cop_origin_pool_calm(&l->request.o->pool, &l->pass->alarm))
		cop_origin_pass_put(l->pass);
	if (!rc && l->pass->more) {
		start_pass(l);
		return;
	}
	if (!rc) {
		uint64_t begin = cop_now_ns();

		rc = cop_origin_statx(l->request.o, l->fd, "", &after, NULL);
		cop_origin_took(l->request.o, begin);
	}
	if (!rc && l->page.pages) {
		rc = cop_version_same(after.version, l->page.version)
			     ? cop_origin_page_build(l, &blob, &len)
			     : -ESTALE;
	} else if (!rc) {
		moved = !cop_version_same(after.version, l->before.version);
		if (!moved || last)
			rc = assemble_listing(l, moved, &blob, &len);
		/* A duplicate name means that the directory changed while it was read. */
		moved |= rc == -EEXIST;
		if (rc == -EEXIST && last)
			rc = -EIO;
	}
	if (moved && !last)
		start_pass(l);
	else
		end_listing(l, rc, blob, len);
}

static void list_job(struct cop_origin_job *job, int rc)
{
	struct cop_origin_request *t = COP_CONTAINER_OF(job, struct cop_origin_request, job);
	struct listing *l = COP_CONTAINER_OF(t, struct listing, request);

	if (!rc)
		rc = t->path_error;
	if (!rc) {
		uint64_t begin = cop_now_ns();

		l->fd = l->known ? cop_origin_open_at(t->o, t->path, O_PATH | O_DIRECTORY)
				 : cop_origin_open_read(t->o, t->path, O_DIRECTORY);
		cop_origin_took(t->o, begin);
		rc = l->fd < 0 ? l->fd : 0;
	}
	if (rc)
		end_listing(l, rc, NULL, 0);
	else
		start_pass(l);
}

void cop_origin_list_submit(
	struct listing *l, struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	if (!l || cop_origin_request_init(&l->request, o, path, done, arg)) {
		free(l);
		done(arg, -ENOMEM, NULL, 0);
		return;
	}
	l->fd = -1;
	l->path = l->request.path;
	atomic_init(&l->refs, 1);
	l->request.job.fn = list_job;
	l->request.job.patience_ms = COP_ORIGIN_ATTR_MS;
	cop_origin_pool_submit(&l->request.o->pool, &l->request.job, false);
}

void cop_origin_real_list(
	struct cop_origin *o, const char *path, bool names_only, cop_origin_done *done, void *arg)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (l)
		l->names_only = names_only;
	cop_origin_list_submit(l, o, path, done, arg);
}
