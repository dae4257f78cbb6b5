/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a process to itself.  btl/self carries them when it is in the list of BTLs, as it nearly always is; this
 * is for the lists without it.  The message is handed up inside the call that sends it.
 */
#include "btl_qnix/btl_qnix.h"

static void deliver(unsigned tag, void *data, size_t len)
{
	if (btl_qnix_tag_known(tag))
		btl_qnix_upcall(&btl_qnix.super, NULL, tag, data, len);
}

/* Returns an enum cmpi_err. */
int btl_qnix_loop_sendi(struct mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor, void *header,
                        size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
	char *copy = endpoint->proc ? malloc(header_size + payload_size + 1) : NULL;
	int err = CMPI_OK;

	if (!copy)
		return endpoint->proc ? CMPI_RESOURCE : CMPI_UNREACHABLE;
	memcpy(copy, header, header_size);
	if (payload_size && btl_qnix_pack(convertor, copy + header_size, payload_size) != (ssize_t)payload_size)
		err = CMPI_PARAMETER;
	else
		deliver(tag, copy, header_size + payload_size);
	free(copy);
	return err;
}

bool btl_qnix_loop_alloc(struct btl_qnix_frag *frag, size_t size)
{
	void *copy = malloc(size + 1);

	if (!copy)
		return false;
	frag->place = BTL_QNIX_HEAP;
	frag->segment.seg_addr.pval = copy;
	return true;
}

/* Whoever receives may answer, and come back to this descriptor's owner, from inside: it is empty by then. */
void btl_qnix_loop_send(struct btl_qnix_frag *frag)
{
	void *data = frag->segment.seg_addr.pval;

	frag->place = BTL_QNIX_NOWHERE;
	deliver(frag->tag, data, frag->segment.seg_len);
	free(data);
}

void btl_qnix_loop_free(struct btl_qnix_frag *frag)
{
	free(frag->segment.seg_addr.pval);
}
