/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside ctl. There is one lock, cop_ctl.lock. It protects the reference counts and what handlers
 * and the server's thread both use: `out`, `final`, `pass` and `gone` of a connection, and
 * `stopping`. Everything else of a connection belongs to the thread. Functions that any thread may
 * call make no system call except the wake-up. */
#ifndef COP_NODE_CTL_PRIV_H
#define COP_NODE_CTL_PRIV_H

#include "node/ctl/ctl.h"

#define COP_CTL_REQUEST_MS 5000 /* for a request to arrive */
#define COP_CTL_SEND_MS 30000   /* for a client to take some more of its reply */
#define COP_CTL_FLUSH_MS 2000   /* for replies to get out at stop */

/* The listening socket and the files that lead to it. */
struct cop_ctl_socket {
	int fd;
	char path[COP_CTL_PATH_SIZE];
	uint64_t dev, ino; /* of the socket's file: another file there is not ours to remove */
	/* Main thread, for keep.c: the folder with a shared lock, or -1; what the files beside the
	 * socket hold, or NULL; when to look and to touch them again. */
	int folder;
	char *key, *note;
	uint64_t look_ms, touch_ms;
};

int cop_ctl_socket_open(
	struct cop_ctl_socket *s, const char *path, const char *key, struct cop_err *err);
void cop_ctl_socket_close(struct cop_ctl_socket *s);
/* Binds the socket s->fd and listens, and writes the key beside it. */
int cop_ctl_socket_bind(struct cop_ctl_socket *s, const char *key, struct cop_err *err);
/* Holds a lock on the folder against others that replace or remove sockets there. Ends with
 * cop_ctl_unlock_folder. -errno with a sentence. */
int cop_ctl_lock_folder(const char *path, struct cop_err *err);
void cop_ctl_unlock_folder(const char *path, int lock);
/* Writes a note beside the socket, and keeps it. */
int cop_ctl_socket_note(struct cop_ctl_socket *s, const char *words);

/* ---- keep.c: what a cleaner of /tmp would remove ---- */
/* Begins to keep the files of an open socket; without memory, or where nothing can be locked, less
 * is kept. */
void cop_ctl_keep_begin(struct cop_ctl_socket *s, const char *key);
void cop_ctl_keep_end(struct cop_ctl_socket *s);
/* Puts back what is missing. Returns 1 if the socket itself was, and its thread must be woken. */
int cop_ctl_keep(struct cop_ctl_socket *s);
/* Whether the folder is a directory of ours that nobody else can read or write. */
int cop_ctl_dir_check(const char *dir, struct cop_err *err);
/* Whether the name is 16 hexadecimal digits and this ending. */
bool cop_ctl_name_is(const char *name, const char *ending);
/* The path of the key file beside the socket. */
void cop_ctl_key_path(const char *path, char out[COP_CTL_PATH_SIZE]);
void cop_ctl_note_path(const char *path, char out[COP_CTL_PATH_SIZE]);
/* Removes the key and the note of a socket that no longer exists, and unfinished ones that a killed
 * node left. path has a slash and a name of 16 digits. */
void cop_ctl_forget(const char *path);

struct cop_ctl_conn {
	struct cop_ctl *ctl;
	int fd;        /* -1: closed */
	unsigned refs; /* one for the thread, one for the handler until it has replied */
	bool asked;    /* the handler has it */
	char line[COP_CTL_LINE_MAX + 1];
	size_t line_len;
	uint64_t deadline_ms;
	struct cop_buf sending; /* what the thread is sending */
	size_t sent;
	struct cop_buf out; /* what will be sent after that */
	bool final;         /* out has the reply */
	int pass;           /* a descriptor to be sent with the next bytes; -1: none */
	bool gone;          /* the client has left */
};

struct cop_ctl {
	struct cop_ctl_socket socket;
	int wake_fd;
	pthread_t thread;
	cop_ctl_handler *handler;
	void *ctx;
	pthread_mutex_t lock;
	unsigned refs; /* the owner's and one per connection */
	bool stopping;
	/* A client that left keeps its slot until its handler has replied, so there are never more
	 * open requests than slots. */
	struct cop_ctl_conn *conn[COP_CTL_CLIENTS];
};

/* A connection with one reference; NULL if there is no memory. Owns fd in both cases. */
struct cop_ctl_conn *cop_ctl_conn_new(struct cop_ctl *c, int fd);
void cop_ctl_conn_put(struct cop_ctl_conn *conn);
/* On the thread: reads what has arrived and calls the handler when the line is complete. */
void cop_ctl_conn_read(struct cop_ctl_conn *conn);
/* On the thread: sends what can be sent. */
void cop_ctl_conn_write(struct cop_ctl_conn *conn);
/* On the thread: the client has left. */
void cop_ctl_conn_close(struct cop_ctl_conn *conn);
/* There is something to send; nothing is left to do; the reply has been started. */
bool cop_ctl_conn_wants_write(struct cop_ctl_conn *conn);
bool cop_ctl_conn_finished(struct cop_ctl_conn *conn);
bool cop_ctl_conn_replied(struct cop_ctl_conn *conn);
void cop_ctl_put(struct cop_ctl *c);

#endif
