/* SPDX-License-Identifier: BSD-3-Clause */
/* ctl: the local control socket, through which `copper stop` and `copper cache-stats` talk to the
 * node on this machine. A client sends one line, and gets one reply; their contents are up to the
 * caller. ctl refuses other users, directories that others could write to, lines over 4 KiB and
 * clients that are slow to send their request.
 *
 * Protocol: the client sends one line; the server answers a line "status N LENGTH" and LENGTH
 * bytes, and closes. A descriptor may come with the answer (SCM_RIGHTS, unix(7)). */
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
#define COP_CTL_CLIENTS 16    /* at a time; further clients wait to be accepted */
#define COP_CTL_PATH_SIZE 108 /* the size of a socket address, NUL included */
#define COP_CTL_NOTE_SIZE 128 /* bytes of a note, NUL included */
#define COP_CTL_REPLY_MAX (256 * COP_MIB)
/* In the answer to "program", if only the command's parent can report its end, so that copper run
 * must stay: "wanted", this node knows that the job is recorded; "untold", others may. */
#define COP_CTL_EXIT "COPPER_EXIT"

/* ---- where sockets are ---- */

/* The folder of the sockets: override if it is not NULL, else $XDG_RUNTIME_DIR/copper if that is
 * usable (not in /run/user, which comes and goes with logins), else /tmp/copper-UID. It is created
 * (0700) if it does not exist. It is refused if it is a symlink, belongs to someone else or is open
 * to others: -EACCES, -ENOTDIR, -ENAMETOOLONG and so on with a sentence. */
int cop_ctl_dir(const char *override, char *out, size_t size, struct cop_err *err);
/* The socket of a key: dir/HASH.sock. The key is a mount point's real path or "serve:HOST:PORT";
 * its text is in dir/HASH.key. -ENAMETOOLONG if it does not fit size or COP_CTL_PATH_SIZE; -EINVAL
 * for an empty or too long key. */
int cop_ctl_path(const char *dir, const char *key, char *out, size_t size);
/* The same for a node: the real path of its mount point, or ("") the host and port of a node
 * without a mount; runtime_dir is the override of cop_ctl_dir. -errno with a sentence. */
struct cop_ctl_place {
	const char *runtime_dir, *mountpoint, *host;
	uint16_t port;
};
int cop_ctl_place(const struct cop_ctl_place *p, char path[COP_CTL_PATH_SIZE],
	char key[COP_CTL_KEY_MAX + 1], struct cop_err *err);
/* Calls found for each key that has a socket in dir (at most 1,024), whether or not anyone still
 * answers there. Returns how many. Returns -errno on failure, also if descriptors or memory ran out
 * on the way. */
int cop_ctl_list(
	const char *dir, void (*found)(void *ctx, const char *key, const char *path), void *ctx);
/* Writes a few words beside the socket at path. They survive the process if it is killed, until the
 * socket is replaced or removed. cop_ctl_noted reads them, "" if there are none. 0 or -errno. */
int cop_ctl_note(const char *path, const char *words);
void cop_ctl_noted(const char *path, char words[COP_CTL_NOTE_SIZE]);
/* Removes what a killed process left at path (of cop_ctl_path). -EADDRINUSE if a living process
 * listens there. */
int cop_ctl_clear(const char *path, struct cop_err *err);

/* ---- server ---- */

struct cop_ctl;
struct cop_ctl_conn;

/* Runs on the server's thread and must not block. line may be changed and is valid until the reply.
 * Each request is answered by exactly one cop_ctl_reply, now or later and from any thread, even if
 * its client is gone. */
typedef void cop_ctl_handler(void *ctx, struct cop_ctl_conn *conn, char *line);

/* Listens at path (of cop_ctl_path) for key and starts the thread "ctl". -EADDRINUSE if a living
 * process listens there; a socket that was left over is replaced. */
int cop_ctl_start(const char *path, const char *key, cop_ctl_handler *handler, void *ctx,
	struct cop_ctl **out, struct cop_err *err);
/* The same for a node at path and key (of cop_ctl_place). It waits up to 3 s for a node that is
 * just ending; the sentence about a living one says how to end it. */
int cop_ctl_start_when_free(const char *path, const char *key, cop_ctl_handler *handler, void *ctx,
	struct cop_ctl **out, struct cop_err *err);
/* The same as cop_ctl_note for the socket of this server, which keeps the words. */
int cop_ctl_leave_note(struct cop_ctl *c, const char *words);
/* The thread that started it, which must also be the one that stops it. Puts back the socket and
 * the files beside it if somebody has removed them; touches them daily. It looks every few seconds
 * at most; returns the milliseconds until it would look again. */
int cop_ctl_tend(struct cop_ctl *c);
/* Sends the replies that were given (for 2 s at most), closes everything, joins the thread and
 * removes both files. Later replies to open requests are discarded. Must not be called from a
 * handler. NULL is fine. */
void cop_ctl_stop(struct cop_ctl *c);

/* The reply: status is 0 or a number that the client understands, text is copied. conn must not be
 * used afterwards. A text over COP_CTL_REPLY_MAX becomes status 1 and a sentence. */
void cop_ctl_reply(struct cop_ctl_conn *conn, int status, const char *text, size_t len);
/* The same with a descriptor, which stays the caller's; -1: none. If this process can have no
 * further one, the reply comes without it. */
void cop_ctl_reply_with(
	struct cop_ctl_conn *conn, int status, const char *text, size_t len, int fd);

/* ---- client ---- */

struct cop_ctl_reply {
	int status;
	char *text; /* malloc'ed, NUL-terminated; the caller frees */
	size_t len;
	int fd; /* that came along, for the caller to close; -1: none */
};

/* Sends line to the server at path and waits for its reply; gives up when nothing arrives for
 * timeout_ms. -ENOENT: there is no socket; -ECONNREFUSED: the socket was left over; -ETIMEDOUT,
 * -ECONNRESET, -EACCES, -E2BIG, -EBADMSG: each with a sentence. */
int cop_ctl_call(const char *path, const char *line, uint32_t timeout_ms,
	struct cop_ctl_reply *reply, struct cop_err *err);

/* The same as cop_ctl_call for a caller that also waits for other things: sends line (under 64
 * bytes), waiting at most timeout_ms, and returns. path and line are copied. */
struct cop_ctl_question;
int cop_ctl_ask(const char *path, const char *line, uint32_t timeout_ms,
	struct cop_ctl_question **out, struct cop_err *err);
/* Readable when part of the reply has arrived. */
int cop_ctl_question_fd(const struct cop_ctl_question *q);
/* Reads what has arrived. -EAGAIN: there is more to come; otherwise it returns as cop_ctl_call, and
 * then only cop_ctl_question_free may follow. */
int cop_ctl_question_read(
	struct cop_ctl_question *q, struct cop_ctl_reply *reply, struct cop_err *err);
/* May be called before the answer has arrived. NULL is fine. */
void cop_ctl_question_free(struct cop_ctl_question *q);

/* command: the requests that a user can send to a running node, one line on its control socket, and
 * the sentences and exit statuses of the replies:
 *
 *     stats [all] | table [all] | watch [all] | lines | stop [local] | snapshot [local] |
 *     reset [all] | sizes | process | view | program PID | ended PID STATUS | fallback WHY |
 *     release | hold | invalidate PATH
 *
 * "view" is answered with the source and, if views need one, a descriptor of the user namespace.
 *
 * Most of them are operations on the tree (tree/op); the status of this node comes from struct
 * cop_command_ops. It refuses lines that it does not know, and all lines while the node ends. It
 * has no thread of its own. */

/* ctx comes from the configuration. */
struct cop_command_ops {
	/* Any thread. The status of this node: a JSON object, lines for people, and the counters
	 * as cop_stats_lines has them before the head of these lines. */
	void (*status)(void *ctx, struct cop_buf *out);
	void (*table)(void *ctx, struct cop_buf *out);
	void (*watch)(void *ctx, struct cop_buf *out);
	/* Any thread. What copper run needs: the source of the tree, and the user namespace of this
	 * node's views, which stays the node's; -1: views need none. False while the tree is not
	 * ready. */
	bool (*view)(void *ctx, const char **source, int *user_ns);
	/* Any thread. A command of copper run begins in this process. Appends what it gets in its
	 * environment, a line NAME=VALUE each. */
	void (*program)(void *ctx, pid_t pid, struct cop_buf *out);
	/* Any thread. It has ended; status is that of wait(2). */
	void (*ended)(void *ctx, pid_t pid, int status);
	/* Any thread. A command of copper run got only variables instead of a view. */
	void (*fallback)(void *ctx, const char *why);
	/* Main thread. Lists what the node's cache holds. */
	void (*sizes)(void *ctx, struct cop_buf *out);
	/* Main thread. Writes the sum of a stop of the whole tree whose root is dead, and adds to
	 * its text what the root would have. 0; else files could not be written, and err has a
	 * sentence. */
	int (*write_late)(void *ctx, struct cop_op_sum *sum, struct cop_err *err);
	/* Any thread. A stop was answered, so cop_command_stops has changed. */
	void (*wake)(void *ctx);
};

struct cop_command_conf {
	struct cop_topo topo;
	uint32_t rank;
	const char *host; /* of this node */
	const char *tree; /* a text that only the nodes of one tree share; "-" for a node alone */
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

/* NULL: out of memory. What conf points to must outlive the object. */
struct cop_command *cop_command_new(const struct cop_command_conf *conf);
/* Call it when no more commands can arrive and the gate is drained. NULL is fine. */
void cop_command_free(struct cop_command *c);
/* Main thread. Opens the node's control socket for these commands, and writes a note about the tree
 * and the mount beside it, for the process that finds the socket of a killed node. 0, or -errno
 * with a sentence. cop_command_stop_listening sends the pending replies and closes the socket; NULL
 * is fine. */
int cop_command_listen(struct cop_command *c, const struct cop_ctl_place *at,
	const struct cop_mountdir *mounted_at, struct cop_err *err);
void cop_command_stop_listening(struct cop_command *c);
/* Main thread. Puts back files beside the socket that somebody has removed. Returns in how many
 * milliseconds to call it again; -1: never. */
int cop_command_tend(struct cop_command *c);
/* A cop_ctl_handler whose ctx is the cop_command. The reply's status is 0 or -errno. */
void cop_command_handle(void *ctx, struct cop_ctl_conn *conn, char *line);
/* Any thread. The number of stops that arrived here and are not answered yet. */
unsigned cop_command_stops(const struct cop_command *c);

/* status: what a node reports about itself and the tree: the JSON object and the tables of
 * cache-stats. It only reads what it is given, keeps nothing, and does not know how the report was
 * requested. copper-cache-stats(1) documents the output, which scripts read. */

/* A node at one moment; the caller owns everything in it. */
struct cop_status {
	uint32_t rank, nodes;
	bool ready;      /* whether the tree is ready */
	bool prefetches; /* whether the user asked for a prefetch */
	const char *host, *mountpoint, *source;
	uint64_t started_ns; /* by cop_now_ns */
	const struct cop_stats *stats;
	struct cop_cache *cache;
	struct cop_spill *spill; /* NULL: there is none */
	struct cop_origin *origin;
	struct cop_rpc *rpc;           /* NULL: the tree is this node alone */
	struct cop_fetch *fetch;       /* NULL: it does not exist yet; also for the next two */
	struct cop_fuse *fs;           /* also NULL for a node without a mount */
	struct cop_prefetch *prefetch; /* also NULL for a node that does not prefetch */
};

/* All of these run on any thread and append to out, whose `failed` says that memory was short. */

/* ---- one node ---- */

/* One JSON object, without a newline. */
void cop_status_json(const struct cop_status *s, struct cop_buf *out);
/* Several lines for people: a heading, and a line for each counter that is not zero. */
void cop_status_table(const struct cop_status *s, struct cop_buf *out);
void cop_status_table_head(const struct cop_status *s, struct cop_buf *out);

/* ---- all nodes ---- */

/* {"nodes":[...],"total":{...}}: the nodes' objects and the sums, without a newline. */
void cop_status_all_json(const struct cop_op_sum *all, struct cop_buf *out);
/* This node's line (nodeline), without its newline. */
void cop_status_line(const struct cop_status *s, struct cop_buf *out);
/* The table: a heading, the lines of the nodes in order of rank, and the sums. Cuts all->text,
 * which has one nodeline per node, at the newlines. */
void cop_status_all_table(struct cop_op_sum *all, struct cop_buf *out);

/* ---- again and again ---- */

struct cop_status_watch {
	const struct cop_stats *now,
		*before;     /* before: the counters of the round before; NULL in the first round */
	uint64_t elapsed_ms; /* the time between the two */
};
/* Printed below the heading of one node: its counters, and by how much each grew per second. */
void cop_status_table_watched(const struct cop_status_watch *w, struct cop_buf *out);
/* Printed below the table of all nodes: a line with the growth of the sums per second; nothing in
 * the first round. */
void cop_status_all_watched(const struct cop_status_watch *w, struct cop_buf *out);

#endif
