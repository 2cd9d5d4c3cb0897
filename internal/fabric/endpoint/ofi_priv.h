/* SPDX-License-Identifier: BSD-3-Clause */
/* The libfabric implementation. ofi_open.c opens the endpoint; ofi_progress.c is its thread;
 * ofi_peer.c: the peer table; ofi_send.c: messages and writes; ofi_mr.c: registered memory;
 * ofi_admit.c: admitted hosts; portguard_*.c: authentication of connections; ofi_unverified.c:
 * silent connections.
 *
 * Members below `progress thread only` are used only by that thread and need no lock. `lock`
 * protects the posted work and the two flags beside it; it is held for a few instructions, never
 * over a call of libfabric, a callback or I/O. The only other lock is in ofi_admit.c.
 *
 * Life of an operation: it waits in its peer's queue (list `sends` or `writes`), is flying while
 * the provider has it (the endpoint's `flying` list), and ends with a call of done. A dropped peer
 * is freed after its last flying operation, because the provider holds pointers into it. */
#ifndef COP_FABRIC_ENDPOINT_OFI_PRIV_H
#define COP_FABRIC_ENDPOINT_OFI_PRIV_H

#include <dirent.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/base/htab.h"
#include "base/base/ip.h"
#include "fabric/endpoint/endpoint_priv.h"
#include "fabric/endpoint/portguard_priv.h"

#define COP_OFI_RX_COUNT 64
#define COP_OFI_RX_SIZE (16 * COP_KIB)
#define COP_OFI_PEERS_MAX (1U << 20)
/* Maximum queued operations per peer; send and write return -ENOBUFS beyond it. */
#define COP_OFI_QUEUE_MAX 8192
/* Limits on operations in the provider. Writes are split into parts so that a message to the same
 * peer waits for at most COP_OFI_PARTS_PEER parts. A peer with no operation in flight may always
 * start one, so stopped peers that exhaust the endpoint's limits slow other peers down but never
 * block them. */
#define COP_OFI_PART_SIZE COP_MIB
#define COP_OFI_PARTS_PEER 16
#define COP_OFI_PARTS_ALL 256
#define COP_OFI_SENDS_PEER 64
#define COP_OFI_SENDS_ALL 2048
/* A peer's queued operations fail with -EHOSTUNREACH after this time without a sign of life. */
#define COP_OFI_STUCK_MS 30000

struct ofi;

enum ofi_kind { OFI_RX, OFI_SEND, OFI_PART };

/* The context passed to the provider; first member of the object that it identifies. The provider
 * may use `space` until completion (FI_CONTEXT, FI_CONTEXT2). */
struct ofi_ctx {
	struct fi_context2 space;
	enum ofi_kind kind;
	struct cop_list link; /* peer's queue, or flying */
};

struct ofi_rx {
	struct ofi_ctx ctx;
	void *buf;
};

struct ofi_peer {
	cop_endpoint_peer_t id;
	fi_addr_t addr;
	bool dropped;
	bool connected;        /* the provider accepted the last operation */
	struct cop_hlink link; /* in peers_by_text */
	struct cop_list busy;  /* linked while the peer has queued operations */
	struct cop_list sends, writes;
	unsigned queued;
	unsigned flying; /* references to the peer; include sends_flying and parts */
	unsigned sends_flying, parts;
	uint64_t next_try_ns; /* 0: immediately */
	uint64_t stuck_ns;    /* start of the provider's current refusals; 0: none */
	unsigned misses;
	char address[COP_ENDPOINT_TEXT_MAX];
};

struct ofi_mr {
	struct cop_endpoint_mr base;
	struct cop_list link;
	struct fid_mr *mr;
};

struct ofi_send {
	struct ofi_ctx ctx;
	struct ofi_peer *peer;
	cop_endpoint_done *done;
	void *arg;
	struct ofi_mr *mr; /* if the provider requires FI_MR_LOCAL */
	size_t len;
	char msg[];
};

struct ofi_write {
	struct cop_list link; /* in the peer's queue until every part was handed over */
	struct ofi_peer *peer;
	const char *buf;
	size_t len, sent;
	uint64_t addr, key;
	unsigned flying;
	int rc;
	bool queued;
	struct ofi_mr *mr;
	cop_endpoint_done *done;
	void *arg;
};

struct ofi_part {
	struct ofi_ctx ctx;
	struct ofi_write *write;
	size_t len;
};

struct ofi {
	struct cop_endpoint base;
	struct cop_endpoint_naming naming;
	struct cop_endpoint_net_type net;
	/* Set once by open. */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	int cq_fd; /* -1: the provider has no descriptor; the thread polls with short sleeps */
	int wake_fd;
	int listening;            /* the provider's socket; -1: none */
	struct cop_greet_key key; /* mac NULL: no guard */
	struct cop_portguard *portguard;
	uint64_t write_flags;
	size_t part_size;
	pthread_t thread; /* for close, which joins it */
	bool thread_started;

	pthread_mutex_t lock;
	struct cop_list posts; /* struct cop_endpoint_work */
	bool asleep, closing;

	/* Under ofi_admit.c's lock. */
	struct ofi *guarded_next;
	int listener; /* the provider's socket, which accepts only admitted hosts; -1: all hosts are
			 accepted */
	unsigned admitted_count;
	struct cop_ip *admitted;

	/* Progress thread only. */
	pthread_t self;
	bool stopping; /* no new operations */
	bool ticking;
	uint64_t last_event_ns;
	uint64_t next_tick_ms;
	uint64_t next_due_ns; /* earliest next_try_ns of a busy peer, or 0 */
	struct ofi_peer **peers;
	uint32_t *generation, *free_slots;
	uint32_t peers_count, peers_cap, free_count;
	struct cop_htab peers_by_text;
	struct cop_list busy, flying, mrs;
	unsigned flying_sends, flying_parts;
	struct ofi_rx *rx;
	char *rx_slab;
	struct ofi_mr *rx_mr;
	struct cop_list rx_idle; /* receive buffers that could not be reposted yet */
	DIR *own_fds;            /* the descriptors of this process, or NULL */
	uint64_t next_look_ms;
	unsigned silent; /* silent connections at the last check */
	uint64_t keys[16];
	unsigned keys_left;
};

static inline struct ofi *cop_endpoint_ofi_of(struct cop_endpoint *f)
{
	return COP_CONTAINER_OF(f, struct ofi, base);
}
static inline bool cop_endpoint_ofi_on_thread(const struct ofi *o)
{
	return pthread_equal(pthread_self(), o->self);
}

/* Converts a libfabric return or error value of either sign to -errno. */
int cop_endpoint_ofi_errno(long fi_err);

/* ofi_open.c */
/* mr_mode: the FI_MR_* bits offered to the provider. Tests narrow them. */
int cop_endpoint_ofi_open(const struct cop_endpoint_conf *conf, int mr_mode,
	struct cop_endpoint **out, struct cop_err *err);
/* Closes all libfabric objects; afterwards there are no callbacks and no buffer accesses.
 * Idempotent. */
void cop_endpoint_ofi_shut(struct ofi *o);

/* ofi_networks.c */
/* Finds the name of the network that the endpoint is on. */
void cop_endpoint_ofi_name_network(struct ofi *o);
void cop_endpoint_ofi_networks(const struct cop_endpoint *f, struct cop_buf *out);
void cop_endpoint_ofi_near_cpus(const struct cop_endpoint *f, struct cop_buf *out);
/* The address of an interface for an endpoint of this host to bind to: the host's own if it is
 * numeric and in the interface's network, else the interface's. false: no such interface. */
bool cop_endpoint_interface_address(const char *name, const char *host, char node[64]);
/* This machine's first address that is reachable from other hosts; false if there is none. */
bool cop_endpoint_outside_address(char node[64]);

/* ofi_progress.c */
void *cop_endpoint_ofi_main(void *arg);
int cop_endpoint_ofi_post(struct cop_endpoint *f, struct cop_list *works);
void cop_endpoint_ofi_keep_ticking(struct cop_endpoint *f, bool on);
void cop_endpoint_ofi_close(struct cop_endpoint *f);
int cop_endpoint_ofi_post_rx(struct ofi *o);

/* ofi_unverified.c: called on every turn, checks at intervals. Call init once the endpoint has its
 * name. */
void cop_endpoint_ofi_unverified_init(struct ofi *o);
void cop_endpoint_ofi_unverified(struct ofi *o);
void cop_endpoint_ofi_unverified_fini(struct ofi *o);

/* ofi_admit.c. Call init once the endpoint has its name, before the thread starts. */
void cop_endpoint_ofi_admit_init(struct ofi *o);
void cop_endpoint_ofi_admit_fini(struct ofi *o);
/* Counts and logs a refused connection: -ETIMEDOUT (silent), -EHOSTUNREACH (host not admitted),
 * -EBADMSG (no greeting), -EACCES (no proof of the secret). */
void cop_endpoint_ofi_refused(struct cop_stats *stats, const struct sockaddr_storage *from, int rc);
void cop_endpoint_ofi_admit_raw(struct ofi *o, const void *raw, size_t raw_len);
/* Whether the host of this new connection is admitted at this listener; if not, the connection is
 * counted and logged. */
bool cop_endpoint_ofi_may_enter(int listener, int fd);
void cop_endpoint_ofi_admit(struct cop_endpoint *f, const char *address);

/* ofi_peer.c */
int cop_endpoint_ofi_peer(struct cop_endpoint *f, const char *address, cop_endpoint_peer_t *peer);
void cop_endpoint_ofi_peer_drop(struct cop_endpoint *f, cop_endpoint_peer_t peer);
struct ofi_peer *cop_endpoint_ofi_peer_get(struct ofi *o, cop_endpoint_peer_t id);
/* Frees a dropped peer that has no flying operation. */
void cop_endpoint_ofi_peer_free_if_unused(struct ofi_peer *p);
void cop_endpoint_ofi_peers_fini(struct ofi *o);

/* ofi_send.c */
int cop_endpoint_ofi_send(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *msg,
	size_t len, cop_endpoint_done *done, void *arg);
int cop_endpoint_ofi_write(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *buf,
	size_t len, uint64_t remote_addr, uint64_t remote_key, cop_endpoint_done *done, void *arg);
/* Hands over as much as the provider accepts from the queues of due peers; sets next_due_ns. */
void cop_endpoint_ofi_pump_all(struct ofi *o, uint64_t now_ns);
/* A flying operation has ended. rc as for done. */
void cop_endpoint_ofi_completed(struct ofi *o, struct ofi_ctx *ctx, int rc);
/* Ends everything queued for p. */
void cop_endpoint_ofi_cancel(struct ofi_peer *p, int rc);

/* ofi_mr.c */
int cop_endpoint_ofi_reg(struct cop_endpoint *f, void *buf, size_t len, struct cop_endpoint_mr **mr,
	uint64_t *addr, uint64_t *key);
void cop_endpoint_ofi_unreg(struct cop_endpoint_mr *mr);
/* Local memory to send from or receive into: NULL if the provider does not require FI_MR_LOCAL. */
int cop_endpoint_ofi_reg_local(
	struct ofi *o, const void *buf, size_t len, uint64_t access, struct ofi_mr **mr);
static inline void *cop_endpoint_ofi_desc(const struct ofi_mr *mr)
{
	return mr ? fi_mr_desc(mr->mr) : NULL;
}

#endif
