/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The struct cmpi that the components of a process share.  They come and go one at a time, when MPI starts and ends.
 */
#include "cmpi/cmpi.h"
#include "cmpi/engine/engine.h"

enum { USERS = 4 };

struct user {
	bool used, am;
	cmpi_error_fn *error;
	void *arg;
};
static struct {
	struct cmpi *cmpi;
	uint32_t users;
	struct user user[USERS];
} shared;

static void lost(void *arg, struct cmpi_proc *peer, int err, const char *text)
{
	(void)arg;
	for (int i = 0; i < USERS; i++)
		if (shared.user[i].used && shared.user[i].error)
			shared.user[i].error(shared.user[i].arg, peer, err, text);
}

static struct user *find(bool used, const void *arg)
{
	for (int i = 0; i < USERS; i++)
		if (shared.user[i].used == used && (!used || shared.user[i].arg == arg))
			return &shared.user[i];
	return NULL;
}

static bool am_taken(void)
{
	bool taken = false;

	for (int i = 0; i < USERS; i++)
		taken |= shared.user[i].used && shared.user[i].am;
	return taken;
}

static int first(const struct cmpi_params *params)
{
	struct cmpi_params mine = *params;

	mine.am = NULL;
	mine.error = lost;
	mine.arg = NULL;
	return cmpi_open(&mine, &shared.cmpi);
}

int cmpi_share(const struct cmpi_params *params, struct cmpi **out)
{
	struct user *user = find(false, NULL);
	int err;

	if (!user || find(true, params->arg) || (params->am && am_taken()))
		return CMPI_PARAMETER;
	err = shared.users ? CMPI_OK : first(params);
	if (err != CMPI_OK)
		return err;
	if (params->threads)
		mpip_engine(shared.cmpi)->threads = true; /* the other component is not calling now */
	*user = (struct user){.used = true, .am = params->am != NULL, .error = params->error, .arg = params->arg};
	if (params->am)
		cmpi_set_am(shared.cmpi, params->am, params->arg);
	shared.users++;
	*out = shared.cmpi;
	return CMPI_OK;
}

int cmpi_unshare(struct cmpi *cmpi, void *arg)
{
	struct user *user = find(true, arg);

	if (!user || cmpi != shared.cmpi)
		return CMPI_PARAMETER;
	if (user->am)
		cmpi_set_am(cmpi, NULL, NULL);
	user->used = false;
	if (--shared.users)
		return CMPI_OK;
	shared.cmpi = NULL;
	return cmpi_close(cmpi);
}
