/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass.c runs the thread, look.c scans all processes, process.c reads one of them, found.c
 * remembers and counts what was found; each file calls only those named after it.
 *
 * The lock protects the last fields, and what is counted. Everything else belongs to the thread
 * once it has been started. */
#ifndef COP_NODE_BYPASS_PRIV_H
#define COP_NODE_BYPASS_PRIV_H

#include "node/bypass/bypass.h"

/* Bounds of one look: the processes, and the lines of maps and descriptors, for one process and for
 * all. The last bound takes some 50 ms, half a percent of a processor. */
#define COP_BYPASS_PROCESSES 256u
#define COP_BYPASS_MAPS 4096u
#define COP_BYPASS_FDS 1024u
#define COP_BYPASS_ENTRIES 16384u
/* How many distinct files, and how many distinct processes, are remembered. */
#define COP_BYPASS_TABLE 4096u

struct cop_bypass {
	struct cop_bypass_conf conf;
	char *source, *mountpoint;           /* of conf */
	int proc;                            /* descriptor of conf.proc */
	unsigned long long began;            /* when this process started, as in its stat */
	unsigned source_major, source_minor; /* the device of the source */
	uint64_t exe[2], mnt_ns[2];          /* device and inode, of this process */
	pid_t after;           /* the last process that was looked at; 0: all of them were */
	struct cop_buf elders; /* pid_t, ascending: processes that are older than this one */
	unsigned looks;        /* at all processes */
	struct cop_seen files, counted, processes, looked;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_t thread;
	uint64_t asked, done; /* scans requested, and scans done */
	uint64_t since_ns;    /* when the running scan began; 0: none is running */
	bool stop, over;      /* the thread is to end, and is about to */
	bool left;            /* its owner has stopped waiting, so it frees the object */
};

/* One process during a look. */
struct cop_bypass_process {
	int dir; /* its directory in /proc */
	pid_t pid;
	unsigned long long began, pages; /* pages 0: unknown */
	bool apart;                      /* in another mount namespace than this process */
	bool checked;                    /* whether it is known if the process is in a view */
	bool in_a_view;                  /* then nothing counts */
	bool counted;
};

/* ---- bypass.c ---- */
/* -errno; -ENOTSUP: the source holds the system's own programs. */
int cop_bypass_new(const struct cop_bypass_conf *conf, struct cop_bypass **out);
void cop_bypass_free(struct cop_bypass *p);
/* Counts, unless it has been stopped: then the counters may be gone. path NULL: no example. */
void cop_bypass_count(struct cop_bypass *p, enum cop_counter counter, uint64_t n, const char *path);

/* ---- look.c ---- */
void cop_bypass_look_now(struct cop_bypass *p);
/* Notes the processes that are older than this one, so that scans need not read their start times.
 * */
void cop_bypass_note_elders(struct cop_bypass *p);

/* ---- process.c ---- */
/* Whether path is dir or below it; neither is "/" or ends with a slash. */
bool cop_bypass_is_below(const char *path, const char *dir);
/* Reads the whole of a small file, cut at size - 1; returns its length or -errno. */
ssize_t cop_bypass_text(int dir, const char *name, char *text, size_t size);
/* When the process of this directory started, in ticks; -errno; -ESRCH for a kernel thread. */
int cop_bypass_began(int dir, unsigned long long *began);
int cop_bypass_identity(int dir, const char *name, uint64_t id[2]);
/* Each returns how many lines or descriptors it read, at most max. */
unsigned cop_bypass_maps(struct cop_bypass *p, struct cop_bypass_process *q, unsigned max);
unsigned cop_bypass_fds(struct cop_bypass *p, struct cop_bypass_process *q, unsigned max);

/* ---- found.c ---- */
/* Whether the maps of a process were read when it had as many pages as now, and so need not be read
 * again: the kernel takes some hundred microseconds to print those of a Python. A process without
 * statm is never known. */
bool cop_bypass_is_known(const struct cop_bypass *p, const struct cop_bypass_process *q);
void cop_bypass_know(struct cop_bypass *p, const struct cop_bypass_process *q);
/* Counts that the process uses the file at this path of the source. */
void cop_bypass_found(struct cop_bypass *p, struct cop_bypass_process *q, const char *path);

#endif
