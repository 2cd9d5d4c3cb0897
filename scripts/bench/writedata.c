/* SPDX-License-Identifier: BSD-3-Clause */
/* writedata BYTES CHUNK [one|cpu]: what the provider achieves for a program that does nothing else.
 * One process writes BYTES to another's memory in chunks by fi_writedata over libfabric's tcp
 * provider, 15 outstanding; the other counts the completions with remote data. Both sleep on the
 * completion queue's descriptor when there is nothing to do. Prints bytes per second, or with `cpu`
 * a line for each side: the seconds of processor time that it took. The memory is as large as the
 * bytes and was touched before; with `one` it is a single chunk on each side, which stays in the
 * processor's caches. See fi_endpoint(3), fi_rma(3), fi_cq(3), fi_poll(3). */
#include "bench.h"

#include <poll.h>
#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define OUTSTANDING 15
#define KEY 7

struct job {
	size_t bytes, chunk, memory;
	bool cpu;
};

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_mr *mr;
	char *memory;
	int fd;
};

static void check(int rc, const char *what)
{
	if (rc < 0)
		bench_die("%s: %s", what, fi_strerror(-rc));
}

static struct fi_info *offer(const char *host, uint32_t protocol)
{
	struct fi_info *h = fi_allocinfo(), *info = NULL;

	if (!h)
		bench_die("no memory");
	h->caps = FI_MSG | FI_RMA;
	h->ep_attr->type = FI_EP_RDM;
	h->ep_attr->protocol = protocol;
	h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->fabric_attr->prov_name = strdup("tcp");
	if (fi_getinfo(FI_VERSION(1, 15), host, "0", FI_SOURCE, h, &info))
		info = NULL;
	fi_freeinfo(h);
	return info;
}

static void open_end(struct end *e, unsigned side, size_t memory)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD, .size = 256};
	struct fi_av_attr av = {.type = FI_AV_UNSPEC};
	char host[32];

	snprintf(host, sizeof(host), "127.0.0.%u", 11 + side);
	/* By this protocol rxm passes everything through to tcp, as for the product. */
	e->info = offer(host, FI_PROTO_RXM_TCP);
	if (!e->info)
		e->info = offer(host, FI_PROTO_UNSPEC);
	if (!e->info)
		bench_die("no tcp provider");
	check(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), "fi_fabric");
	check(fi_domain(e->fabric, e->info, &e->domain, NULL), "fi_domain");
	check(fi_cq_open(e->domain, &cq, &e->cq, NULL), "fi_cq_open");
	check(fi_av_open(e->domain, &av, &e->av, NULL), "fi_av_open");
	check(fi_endpoint(e->domain, e->info, &e->ep, NULL), "fi_endpoint");
	check(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_ep_bind(e->ep, &e->av->fid, 0), "fi_ep_bind");
	check(fi_enable(e->ep), "fi_enable");
	check(fi_control(&e->cq->fid, FI_GETWAIT, &e->fd), "FI_GETWAIT");
	e->memory = malloc(memory);
	if (!e->memory)
		bench_die("no memory");
	memset(e->memory, (int)side + 1, memory);
	check(fi_mr_reg(e->domain, e->memory, memory, FI_REMOTE_WRITE | FI_WRITE, 0, KEY, 0, &e->mr,
		      NULL),
		"fi_mr_reg");
}

/* Waits for one completion; 0 if none came within the time. */
static int completion(struct end *e, int timeout_ms)
{
	struct fid *fid = &e->cq->fid;
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = {0};
	ssize_t n = fi_cq_read(e->cq, &entry, 1);

	if (n == 1)
		return 1;
	if (n == -FI_EAVAIL) {
		fi_cq_readerr(e->cq, &err, 0);
		bench_die("completion: %s", fi_strerror(err.err));
	}
	if (n != -FI_EAGAIN)
		check((int)n, "fi_cq_read");
	if (fi_trywait(e->fabric, &fid, 1) == 0)
		poll(&(struct pollfd){.fd = e->fd, .events = POLLIN}, 1, timeout_ms);
	return 0;
}

static void send_all(struct end *e, const struct job *j, fi_addr_t peer)
{
	size_t sent = 0, flying = 0;
	uint64_t n = 0;

	while (sent < j->bytes || flying) {
		size_t at = sent % j->memory;
		ssize_t rc = -FI_EAGAIN;

		if (sent < j->bytes && flying < OUTSTANDING)
			rc = fi_writedata(
				e->ep, e->memory + at, j->chunk, NULL, n, peer, at, KEY, NULL);
		if (rc == 0) {
			sent += j->chunk;
			flying++;
			n++;
		} else if (rc != -FI_EAGAIN) {
			check((int)rc, "fi_writedata");
		} else if (completion(e, 100)) {
			flying--;
		}
	}
}

static void close_end(struct end *e)
{
	fi_close(&e->mr->fid);
	fi_close(&e->ep->fid);
	fi_close(&e->av->fid);
	fi_close(&e->cq->fid);
	fi_close(&e->domain->fid);
	fi_close(&e->fabric->fid);
	fi_freeinfo(e->info);
	free(e->memory);
}

static void side(struct bench_shared *s, void *arg, unsigned i)
{
	const struct job *j = arg;
	struct end e = {0};
	size_t len = sizeof(s->address[i]);
	fi_addr_t peer;
	/* The first chunk opens the connection and is not counted. */
	struct job first = {.bytes = j->chunk, .chunk = j->chunk, .memory = j->memory};
	double start, cpu;

	open_end(&e, i, j->memory);
	check(fi_getname(&e.ep->fid, s->address[i], &len), "fi_getname");
	bench_meet(s);
	if (fi_av_insert(e.av, s->address[!i], 1, &peer, 0, NULL) != 1)
		bench_die("fi_av_insert");
	cpu = bench_cpu();
	if (i == 0) {
		send_all(&e, &first, peer);
		start = bench_wall();
		send_all(&e, j, peer);
		if (!j->cpu)
			printf("%.0f\n", (double)j->bytes / (bench_wall() - start));
	} else {
		for (size_t got = 0; got < j->bytes + j->chunk;)
			got += completion(&e, 100) ? j->chunk : 0;
	}
	if (j->cpu)
		printf("%.6f\n", bench_cpu() - cpu);
	fflush(stdout);
	bench_meet(s);
	close_end(&e);
}

int main(int argc, char **argv)
{
	struct job j;

	if (argc < 3)
		bench_die("usage: writedata BYTES CHUNK [one|cpu]");
	j = (struct job){.bytes = bench_size(argv[1]), .chunk = bench_size(argv[2])};
	j.cpu = argc > 3 && !strcmp(argv[3], "cpu");
	j.memory = argc > 3 && !j.cpu ? j.chunk : j.bytes;
	if (j.bytes % j.chunk)
		bench_die("BYTES must be a multiple of CHUNK");
	return bench_sides(2, side, &j);
}
