/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass.c runs the thread, look.c scans all processes, process.c reads one process, found.c
 * records and counts the results; each file calls only files that come later in this list.
 *
 * The lock protects the last fields, from asked on, and the counting. All other fields belong to
 * the thread once it has started. */
#ifndef COP_NODE_BYPASS_PRIV_H
#define COP_NODE_BYPASS_PRIV_H

#include "node/bypass/bypass.h"

/* Limits of one scan: processes, and lines of maps and descriptors, per process and in total. A
 * scan that reaches the last limit takes some 50 ms, half a percent of a processor. */
#define COP_BYPASS_PROCESSES 256u
#define COP_BYPASS_MAPS 4096u
#define COP_BYPASS_FDS 1024u
#define COP_BYPASS_ENTRIES 16384u
/* Maximum number of distinct files, and of distinct processes, in the tables. */
#define COP_BYPASS_TABLE 4096u

struct cop_bypass {
	struct cop_bypass_conf conf;
	char *source, *mountpoint;           /* from conf */
	int proc;                            /* descriptor of conf.proc */
	unsigned long long began;            /* start time of this process, as in its stat */
	unsigned source_major, source_minor; /* the device of the source */
	uint64_t exe[2], mnt_ns[2];          /* device and inode, of this process */
	pid_t after;           /* the last process scanned; 0: the scan reached the end */
	struct cop_buf elders; /* pid_t, ascending: processes older than this one */
	unsigned looks;        /* completed scans of all processes */
	struct cop_seen files, counted, processes, looked;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_t thread;
	uint64_t asked, done; /* scans requested, and scans done */
	uint64_t since_ns;    /* start of the running scan; 0: none */
	bool stop, over;      /* stop: the thread must end; over: it is about to */
	bool left;            /* abandoned by its owner: the thread frees the object */
};

/* One process during a scan. */
struct cop_bypass_process {
	int dir; /* its directory in /proc */
	pid_t pid;
	unsigned long long began, pages; /* pages 0: unknown */
	bool apart;                      /* in another mount namespace than this process */
	bool checked;                    /* in_a_view has been determined */
	bool in_a_view;                  /* not counted */
	bool counted;
};

/* ---- bypass.c ---- */
/* -errno; -ENOTSUP: the source holds the system's own programs. */
int cop_bypass_new(const struct cop_bypass_conf *conf, struct cop_bypass **out);
void cop_bypass_free(struct cop_bypass *p);
/* Counts, unless stopped, because the counters may no longer exist then. path NULL: no example. */
void cop_bypass_count(struct cop_bypass *p, enum cop_counter counter, uint64_t n, const char *path);

/* ---- look.c ---- */
void cop_bypass_look_now(struct cop_bypass *p);
/* Records the processes older than this one, so that scans need not read their start times. */
void cop_bypass_note_elders(struct cop_bypass *p);

/* ---- process.c ---- */
/* Whether path is dir or below it; neither is "/" or ends with a slash. */
bool cop_bypass_is_below(const char *path, const char *dir);
/* Reads a small file, truncated at size - 1; returns its length or -errno. */
ssize_t cop_bypass_text(int dir, const char *name, char *text, size_t size);
/* The start time of the process, in ticks; -errno; -ESRCH for a kernel thread. */
int cop_bypass_began(int dir, unsigned long long *began);
int cop_bypass_identity(int dir, const char *name, uint64_t id[2]);
/* Each returns the number of lines or descriptors read, at most max. */
unsigned cop_bypass_maps(struct cop_bypass *p, struct cop_bypass_process *q, unsigned max);
unsigned cop_bypass_fds(struct cop_bypass *p, struct cop_bypass_process *q, unsigned max);

/* ---- found.c ---- */
/* Whether the maps were last read when the process had the same number of pages, so that they need
 * not be reread: the kernel takes some hundred microseconds to print the maps of a Python process.
 * Always false for a process without statm. */
bool cop_bypass_is_known(const struct cop_bypass *p, const struct cop_bypass_process *q);
void cop_bypass_know(struct cop_bypass *p, const struct cop_bypass_process *q);
/* Counts that the process uses the file at this path of the source. */
void cop_bypass_found(struct cop_bypass *p, struct cop_bypass_process *q, const char *path);

#endif
