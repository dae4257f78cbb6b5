/* SPDX-License-Identifier: BSD-3-Clause */
/* The data of a broadcast: contiguous data where it is, other data packed before and unpacked after. */
#include "coll_qnix/coll_qnix.h"

#include "opal/datatype/opal_convertor.h"

static int convert(const struct coll_qnix_data *data, bool pack)
{
	struct iovec iov = { .iov_base = data->packed, .iov_len = data->len };
	size_t len = data->len;
	uint32_t n = 1;
	opal_convertor_t c;
	int rc;

	OBJ_CONSTRUCT(&c, opal_convertor_t);
	if (pack)
		rc = opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &data->type->super, data->count, data->user, 0, &c);
	else
		rc = opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &data->type->super, data->count, data->user, 0, &c);
	if (rc == OPAL_SUCCESS)
		rc = (pack ? opal_convertor_pack(&c, &iov, &n, &len) : opal_convertor_unpack(&c, &iov, &n, &len)) < 0 ? OMPI_ERROR : OMPI_SUCCESS;
	OBJ_DESTRUCT(&c);
	return rc;
}

bool coll_qnix_data_pack(struct coll_qnix_data *data, bool sends)
{
	data->packed = malloc(data->len);
	if (!data->packed)
		return false;
	if (!sends || convert(data, true) == OMPI_SUCCESS)
		return true;
	free(data->packed);
	return false;
}

int coll_qnix_data_close(struct coll_qnix_data *data, bool sends, bool good)
{
	int rc = OMPI_SUCCESS;

	if (OPAL_LIKELY(!data->packed))
		return rc;
	if (good && !sends)
		rc = convert(data, false);
	free(data->packed);
	data->packed = NULL;
	return rc;
}
