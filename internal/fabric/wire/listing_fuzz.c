/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile blobs: whatever passes the check must be valid and safe to use. If the first byte is odd,
 * the input is a blob as it is. If it is even, the input describes a directory or an entry, which
 * is built, damaged in a few places and checked, so that the fuzzer gets past the hashes. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabric/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t sink;

static void touch(const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sink ^= ((const uint8_t *)data)[i];
}

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* Every name is in one page, and the pages follow each other. */
static void use_pages(const void *blob, uint64_t random)
{
	uint32_t pages = (uint32_t)(random % 5) + 1, at = 0, first, end;
	struct cop_listing_entry e;

	for (uint32_t p = 0; p < pages; p++) {
		cop_listing_page_range(blob, pages, p, &first, &end);
		require(first == at && first <= end);
		for (; at < end; at++) {
			cop_listing_at(blob, at, &e);
			require(cop_listing_page_of(e.name, e.name_len, pages) == p);
		}
	}
	require(at == cop_listing_count(blob));
	require(cop_listing_pages(blob) >= 1);
}

/* What passes for a page has the attributes of all of its names. */
static void use_page(const void *blob, const struct cop_listing_page *page)
{
	struct cop_listing_entry e;

	for (uint32_t i = 0; i < cop_listing_count(blob); i++) {
		cop_listing_at(blob, i, &e);
		require(e.has_attr);
		require(cop_listing_page_of(e.name, e.name_len, page->pages) == page->index);
	}
}

static void use_listing(const void *blob, uint64_t random)
{
	struct cop_listing_entry e, found;
	struct cop_attr dir;
	uint64_t before = 0;
	uint32_t count = cop_listing_count(blob);

	cop_listing_dir(blob, &dir);
	require(dir.version != 0);
	touch(&dir, sizeof(dir));
	for (uint32_t i = 0; i < count; i++) {
		cop_listing_at(blob, i, &e);
		require(e.cookie > 2 && e.cookie > before && e.cookie < (uint64_t)1 << 63);
		before = e.cookie;
		require(!e.has_attr || e.ino == e.attr.ino);
		touch(e.name, e.name_len);
		touch(e.target, e.target_len);
		require(cop_listing_find(blob, e.name, e.name_len, &found));
		require(found.cookie == e.cookie);
		require(cop_listing_seek(blob, e.cookie) == i + 1);
	}
	use_pages(blob, random);
	require(cop_listing_seek(blob, 0) == 0);
	require(cop_listing_seek(blob, UINT64_MAX) == count);
	require(cop_listing_seek(blob, random) <= count);
	if (cop_listing_find(blob, (const char *)&random, sizeof(random), &found))
		touch(found.name, found.name_len);
	touch(&(uint32_t){cop_listing_flags(blob)}, 4);
}

/* A copy of exactly this length, so that the sanitizer sees every access past its end. */
static void check_copy(const void *data, size_t len, uint64_t random)
{
	void *copy = malloc(len ? len : 1);
	struct cop_attr attr;
	struct cop_listing_page page = {
		.pages = (uint32_t)(random >> 8 & 1) + 1, .index = (uint32_t)random & 1};
	const char *target;
	size_t target_len;

	require(copy != NULL);
	memcpy(copy, data, len);
	page.index %= page.pages;
	if (cop_listing_check(copy, len) == 0) {
		cop_listing_dir(copy, &attr);
		page.version = attr.version;
	}
	if (cop_listing_page_check(copy, len, &page) == 0)
		use_page(copy, &page);
	if (cop_listing_check(copy, len) == 0)
		use_listing(copy, random);
	if (cop_entry_check(copy, len) == 0) {
		cop_entry_get(copy, &attr, &target, &target_len);
		require(cop_attr_young_ms(&attr) > 0);
		touch(&attr, sizeof(attr));
		touch(target, target_len);
	}
	free(copy);
}

/* Names of 1 to 16 bytes from the input until it ends; the first 8 bytes damage the result. */
static void build_and_damage(const uint8_t *data, size_t size, uint64_t random)
{
	struct cop_attr attr = {.mode = S_IFDIR | 0755, .ino = random};
	struct cop_listing_builder b = {0};
	const uint8_t *harm = data, *end = data + size;
	void *blob;
	size_t len;

	for (data += 8; data < end && data + 2 + (*data & 15) < end;
		data += 3 + (size_t)(*data & 15)) {
		size_t name_len = (size_t)(*data & 15) + 1;
		uint8_t type = *data >> 4;
		bool target = type == DT_LNK && (data[1] & 1);

		attr.mode = DTTOIF(type);
		attr.size = data[1];
		if (data[1] & 4)
			cop_listing_add_bare(
				&b, (const char *)data + 2, name_len, type, random ^ data[1]);
		else
			cop_listing_add(&b, (const char *)data + 2, name_len, type,
				data[1] & 2 ? &attr : NULL, target ? "target" : NULL, 6);
	}
	if (cop_listing_build(&b, &attr, (uint32_t)random >> 9 & 1, &blob, &len))
		return;
	check_copy(blob, len, random);
	require(cop_listing_check(blob, len) == 0);
	for (unsigned i = 0; i + 3 < 8; i += 4) {
		size_t at = (size_t)harm[i] | (size_t)harm[i + 1] << 8;

		((uint8_t *)blob)[at % len] ^= harm[i + 2];
		check_copy(blob, len - (harm[i + 3] < len ? harm[i + 3] & ~7u : 0), random);
	}
	free(blob);
}

/* An entry with the input as its link target, intact and with some bytes changed. */
static void build_entry_and_damage(const uint8_t *data, size_t size, uint64_t random)
{
	struct cop_attr attr = {.mode = size & 1 ? S_IFLNK | 0777 : S_IFREG | 0644, .ino = random};
	const uint8_t *harm = data;
	void *blob;
	size_t len;

	if (cop_entry_build(&attr, (const char *)data + 8, size & 1 ? size - 8 : 0, &blob, &len))
		return;
	require(cop_entry_check(blob, len) == 0);
	check_copy(blob, len, random);
	for (unsigned i = 0; i + 3 < 8; i += 4) {
		((uint8_t *)blob)[(harm[i] | (size_t)harm[i + 1] << 8) % len] ^= harm[i + 2];
		check_copy(blob, len - (harm[i + 3] < len ? harm[i + 3] & ~7u : 0), random);
	}
	free(blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t random = 0;

	if (size < 17)
		return 0;
	memcpy(&random, data + 1, sizeof(random));
	if (data[0] & 1)
		check_copy(data + 1, size - 1, random);
	else if (data[0] & 2)
		build_entry_and_damage(data + 9, size - 9, random);
	else
		build_and_damage(data + 9, size - 9, random);
	return 0;
}
