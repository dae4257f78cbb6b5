/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that look without waiting.  MPI_Wait and MPI_Test, MPI_Probe and MPI_Iprobe look the same from below: a progress call that finds
 * nothing.  Where cores are short, who waits is put to sleep (cmpi_progress), and who has work in between must not be; how long that takes
 * tells only if it is much.  So the calls that come back at once are taken from Open MPI's tables, as its own pml/v does, and say that this
 * process is at work before they do what they did.  Their functions are called by nobody who waits: Open MPI's own waits look at the requests.
 *
 * Left to the clock: MPI_Request_get_status and MPI_Win_test, which are in no table.
 */
#include "btl_qnix/common.h"

#ifdef QNIX_HAVE_MTL

#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

static unsigned users; /* bit per component */
static struct cmpi *nic;
static mca_pml_base_module_t pml; /* as they were */
static ompi_request_fns_t request;

/* Open MPI yields by itself after each look if it was told to. */
static void looks(void)
{
	if (opal_progress_yield_when_idle)
		cmpi_at_work(nic);
	else
		cmpi_only_looks(nic);
}

static int iprobe(int from, int tag, struct ompi_communicator_t *comm, int *found, ompi_status_public_t *status)
{
	looks();
	return pml.pml_iprobe(from, tag, comm, found, status);
}

static int improbe(int from, int tag, struct ompi_communicator_t *comm, int *found, struct ompi_message_t **message,
                   ompi_status_public_t *status)
{
	looks();
	return pml.pml_improbe(from, tag, comm, found, message, status);
}

static int test(ompi_request_t **one, int *done, ompi_status_public_t *status)
{
	looks();
	return request.req_test(one, done, status);
}

static int test_any(size_t n, ompi_request_t **all, int *which, int *done, ompi_status_public_t *status)
{
	looks();
	return request.req_test_any(n, all, which, done, status);
}

static int test_all(size_t n, ompi_request_t **all, int *done, ompi_status_public_t *statuses)
{
	looks();
	return request.req_test_all(n, all, done, statuses);
}

static int test_some(size_t n, ompi_request_t **all, int *ndone, int *which, ompi_status_public_t *statuses)
{
	looks();
	return request.req_test_some(n, all, ndone, which, statuses);
}

void qnix_poll_enter(enum qnix_component who, struct cmpi *cmpi)
{
	users |= 1u << who;
	if (nic)
		return;
	nic = cmpi;
	pml = mca_pml;
	request = ompi_request_functions;
	mca_pml.pml_iprobe = iprobe;
	mca_pml.pml_improbe = improbe;
	ompi_request_functions.req_test = test;
	ompi_request_functions.req_test_any = test_any;
	ompi_request_functions.req_test_all = test_all;
	ompi_request_functions.req_test_some = test_some;
}

/* Gives back what is still ours: somebody who took them later may have put others there. */
#define GIVE_BACK(table, was, function, ours) ((table).function = (table).function == (ours) ? (was).function : (table).function)

void qnix_poll_leave(enum qnix_component who)
{
	users &= ~(1u << who);
	if (users || !nic)
		return;
	GIVE_BACK(mca_pml, pml, pml_iprobe, iprobe);
	GIVE_BACK(mca_pml, pml, pml_improbe, improbe);
	GIVE_BACK(ompi_request_functions, request, req_test, test);
	GIVE_BACK(ompi_request_functions, request, req_test_any, test_any);
	GIVE_BACK(ompi_request_functions, request, req_test_all, test_all);
	GIVE_BACK(ompi_request_functions, request, req_test_some, test_some);
	nic = NULL;
}

#else

void qnix_poll_enter(enum qnix_component who, struct cmpi *cmpi)
{
	(void)who, (void)cmpi;
}

void qnix_poll_leave(enum qnix_component who)
{
	(void)who;
}

#endif
