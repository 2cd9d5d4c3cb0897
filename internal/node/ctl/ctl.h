/* SPDX-License-Identifier: BSD-3-Clause */
/* ctl: the local control socket, through which `copper stop` and `copper cache-stats` talk to the
 * node on this machine. A client sends one line, and gets one reply; their contents are up to the
 * caller. ctl refuses other users, directories that others could write to, lines over 4 KiB and
 * clients that are slow to send their request.
 *
 * Protocol: the client sends one line; the server answers a line "status N LENGTH" and LENGTH
 * bytes, and closes. Up to COP_CTL_FDS descriptors may come with either (SCM_RIGHTS, unix(7)). */
#ifndef COP_NODE_CTL_H
#define COP_NODE_CTL_H

#include "base/base/base.h"

#define COP_CTL_LINE_MAX 4096 /* bytes of a request, without its newline */
#define COP_CTL_KEY_MAX 4351  /* bytes of a key */
#define COP_CTL_CLIENTS 16    /* at a time; further clients wait to be accepted */
#define COP_CTL_PATH_SIZE 108 /* the size of a socket address, NUL included */
#define COP_CTL_NOTE_SIZE 128 /* bytes of a note, NUL included */
#define COP_CTL_REPLY_MAX (256 * COP_MIB)
#define COP_CTL_FDS 4 /* descriptors with a request or with a reply; further ones are closed */

/* Descriptors that go along; zeroed memory holds none. */
struct cop_ctl_fds {
	int fd[COP_CTL_FDS];
	unsigned n;
};
/* Closes them and leaves it empty. */
void cop_ctl_fds_close(struct cop_ctl_fds *fds);

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
/* Sends the replies that were given (for 2 s at most), closes everything, joins the thread and
 * removes both files. Later replies to open requests are discarded. Must not be called from a
 * handler. NULL is fine. */
void cop_ctl_stop(struct cop_ctl *c);

/* The reply: status is 0 or a number that the client understands, text is copied. conn must not be
 * used afterwards. A text over COP_CTL_REPLY_MAX becomes status 1 and a sentence. */
void cop_ctl_reply(struct cop_ctl_conn *conn, int status, const char *text, size_t len);
/* The same with descriptors, which stay the caller's. If this process can have no further ones, the
 * reply comes without any. */
void cop_ctl_reply_with(struct cop_ctl_conn *conn, int status, const char *text, size_t len,
	const struct cop_ctl_fds *fds);
/* For a handler, before it returns: the descriptors that came with the request, for the caller to
 * close. What nobody takes is closed with the connection. */
void cop_ctl_take_fds(struct cop_ctl_conn *conn, struct cop_ctl_fds *fds);

/* ---- client ---- */

struct cop_ctl_reply {
	int status;
	char *text; /* malloc'ed, NUL-terminated; the caller frees */
	size_t len;
	struct cop_ctl_fds fds; /* that came along, for the caller to close */
};

/* Sends line to the server at path and waits for its reply; gives up when nothing arrives for
 * timeout_ms. -ENOENT: nobody listens there; -ECONNREFUSED: the socket was left over; -ETIMEDOUT,
 * -ECONNRESET, -EACCES, -E2BIG, -EBADMSG: each with a sentence. */
int cop_ctl_call(const char *path, const char *line, uint32_t timeout_ms,
	struct cop_ctl_reply *reply, struct cop_err *err);

/* Sends line with descriptors, which stay the caller's, and waits for no reply: for news that the
 * server may use or not. 0: it was sent; errors as above. */
int cop_ctl_tell(const char *path, const char *line, const struct cop_ctl_fds *fds,
	uint32_t timeout_ms, struct cop_err *err);

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

#endif
