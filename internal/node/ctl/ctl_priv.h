/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside ctl. The only lock, cop_ctl.lock, protects the reference counts and the fields shared by
 * handlers and the server's thread: `out`, `final`, `pass` and `gone` of a connection, and
 * `stopping`. All other fields of a connection belong to the thread. Functions that any thread may
 * call make no system call other than the wake-up. */
#ifndef COP_NODE_CTL_PRIV_H
#define COP_NODE_CTL_PRIV_H

#include "node/ctl/ctl.h"

#define COP_CTL_REQUEST_MS 5000 /* for a request to arrive */
#define COP_CTL_SEND_MS 30000   /* for a client to accept more of its reply */
#define COP_CTL_FLUSH_MS 2000   /* for sending replies at stop */

/* The listening socket and its files. */
struct cop_ctl_socket {
	int fd;
	char path[COP_CTL_PATH_SIZE];
	uint64_t dev, ino; /* of the socket's file: another file of that name must not be removed */
	/* Main thread, for keep.c: the folder with a shared lock, or -1; the contents of the files
	 * beside the socket, or NULL; when to check and when to touch the files next. */
	int folder;
	char *key, *note;
	uint64_t look_ms, touch_ms;
};

int cop_ctl_socket_open(
	struct cop_ctl_socket *s, const char *path, const char *key, struct cop_err *err);
void cop_ctl_socket_close(struct cop_ctl_socket *s);
/* Binds the socket s->fd and listens, and writes the key beside it. */
int cop_ctl_socket_bind(struct cop_ctl_socket *s, const char *key, struct cop_err *err);
/* Locks the folder against other processes that replace or remove sockets there, until
 * cop_ctl_unlock_folder. Returns the lock, or -errno with a sentence. */
int cop_ctl_lock_folder(const char *path, struct cop_err *err);
void cop_ctl_unlock_folder(const char *path, int lock);
/* Writes a note beside the socket and stores its text. */
int cop_ctl_socket_note(struct cop_ctl_socket *s, const char *words);

/* ---- keep.c: protection from cleaners of /tmp ---- */
/* Starts protecting the files of an open socket; protects them less well if memory is short or the
 * folder cannot be locked. */
void cop_ctl_keep_begin(struct cop_ctl_socket *s, const char *key);
void cop_ctl_keep_end(struct cop_ctl_socket *s);
/* Restores missing files. Returns 1 if it restored the socket itself: then the server's thread must
 * be woken. */
int cop_ctl_keep(struct cop_ctl_socket *s);
/* Checks that the folder is a directory that we own and others cannot access. */
int cop_ctl_dir_check(const char *dir, struct cop_err *err);
/* Whether the name is 16 hexadecimal digits plus this suffix. */
bool cop_ctl_name_is(const char *name, const char *ending);
/* The path of the key file beside the socket. */
void cop_ctl_key_path(const char *path, char out[COP_CTL_PATH_SIZE]);
void cop_ctl_note_path(const char *path, char out[COP_CTL_PATH_SIZE]);
/* Removes the key and the note of a removed socket, and half-written ones left by a killed node.
 * path contains a slash, followed by a name of 16 digits. */
void cop_ctl_forget(const char *path);

struct cop_ctl_conn {
	struct cop_ctl *ctl;
	int fd;        /* -1: closed */
	unsigned refs; /* one for the thread, one for the handler until it has replied */
	bool asked;    /* passed to the handler */
	char line[COP_CTL_LINE_MAX + 1];
	size_t line_len;
	uint64_t deadline_ms;
	struct cop_buf sending; /* being sent by the thread */
	size_t sent;
	struct cop_buf out; /* queued after that */
	bool final;         /* out contains the reply */
	int pass;           /* a descriptor to send with the next bytes; -1: none */
	bool gone;          /* the client has disconnected */
};

struct cop_ctl {
	struct cop_ctl_socket socket;
	int wake_fd;
	pthread_t thread;
	cop_ctl_handler *handler;
	void *ctx;
	pthread_mutex_t lock;
	unsigned refs; /* the owner's, plus one per connection */
	bool stopping;
	/* A disconnected client keeps its slot until its handler has replied, so there are never
	 * more open requests than slots. */
	struct cop_ctl_conn *conn[COP_CTL_CLIENTS];
};

/* A connection with one reference; NULL if out of memory. Takes ownership of fd in either case. */
struct cop_ctl_conn *cop_ctl_conn_new(struct cop_ctl *c, int fd);
void cop_ctl_conn_put(struct cop_ctl_conn *conn);
/* On the thread: reads available bytes and calls the handler when the line is complete. */
void cop_ctl_conn_read(struct cop_ctl_conn *conn);
/* On the thread: sends without blocking. */
void cop_ctl_conn_write(struct cop_ctl_conn *conn);
/* On the thread: the client has disconnected. */
void cop_ctl_conn_close(struct cop_ctl_conn *conn);
/* Whether, respectively: there is data to send; everything is done; the reply has been started. */
bool cop_ctl_conn_wants_write(struct cop_ctl_conn *conn);
bool cop_ctl_conn_finished(struct cop_ctl_conn *conn);
bool cop_ctl_conn_replied(struct cop_ctl_conn *conn);
void cop_ctl_put(struct cop_ctl *c);

#endif
