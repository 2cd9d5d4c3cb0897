/* SPDX-License-Identifier: BSD-3-Clause */
/* tcprelay BYTES CHUNK [keep]: one process sends BYTES over TCP to a second, which receives each
 * complete chunk and sends it on to a third. Prints the bytes that the middle one passes on per
 * second of its own CPU time: the cost of a relay that does nothing else. With keep, the middle one
 * has a place of its own for each chunk, as a cache has, and there are two passes and two numbers:
 * in the first, its memory comes fresh from the kernel. */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

struct job {
	size_t bytes, chunk;
	bool keep;
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

static void pass_all(const struct job *j, int in, int out, char *buf, size_t step)
{
	for (size_t done = 0; done < j->bytes; done += j->chunk, buf += step) {
		if (in >= 0)
			receive(in, buf, j->chunk);
		if (out >= 0)
			pass(out, buf, j->chunk);
	}
}

static void side(struct bench_shared *s, void *arg, unsigned i)
{
	const struct job *j = arg;
	int in = -1, out = -1, listener = -1;
	bool keeps = j->keep && i == 1;
	char *buf = malloc(keeps ? j->bytes : j->chunk);

	if (!buf)
		bench_die("no memory");
	if (!keeps)
		memset(buf, (int)i + 1, j->chunk);
	if (i > 0)
		listener = listen_on(s, i);
	bench_meet(s);
	if (i < 2)
		out = connect_to(s, i + 1);
	if (i > 0 && (in = accept(listener, NULL, NULL)) < 0)
		bench_die("accept: %s", strerror(errno));
	for (int n = 0; n < 1 + j->keep; n++) {
		double cpu;

		bench_meet(s);
		cpu = bench_cpu();
		pass_all(j, in, out, buf, keeps ? j->chunk : 0);
		if (i == 1)
			printf("%.0f\n", (double)j->bytes / (bench_cpu() - cpu));
	}
	fflush(stdout);
	bench_meet(s);
	free(buf);
}

int main(int argc, char **argv)
{
	struct job j;

	if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "keep") != 0))
		bench_die("usage: tcprelay BYTES CHUNK [keep]");
	j = (struct job){bench_size(argv[1]), bench_size(argv[2]), argc == 4};
	if (j.bytes % j.chunk)
		bench_die("BYTES must be a multiple of CHUNK");
	if (j.keep)
		bench_use_memory(j.bytes);
	return bench_sides(3, side, &j);
}
