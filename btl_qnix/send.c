/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages out.  Open MPI either sends at once (sendi) or takes a descriptor (alloc, prepare_src), writes a header into
 * it and sends that; either way the bytes are written once, to the place in the NIC's memory that they leave from, and
 * a message is out of our hands when it is sent: there is nothing to complete later.  The exception, a descriptor that
 * C-MPI had no place for, is frag.c's.  No protocol here: ob1 chooses it, by the limits in component.c.
 */
#include "btl_qnix/btl_qnix.h"

ssize_t btl_qnix_pack(struct opal_convertor_t *convertor, void *to, size_t size)
{
	struct iovec iov = { .iov_base = to, .iov_len = size };
	uint32_t count = 1;

	return opal_convertor_pack(convertor, &iov, &count, &size) < 0 ? -1 : (ssize_t)size;
}

/* Data in pieces: packed straight into its place. */
static __attribute__((noinline)) int send_packed(struct mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor, const void *header,
                       size_t header_size, size_t payload_size, unsigned tag)
{
	struct cmpi_am am;
	int err = cmpi_am_begin(endpoint->am, header_size + payload_size, &am);

	if (OPAL_UNLIKELY(err != CMPI_OK))
		return err;
	memcpy(am.data, header, header_size);
	if (OPAL_UNLIKELY(btl_qnix_pack(convertor, (char *)am.data + header_size, payload_size) != (ssize_t)payload_size)) {
		cmpi_am_abort(&am);
		return CMPI_PARAMETER;
	}
	return cmpi_am_commit(&am, tag, header_size + payload_size);
}

/*
 * Not sent.  ob1 takes a descriptor that comes with the answer, and what waits in it is frag.c's.  Without one it keeps the
 * message in its own list, and once a message there was in vain, ob1's progress function stays with Open MPI for good.  A
 * control message, which ob1 of 5.0 sends this way, it would not even try again before something else calls back.
 */
static __attribute__((noinline)) int refused(struct mca_btl_base_endpoint_t *endpoint, size_t size, const uint32_t *flags,
                                             mca_btl_base_descriptor_t **const *descriptor, int err)
{
	if (*descriptor)
		**descriptor = btl_qnix_alloc(NULL, endpoint, MCA_BTL_NO_ORDER, size, *flags);
	return btl_qnix_failed(endpoint, err);
}

int btl_qnix_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor,
                   void *header, size_t header_size, size_t payload_size, uint8_t order, uint32_t flags,
                   mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
	size_t size = header_size + payload_size;
	void *data = NULL;
	int err;

	(void)btl, (void)order; /* nothing overtakes */
	if (OPAL_UNLIKELY(!endpoint->am)) {
		err = btl_qnix_loop_sendi(endpoint, convertor, header, header_size, payload_size, tag);
	} else if (payload_size && OPAL_UNLIKELY(opal_convertor_need_buffers(convertor))) {
		err = send_packed(endpoint, convertor, header, header_size, payload_size, tag);
	} else {
		if (payload_size) /* without payload ob1 passes a convertor that was never set up */
			opal_convertor_get_current_pointer(convertor, &data);
		err = cmpi_am_send(endpoint->am, tag, header, header_size, data, payload_size);
	}
	if (OPAL_LIKELY(err == CMPI_OK))
		return OPAL_SUCCESS;
	return refused(endpoint, size, &flags, &descriptor, err); /* by address: they stay where the caller put them */
}

static bool find_place(struct btl_qnix_frag *frag, struct mca_btl_base_endpoint_t *endpoint, size_t size)
{
	int err;

	if (OPAL_UNLIKELY(!endpoint->am))
		return endpoint->proc && btl_qnix_loop_alloc(frag, size);
	err = cmpi_am_begin(endpoint->am, size, &frag->am);
	if (OPAL_LIKELY(err == CMPI_OK)) {
		frag->place = BTL_QNIX_NIC;
		frag->segment.seg_addr.pval = frag->am.data;
		return true;
	}
	if (err != CMPI_AGAIN || size > BTL_QNIX_SMALL)
		return false;
	frag->place = BTL_QNIX_OWN;
	frag->segment.seg_addr.pval = frag->own;
	return true;
}

mca_btl_base_descriptor_t *btl_qnix_alloc(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                          uint8_t order, size_t size, uint32_t flags)
{
	struct btl_qnix_frag *frag = btl_qnix_frag_take();

	(void)btl;
	if (OPAL_UNLIKELY(!frag))
		return NULL;
	if (OPAL_UNLIKELY(!find_place(frag, endpoint, size))) {
		btl_qnix_frag_give(frag);
		return NULL;
	}
	frag->segment.seg_len = size;
	frag->base.order = order;
	frag->base.des_flags = flags;
	return &frag->base;
}

/* Data up to what one message holds; *size says how much it was.  The position of the convertor is ob1's to keep. */
mca_btl_base_descriptor_t *btl_qnix_prepare_src(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                                struct opal_convertor_t *convertor, uint8_t order, size_t reserve,
                                                size_t *size, uint32_t flags)
{
	size_t most = btl->btl_max_send_size - reserve, want = *size < most ? *size : most;
	mca_btl_base_descriptor_t *des = btl_qnix_alloc(btl, endpoint, order, reserve + want, flags);
	ssize_t got = want;
	void *to, *from;

	if (OPAL_UNLIKELY(!des))
		return NULL;
	to = (char *)des->des_segments->seg_addr.pval + reserve;
	if (opal_convertor_need_buffers(convertor)) {
		got = btl_qnix_pack(convertor, to, want);
	} else {
		opal_convertor_get_current_pointer(convertor, &from);
		memcpy(to, from, want);
	}
	if (OPAL_UNLIKELY(got < 0)) {
		btl_qnix_free(btl, des);
		return NULL;
	}
	des->des_segments->seg_len = reserve + got;
	*size = got;
	return des;
}

/* 1: sent and done with.  0: waits in frag.c, its callback is due.  Negative: not sent, still the caller's to free. */
int btl_qnix_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                  mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
	struct btl_qnix_frag *frag = (struct btl_qnix_frag *)descriptor;
	uint32_t flags = descriptor->des_flags;
	int err = CMPI_PARAMETER;

	frag->endpoint = endpoint;
	frag->tag = tag;
	if (OPAL_LIKELY(frag->place == BTL_QNIX_NIC)) {
		frag->place = BTL_QNIX_NOWHERE;
		err = cmpi_am_commit(&frag->am, tag, frag->segment.seg_len);
	} else if (frag->place == BTL_QNIX_OWN) {
		err = btl_qnix_frag_send_own(frag);
		if (err == CMPI_AGAIN) {
			btl_qnix_frag_wait(frag);
			return OPAL_SUCCESS;
		}
	} else if (frag->place == BTL_QNIX_HEAP) {
		btl_qnix_loop_send(frag);
		err = CMPI_OK;
	}
	if (OPAL_UNLIKELY(err != CMPI_OK))
		return btl_qnix_failed(endpoint, err);
	if (flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK)
		descriptor->des_cbfunc(btl, endpoint, descriptor, OPAL_SUCCESS);
	if (OPAL_LIKELY(flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP))
		btl_qnix_frag_give(frag);
	return 1;
}

int btl_qnix_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
	struct btl_qnix_frag *frag = (struct btl_qnix_frag *)descriptor;

	(void)btl;
	if (frag->place == BTL_QNIX_NIC)
		cmpi_am_abort(&frag->am);
	else if (frag->place == BTL_QNIX_HEAP)
		btl_qnix_loop_free(frag);
	btl_qnix_frag_give(frag);
	return OPAL_SUCCESS;
}
