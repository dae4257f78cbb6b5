/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest program over the QNIX user library: every process of an application sends a greeting to the next one, and all
 * meet at a barrier.
 *
 *      cc qnix_hello.c $(pkg-config --cflags --libs qnix) -o qnix_hello
 *      for i in 0 1 2; do ./qnix_hello $i 3 & done; wait
 */
#include <stdio.h>
#include <stdlib.h>

#include "qnix.h"

enum { APPLICATION = 1000, GREETING = 1 };

static void must(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "%s: error %d\n", what, result);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int me = argc > 1 ? atoi(argv[1]) : 0, all = argc > 2 ? atoi(argv[2]) : 1, send, receive;
	int name[2] = { APPLICATION, me }, next[2] = { APPLICATION, (me + 1) % all }, previous[2] = { APPLICATION, (me + all - 1) % all };
	char text[64], got[64];
	long size;

	if (!qx_init(name, APPLICATION, all)) {
		fprintf(stderr, "%s\n", qx_error());
		return 1;
	}
	snprintf(text, sizeof(text), "Hello from process %d", me);
	receive = qx_receive(previous, GREETING, got, sizeof(got));
	must(receive, "qx_receive");
	send = qx_send(next, GREETING, text, sizeof(text));
	must(send, "qx_send");
	must(qx_wait(send, NULL), "sending");
	must(qx_wait(receive, &size), "receiving");
	printf("%d: %ld bytes: %s\n", me, size, got);
	must(qx_wait(qx_barrier(APPLICATION), NULL), "barrier");
	return qx_finish() < 0;
}
