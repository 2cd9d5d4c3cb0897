/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread. One turn of its loop runs posted work, reads completions, hands over queued
 * operations and ticks. After the last event it spins for SPIN_NS, because a reply often arrives
 * before a sleep and wake-up would be over. It yields between turns; otherwise, with all CPUs busy,
 * it would keep the application or the replying peer from running. Then it sleeps on the completion
 * queue's descriptor and an eventfd. */
#include "fabric/endpoint/ofi_priv.h"

#include <assert.h>
#include <poll.h>
#include <sched.h>

#include "base/log/log.h"

#define SPIN_NS 20000
#define BATCH 32
#define BATCHES_MAX 8
/* An unlimited sleep would be correct if every provider signalled its descriptor for every event.
 * One check per second costs nothing and turns a lost wake-up into a delay. */
#define SLEEP_MAX_MS 1000
/* Polling intervals for a provider without a descriptor (shm): soon after an event, and later. */
#define NAP_MS 1
#define NAP_LONG_MS 10
#define NAP_LONG_AFTER_NS (50 * COP_NS_PER_MS)

int cop_endpoint_ofi_errno(long fi_err)
{
	if (fi_err > 0)
		fi_err = -fi_err;
	/* Up to 255, libfabric's values are errno values; larger ones are its own. */
	return fi_err < -255 ? -EIO : (int)fi_err;
}

/* ---- posted work ---- */

static void wake_thread(struct ofi *o)
{
	uint64_t one = 1;

	/* Fails only when the counter is full, and then the thread is awake. */
	if (write(o->wake_fd, &one, sizeof(one)) < 0)
		return;
}

int cop_endpoint_ofi_post(struct cop_endpoint *f, struct cop_list *works)
{
	struct ofi *o = cop_endpoint_ofi_of(f);
	bool asleep = false, closing;

	pthread_mutex_lock(&o->lock);
	closing = o->closing;
	if (!closing) {
		cop_list_splice(&o->posts, works);
		asleep = o->asleep;
		o->asleep = false;
	}
	pthread_mutex_unlock(&o->lock);
	if (asleep)
		wake_thread(o);
	return closing ? -ESHUTDOWN : 0;
}

static unsigned run_posted(struct ofi *o)
{
	struct cop_list todo, *i;
	unsigned count = 0;

	cop_list_init(&todo);
	pthread_mutex_lock(&o->lock);
	cop_list_splice(&todo, &o->posts);
	pthread_mutex_unlock(&o->lock);
	for (; (i = cop_list_pop_front(&todo)); count++) {
		struct cop_endpoint_work *w = COP_CONTAINER_OF(i, struct cop_endpoint_work, link);

		w->run(w);
	}
	if (count && o->base.events.ran)
		o->base.events.ran(o->base.events.ctx);
	return count;
}

void cop_endpoint_ofi_keep_ticking(struct cop_endpoint *f, bool on)
{
	struct ofi *o = cop_endpoint_ofi_of(f);

	assert(cop_endpoint_ofi_on_thread(o));
	if (on && !o->ticking)
		o->next_tick_ms = cop_now_ms() + o->base.tick_ms;
	o->ticking = on;
}

/* ---- completions ---- */

static int post_one_rx(struct ofi *o, struct ofi_rx *rx)
{
	return cop_endpoint_ofi_errno(fi_recv(o->ep, rx->buf, COP_OFI_RX_SIZE,
		cop_endpoint_ofi_desc(o->rx_mr), FI_ADDR_UNSPEC, &rx->ctx));
}

int cop_endpoint_ofi_post_rx(struct ofi *o)
{
	while (!cop_list_empty(&o->rx_idle)) {
		struct cop_list *i = o->rx_idle.next;
		int rc = post_one_rx(o, COP_CONTAINER_OF(i, struct ofi_rx, ctx.link));

		if (rc)
			return rc;
		cop_list_remove(i);
	}
	return 0;
}

static void note_received(struct ofi *o, struct ofi_rx *rx, size_t len)
{
	if (len <= COP_OFI_RX_SIZE) {
		cop_stats_add(o->base.stats, COP_FABRIC_BYTES_IN, len);
		o->base.events.recv(o->base.events.ctx, rx->buf, len);
	}
	cop_list_push_back(&o->rx_idle, &rx->ctx.link);
}

static void operation_completed(struct ofi *o, struct ofi_ctx *ctx, size_t len, int rc)
{
	if (!ctx)
		return;
	if (ctx->kind != OFI_RX)
		cop_endpoint_ofi_completed(o, ctx, rc);
	else if (rc == 0)
		note_received(o, COP_CONTAINER_OF(ctx, struct ofi_rx, ctx), len);
	else
		cop_list_push_back(&o->rx_idle, &ctx->link);
}

/* An error belongs to one operation or, without context, to a connection whose operations report
 * their own errors. It never ends the loop. */
static void read_error(struct ofi *o)
{
	struct fi_cq_err_entry e = {0};
	ssize_t n = fi_cq_readerr(o->cq, &e, 0);

	if (n != 1)
		return;
	cop_log_debug("completion_error=%d provider_errno=%d", e.err, e.prov_errno);
	operation_completed(o, e.op_context, 0, e.err ? cop_endpoint_ofi_errno(e.err) : -EIO);
}

static unsigned read_cq(struct ofi *o)
{
	struct fi_cq_msg_entry entries[BATCH];
	unsigned count = 0;

	for (int i = 0; i < BATCHES_MAX; i++) {
		ssize_t n;

		/* The tcp provider of libfabric 1.17 reads errno after a short recv, which does not
		 * set it: our stale EAGAIN would make it retry a closed connection forever. */
		errno = 0;
		n = fi_cq_read(o->cq, entries, BATCH);
		if (n == -FI_EAVAIL) {
			read_error(o);
			count++;
			continue;
		}
		for (ssize_t k = 0; k < n; k++)
			operation_completed(o, entries[k].op_context, entries[k].len, 0);
		if (!cop_list_empty(&o->rx_idle))
			cop_endpoint_ofi_post_rx(o);
		if (n <= 0)
			break;
		count += (unsigned)n;
	}
	return count;
}

/* ---- sleep ---- */

static bool has_work(const struct ofi *o)
{
	return o->ticking || !cop_list_empty(&o->flying) || !cop_list_empty(&o->busy);
}

static int sleep_ms(const struct ofi *o)
{
	uint64_t now_ms = cop_now_ms(), ms = SLEEP_MAX_MS;

	if (has_work(o))
		ms = o->next_tick_ms > now_ms ? COP_MIN(ms, o->next_tick_ms - now_ms) : 0;
	if (o->next_due_ns) {
		uint64_t now_ns = cop_now_ns(), due = o->next_due_ns;

		ms = COP_MIN(ms, due > now_ns ? (due - now_ns) / COP_NS_PER_MS + 1 : 0);
	}
	if (!cop_list_empty(&o->rx_idle))
		ms = COP_MIN(ms, 1);
	if (o->cq_fd < 0)
		ms = COP_MIN(ms,
			cop_now_ns() - o->last_event_ns < NAP_LONG_AFTER_NS ? NAP_MS : NAP_LONG_MS);
	return (int)ms;
}

/* False if work was posted in the meantime. From here to wake-up, a post writes to the eventfd. */
static bool fall_asleep(struct ofi *o)
{
	bool asleep;

	pthread_mutex_lock(&o->lock);
	asleep = o->asleep = cop_list_empty(&o->posts) && !o->closing;
	pthread_mutex_unlock(&o->lock);
	return asleep;
}

static void wake_up(struct ofi *o)
{
	uint64_t count;

	pthread_mutex_lock(&o->lock);
	o->asleep = false;
	pthread_mutex_unlock(&o->lock);
	if (read(o->wake_fd, &count, sizeof(count)) < 0)
		return; /* nothing to read: the descriptor is non-blocking */
}

static void sleep_now(struct ofi *o)
{
	struct pollfd fds[] = {{.fd = o->wake_fd, .events = POLLIN},
		{.fd = cop_portguard_fd(o->portguard), .events = POLLIN},
		{.fd = o->cq_fd, .events = POLLIN}};
	struct fid *cq = &o->cq->fid;
	int ms = sleep_ms(o);

	if (ms == 0 || !fall_asleep(o))
		return;
	/* The provider may have events that do not make the descriptor readable (fi_poll(3)). */
	if (o->cq_fd < 0 || fi_trywait(o->fabric, &cq, 1) == FI_SUCCESS)
		poll(fds, o->cq_fd < 0 ? 2 : 3, ms);
	wake_up(o);
}

/* ---- the thread ---- */

static void run_tick(struct ofi *o)
{
	uint64_t now = cop_now_ms();

	if (now < o->next_tick_ms)
		return;
	o->next_tick_ms = now + o->base.tick_ms;
	if (o->base.events.tick)
		o->base.events.tick(o->base.events.ctx, now);
}

static bool is_closing(struct ofi *o)
{
	bool yes;

	pthread_mutex_lock(&o->lock);
	yes = o->closing;
	pthread_mutex_unlock(&o->lock);
	return yes;
}

/* Calls done for every operation; the provider can no longer access a buffer. */
static void end_operations(struct ofi *o)
{
	for (uint32_t i = 0; i < o->peers_count; i++) {
		if (o->peers[i])
			cop_endpoint_ofi_cancel(o->peers[i], -ECANCELED);
	}
	cop_endpoint_ofi_shut(o);
	while (!cop_list_empty(&o->flying))
		cop_endpoint_ofi_completed(
			o, COP_CONTAINER_OF(o->flying.next, struct ofi_ctx, link), -ECANCELED);
}

void *cop_endpoint_ofi_main(void *arg)
{
	struct ofi *o = arg;

	o->self = pthread_self();
	o->last_event_ns = cop_now_ns();
	o->next_tick_ms = cop_now_ms() + o->base.tick_ms;
	while (!is_closing(o)) {
		unsigned events = run_posted(o) + read_cq(o);
		uint64_t now_ns = cop_now_ns();

		cop_endpoint_ofi_pump_all(o, now_ns);
		run_tick(o);
		events += cop_portguard_turn(o->portguard);
		cop_endpoint_ofi_unverified(o);
		cop_log_refused_due();
		if (events)
			o->last_event_ns = now_ns;
		else if (now_ns - o->last_event_ns > SPIN_NS)
			sleep_now(o);
		else
			sched_yield();
	}
	run_posted(o);
	o->stopping = true;
	end_operations(o);
	return NULL;
}

void cop_endpoint_ofi_close(struct cop_endpoint *f)
{
	struct ofi *o = cop_endpoint_ofi_of(f);

	assert(!o->thread_started || !pthread_equal(pthread_self(), o->thread));
	pthread_mutex_lock(&o->lock);
	o->closing = true;
	o->asleep = false;
	pthread_mutex_unlock(&o->lock);
	wake_thread(o);
	if (o->thread_started)
		pthread_join(o->thread, NULL);
	cop_endpoint_ofi_shut(o);
	while (!cop_list_empty(&o->mrs))
		free(COP_CONTAINER_OF(cop_list_pop_front(&o->mrs), struct ofi_mr, link));
	cop_endpoint_ofi_peers_fini(o);
	cop_endpoint_ofi_unverified_fini(o);
	free(o->rx);
	free(o->rx_slab);
	fi_freeinfo(o->info);
	close(o->wake_fd);
	pthread_mutex_destroy(&o->lock);
	free(o);
}
