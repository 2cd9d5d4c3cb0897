/* SPDX-License-Identifier: BSD-3-Clause */
/* tcprelay BYTES CHUNK: one process sends BYTES over TCP to a second, which receives each complete
 * chunk and sends it on to a third. Prints the bytes that the middle one passes on per second of
 * its own CPU time: the cost of a relay that does nothing else. */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct job {
	size_t bytes, chunk;
};

static int listen_on(struct bench_shared *s, unsigned side)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f00000b + side)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&sin, len) || listen(fd, 1) ||
		getsockname(fd, (struct sockaddr *)&sin, &len))
		bench_die("listen: %s", strerror(errno));
	memcpy(s->address[side], &sin, sizeof(sin));
	return fd;
}

static int connect_to(const struct bench_shared *s, unsigned side)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 ||
		connect(fd, (const struct sockaddr *)s->address[side], sizeof(struct sockaddr_in)))
		bench_die("connect: %s", strerror(errno));
	return fd;
}

static void receive(int fd, char *buf, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = recv(fd, buf + got, len - got, MSG_WAITALL);

		if (n <= 0)
			bench_die("recv: %s", n ? strerror(errno) : "end");
		got += (size_t)n;
	}
}

static void pass(int fd, const char *buf, size_t len)
{
	for (size_t sent = 0; sent < len;) {
		ssize_t n = send(fd, buf + sent, len - sent, MSG_NOSIGNAL);

		if (n < 0)
			bench_die("send: %s", strerror(errno));
		sent += (size_t)n;
	}
}

static void side(struct bench_shared *s, void *arg, unsigned i)
{
	const struct job *j = arg;
	int in = -1, out = -1, listener = -1;
	char *buf = malloc(j->chunk);
	double cpu;

	if (!buf)
		bench_die("no memory");
	memset(buf, (int)i + 1, j->chunk);
	if (i > 0)
		listener = listen_on(s, i);
	bench_meet(s);
	if (i < 2)
		out = connect_to(s, i + 1);
	if (i > 0 && (in = accept(listener, NULL, NULL)) < 0)
		bench_die("accept: %s", strerror(errno));
	bench_meet(s);
	cpu = bench_cpu();
	for (size_t done = 0; done < j->bytes; done += j->chunk) {
		if (in >= 0)
			receive(in, buf, j->chunk);
		if (out >= 0)
			pass(out, buf, j->chunk);
	}
	if (i == 1)
		printf("%.0f\n", (double)j->bytes / (bench_cpu() - cpu));
	fflush(stdout);
	bench_meet(s);
}

int main(int argc, char **argv)
{
	struct job j;

	if (argc != 3)
		bench_die("usage: tcprelay BYTES CHUNK");
	j = (struct job){bench_size(argv[1]), bench_size(argv[2])};
	if (j.bytes % j.chunk)
		bench_die("BYTES must be a multiple of CHUNK");
	return bench_sides(3, side, &j);
}
