/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that arrive before their receives: into the bins of every class that is kept. */
#include "cmpi/engine/bin.h"

bool mpip_link_message(struct mpip_engine *e, struct cmpi_message *message, enum mpip_class class)
{
	struct mpip_link *link = &message->link[class];
	struct mpip_bin *bin;

	if (!mpip_class_matches(class, message->key))
		return true;
	bin = mpip_bin_get(e, mpip_class_key(class, message->key));
	if (!bin)
		return false;
	link->bin = bin;
	link->next = NULL;
	link->prev = bin->unexpected ? bin->unexpected_tail : NULL;
	*(bin->unexpected ? &bin->unexpected_tail->link[class].next : &bin->unexpected) = message;
	bin->unexpected_tail = message;
	return true;
}

static void append(struct mpip_engine *e, struct cmpi_message *message)
{
	message->next = NULL;
	message->prev = e->first ? e->last : NULL;
	*(e->first ? &e->last->next : &e->first) = message;
	e->last = message;
	e->nunexpected++;
}

bool mpip_enqunexpected(struct mpip_engine *e, struct cmpi_message *message)
{
	bool fits = true;

	append(e, message);
	for (enum mpip_class class = MPIP_EXACT; class < MPIP_CLASSES; class ++) {
		message->link[class].bin = NULL;
		if (e->kept & 1 << class && !mpip_link_message(e, message, class))
			fits = false;
	}
	if (!fits)
		mpip_dequnexpected(e, message);
	return fits;
}

/*
 * From now on messages are found by this class of wildcard too.  False: no memory; then it is not kept, and the next call
 * starts anew.
 */
bool mpip_keep_class(struct mpip_engine *e, enum mpip_class class)
{
	struct cmpi_message *message;

	for (message = e->first; message; message = message->next)
		if (!message->link[class].bin && !mpip_link_message(e, message, class))
			return false;
	e->kept |= 1 << class;
	return true;
}
