/* SPDX-License-Identifier: BSD-3-Clause */
/* ctl: the local control socket, through which `copper stop` and `copper cache-stats` talk to the
 * node on this machine. A client sends one line and receives one reply; the caller defines what
 * they contain. ctl refuses other users, directories that others can write to, lines over 4 KiB,
 * and clients that are slow to send their request.
 *
 * Protocol: the client sends one line; the server replies with a line "status N LENGTH" and LENGTH
 * bytes, and closes. A descriptor may accompany the reply (SCM_RIGHTS, unix(7)). */
#ifndef COP_NODE_CTL_H
#define COP_NODE_CTL_H

#include "base/base/base.h"
#include "base/loop/loop.h"
#include "cache/cache/cache.h"
#include "fabric/rpc/rpc.h"
#include "job/conf/conf.h"
#include "job/topo/topo.h"
#include "mount/fuse/fuse.h"
#include "node/mountdir/mountdir.h"
#include "prof/stats/stats.h"
#include "storage/origin/origin.h"
#include "tree/fetch/fetch.h"
#include "tree/op/op.h"
#include "tree/prefetch/prefetch.h"

#include <sys/types.h>

#define COP_CTL_LINE_MAX 4096 /* bytes of a request, without its newline */
#define COP_CTL_KEY_MAX 4351  /* bytes of a key */
#define COP_CTL_CLIENTS 16    /* concurrent clients; further ones wait to be accepted */
#define COP_CTL_PATH_SIZE 108 /* the size of a socket address, NUL included */
#define COP_CTL_NOTE_SIZE 128 /* bytes of a note, NUL included */
#define COP_CTL_REPLY_MAX (256 * COP_MIB)
/* In the reply to "program", set if only the command's parent can report its exit, so that copper
 * run must stay as the parent. "wanted": this node's options record the job; "untold": another
 * node's options may. */
#define COP_CTL_EXIT "COPPER_EXIT"

/* ---- socket paths ---- */

/* The folder of the sockets: override if not NULL, else $XDG_RUNTIME_DIR/copper if usable (not
 * in /run/user, which exists only during logins), else /tmp/copper-UID. It is created (0700) if
 * missing, and refused if it is a symlink, belongs to another user or is accessible to others:
 * -EACCES, -ENOTDIR, -ENAMETOOLONG and so on with a sentence. */
int cop_ctl_dir(const char *override, char *out, size_t size, struct cop_err *err);
/* The path of a key's socket: dir/HASH.sock. The key is a mount point's real path or
 * "serve:HOST:PORT", and is stored in dir/HASH.key. -ENAMETOOLONG if the path exceeds size or
 * COP_CTL_PATH_SIZE; -EINVAL for an empty or too long key. */
int cop_ctl_path(const char *dir, const char *key, char *out, size_t size);
/* The same for a node. The key is the real path of its mount point or, if mountpoint is "", the
 * node's host and port; runtime_dir is cop_ctl_dir's override. -errno with a sentence. */
struct cop_ctl_place {
	const char *runtime_dir, *mountpoint, *host;
	uint16_t port;
};
int cop_ctl_place(const struct cop_ctl_place *p, char path[COP_CTL_PATH_SIZE],
	char key[COP_CTL_KEY_MAX + 1], struct cop_err *err);
/* Calls found for each key with a socket in dir (at most 1,024), live or stale. Returns their
 * number, or -errno, even if descriptors or memory ran out partway. */
int cop_ctl_list(
	const char *dir, void (*found)(void *ctx, const char *key, const char *path), void *ctx);
/* Writes a short note beside the socket at path. It survives the process until the socket is
 * replaced or removed. cop_ctl_noted reads it, "" if there is none. 0 or -errno. */
int cop_ctl_note(const char *path, const char *words);
void cop_ctl_noted(const char *path, char words[COP_CTL_NOTE_SIZE]);
/* Removes the files that a killed process left at path (from cop_ctl_path). -EADDRINUSE if a live
 * process is listening there. */
int cop_ctl_clear(const char *path, struct cop_err *err);

/* ---- server ---- */

struct cop_ctl;
struct cop_ctl_conn;

/* Runs on the server's thread and must not block. line is writable and valid until the reply. Each
 * request is answered by exactly one cop_ctl_reply, now or later, from any thread, even if its
 * client has disconnected. */
typedef void cop_ctl_handler(void *ctx, struct cop_ctl_conn *conn, char *line);

/* Listens for key at path (from cop_ctl_path) and starts the thread "ctl". -EADDRINUSE if a live
 * process is listening there; a stale socket is replaced. */
int cop_ctl_start(const char *path, const char *key, cop_ctl_handler *handler, void *ctx,
	struct cop_ctl **out, struct cop_err *err);
/* The same for a node at path and key (from cop_ctl_place). Waits up to 3 s for a node that is
 * shutting down; if the node stays alive, the error names the command that stops it. */
int cop_ctl_start_when_free(const char *path, const char *key, cop_ctl_handler *handler, void *ctx,
	struct cop_ctl **out, struct cop_err *err);
/* cop_ctl_note for this server's socket; cop_ctl_tend restores the note if it is removed. */
int cop_ctl_leave_note(struct cop_ctl *c, const char *words);
/* Only on the thread that started the server and will stop it. Restores the socket and its files if
 * they were removed, and touches them daily. Checks only every few seconds; returns the
 * milliseconds until the next check. */
int cop_ctl_tend(struct cop_ctl *c);
/* Sends pending replies (for 2 s at most), closes everything, joins the thread and removes both
 * files. Later replies to open requests are discarded. Must not be called from a handler. NULL is
 * fine. */
void cop_ctl_stop(struct cop_ctl *c);

/* The reply: status is 0 or a number defined by the caller's protocol; text is copied. conn must
 * not be used afterwards. A text over COP_CTL_REPLY_MAX is replaced by status 1 and a sentence. */
void cop_ctl_reply(struct cop_ctl_conn *conn, int status, const char *text, size_t len);
/* The same with a descriptor, still owned by the caller; -1: none. If this process has run out of
 * descriptors, sends the reply without it. */
void cop_ctl_reply_with(
	struct cop_ctl_conn *conn, int status, const char *text, size_t len, int fd);

/* ---- client ---- */

struct cop_ctl_reply {
	int status;
	char *text; /* malloc'ed, NUL-terminated; the caller frees it */
	size_t len;
	int fd; /* received descriptor, owned by the caller; -1: none */
};

/* Sends line to the server at path and waits for the reply; fails if nothing arrives for
 * timeout_ms. -ENOENT: no socket; -ECONNREFUSED: stale socket; -ETIMEDOUT, -ECONNRESET, -EACCES,
 * -E2BIG, -EBADMSG: each with a sentence. */
int cop_ctl_call(const char *path, const char *line, uint32_t timeout_ms,
	struct cop_ctl_reply *reply, struct cop_err *err);

/* cop_ctl_call for a caller that polls several descriptors: sends line (under 64 bytes), blocks for
 * at most timeout_ms, and returns. Copies path and line. */
struct cop_ctl_question;
int cop_ctl_ask(const char *path, const char *line, uint32_t timeout_ms,
	struct cop_ctl_question **out, struct cop_err *err);
/* A descriptor that is readable when part of the reply has arrived. */
int cop_ctl_question_fd(const struct cop_ctl_question *q);
/* Reads the bytes that have arrived. -EAGAIN: the reply is incomplete; otherwise returns as
 * cop_ctl_call does, and only cop_ctl_question_free may follow. */
int cop_ctl_question_read(
	struct cop_ctl_question *q, struct cop_ctl_reply *reply, struct cop_err *err);
/* May be called before the reply has arrived. NULL is fine. */
void cop_ctl_question_free(struct cop_ctl_question *q);

/* command: a user's requests to a running node, each one line on its control socket, and the
 * sentences and exit statuses of the replies:
 *
 *     stats [all] | table [all] | watch [all] | lines | stop [local] | snapshot [local] |
 *     reset [all] | sizes | process | view | program PID | ended PID STATUS | fallback WHY |
 *     release [again] | hold | invalidate PATH
 *
 * The reply to "view" is the source and, if views need one, a descriptor of the user namespace.
 *
 * Most of them are operations on the tree (tree/op); the status of this node comes from struct
 * cop_command_ops. It refuses unknown lines, and all lines while the node is stopping. It has no
 * thread. */

/* ctx comes from the configuration. */
struct cop_command_ops {
	/* Any thread. These three report the status of this node. status: a JSON object; table:
	 * lines for people; watch: the counters in the format of cop_stats_lines, then the head of
	 * that table. */
	void (*status)(void *ctx, struct cop_buf *out);
	void (*table)(void *ctx, struct cop_buf *out);
	void (*watch)(void *ctx, struct cop_buf *out);
	/* Any thread. For copper run: the tree's source and the user namespace of this node's
	 * views, still owned by the node; -1: views need none. False while the tree is not
	 * ready. */
	bool (*view)(void *ctx, const char **source, int *user_ns);
	/* Any thread. The process pid is about to become a command of copper run. Appends the
	 * command's environment variables, one NAME=VALUE line each. */
	void (*program)(void *ctx, pid_t pid, struct cop_buf *out);
	/* Any thread. The command has ended; status is from wait(2). */
	void (*ended)(void *ctx, pid_t pid, int status);
	/* Any thread. A command of copper run fell back to environment variables instead of a
	 * view. */
	void (*fallback)(void *ctx, const char *why);
	/* Main thread. Lists the contents of the node's cache. */
	void (*sizes)(void *ctx, struct cop_buf *out);
	/* Main thread. Writes the sums of a stop of the whole tree when the root is dead, and
	 * appends the text that the root would have added. 0, or -errno with a sentence if files
	 * could not be written. */
	int (*write_late)(void *ctx, struct cop_op_sum *sum, struct cop_err *err);
	/* Any thread. A stop has been answered: cop_command_stops has changed. */
	void (*wake)(void *ctx);
};

struct cop_command_conf {
	struct cop_topo topo;
	uint32_t rank;
	const char *host; /* of this node */
	const char *tree; /* a text that only the nodes of one tree share; "-": the node is alone */
	pid_t last_pid;   /* the last process of this node to end */
	const char *job_dir; /* absolute, or "" */
	bool counts;         /* the job was started with a profile */
	enum cop_conf_rank_files rank_files;
	const struct cop_command_ops *ops;
	void *ctx;
	struct cop_op *treeop;
	struct cop_gate *gate;
	struct cop_defer *deferred;
};

struct cop_command;

/* NULL: out of memory. The objects that conf points to must outlive the result. */
struct cop_command *cop_command_new(const struct cop_command_conf *conf);
/* Call it when no more commands can arrive and the gate has been drained. NULL is fine. */
void cop_command_free(struct cop_command *c);
/* Main thread. Opens the node's control socket for these commands, and writes a note about the tree
 * and the mount beside it, for a process that finds the socket after the node was killed. 0, or
 * -errno with a sentence. cop_command_stop_listening sends the pending replies and closes the
 * socket; NULL is fine. */
int cop_command_listen(struct cop_command *c, const struct cop_ctl_place *at,
	const struct cop_mountdir *mounted_at, struct cop_err *err);
void cop_command_stop_listening(struct cop_command *c);
/* Main thread. Restores the socket and its files if they were removed. Returns the milliseconds
 * until the next call; -1: never. */
int cop_command_tend(struct cop_command *c);
/* A cop_ctl_handler whose ctx is the cop_command. The reply's status is 0 or -errno. */
void cop_command_handle(void *ctx, struct cop_ctl_conn *conn, char *line);
/* Any thread. The number of stop commands that have arrived here and are not yet answered. */
unsigned cop_command_stops(const struct cop_command *c);

/* status: a node's report about itself and the tree: the JSON object and the tables of cache-stats.
 * It only formats its input. copper-cache-stats(1) documents the output, which scripts read. */

/* Snapshot of a node; the caller owns everything in it. */
struct cop_status {
	uint32_t rank, nodes;
	bool ready;      /* whether the tree is ready */
	bool prefetches; /* whether the user asked for a prefetch */
	const char *host, *mountpoint, *source;
	uint64_t started_ns; /* by cop_now_ns */
	const struct cop_stats *stats;
	struct cop_cache *cache;
	struct cop_spill *spill; /* NULL: none */
	struct cop_origin *origin;
	struct cop_rpc *rpc;           /* NULL: the node is alone */
	struct cop_fetch *fetch;       /* NULL: not created yet; so for the next two */
	struct cop_fuse *fs;           /* also NULL for a node without a mount */
	struct cop_prefetch *prefetch; /* also NULL for a node without prefetch */
};

/* All of these run on any thread and append to out, whose `failed` is set if memory runs out. */

/* ---- one node ---- */

/* One JSON object, without a newline. */
void cop_status_json(const struct cop_status *s, struct cop_buf *out);
/* Several lines for people: a heading, and a line per nonzero counter. */
void cop_status_table(const struct cop_status *s, struct cop_buf *out);
void cop_status_table_head(const struct cop_status *s, struct cop_buf *out);

/* ---- all nodes ---- */

/* {"nodes":[...],"total":{...}}: the nodes' objects and the sums, without a newline. */
void cop_status_all_json(const struct cop_op_sum *all, struct cop_buf *out);
/* This node's line (nodeline), without its newline. */
void cop_status_line(const struct cop_status *s, struct cop_buf *out);
/* The table: a heading, the nodes' lines in order of rank, and the sums. Splits all->text, which
 * has one nodeline per node, in place at the newlines. */
void cop_status_all_table(struct cop_op_sum *all, struct cop_buf *out);

/* ---- periodic output ---- */

struct cop_status_watch {
	const struct cop_stats *now, *before; /* the counters now and in the previous round; before
						 is NULL in the first round */
	uint64_t elapsed_ms;                  /* time between the two rounds */
};
/* Printed below the heading of one node: its counters and their growth per second. */
void cop_status_table_watched(const struct cop_status_watch *w, struct cop_buf *out);
/* Printed below the table of all nodes: a line with the sums' growth per second; nothing in the
 * first round. */
void cop_status_all_watched(const struct cop_status_watch *w, struct cop_buf *out);

#endif
