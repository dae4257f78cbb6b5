/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that look without waiting.  MPI_Wait and MPI_Test, MPI_Probe and MPI_Iprobe look the same from below: a progress call that finds
 * nothing.  Where cores are short, who waits is put to sleep (cmpi_progress), and who has work in between must not be; how long that takes
 * tells only if it is much.  So the calls that come back at once are taken from Open MPI's tables, as its own pml/v does, and say so for as long
 * as they last.  Open MPI's own waits do not call them, but look at the requests; part/persist of 5.0 tests in its progress function, which
 * makes no difference to the waits around it.
 *
 * Left to the clock is what is in no table: MPI_Request_get_status, MPI_Win_test, MPI_Parrived.
 */
#include "btl_qnix/common.h"

#ifdef QNIX_HAVE_MTL

#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

/* Looks for each time that the core is offered; a yield takes more than most programs do in between.  Open MPI yields itself if it is told to. */
enum { LOOKS = 4, LOOKS_YIELDING = 32 };

static unsigned users; /* bit per component */
static struct cmpi *nic;
static mca_pml_base_module_t pml; /* as they were */
static ompi_request_fns_t request;

static void begin(void)
{
	cmpi_only_looks(nic, opal_progress_yield_when_idle ? LOOKS_YIELDING : LOOKS);
}

static int end(int rc)
{
	cmpi_only_looks(nic, 0);
	return rc;
}

static int iprobe(int from, int tag, struct ompi_communicator_t *comm, int *found, ompi_status_public_t *status)
{
	begin();
	return end(pml.pml_iprobe(from, tag, comm, found, status));
}

static int improbe(int from, int tag, struct ompi_communicator_t *comm, int *found, struct ompi_message_t **message,
                   ompi_status_public_t *status)
{
	begin();
	return end(pml.pml_improbe(from, tag, comm, found, message, status));
}

static int test(ompi_request_t **one, int *done, ompi_status_public_t *status)
{
	begin();
	return end(request.req_test(one, done, status));
}

static int test_any(size_t n, ompi_request_t **all, int *which, int *done, ompi_status_public_t *status)
{
	begin();
	return end(request.req_test_any(n, all, which, done, status));
}

static int test_all(size_t n, ompi_request_t **all, int *done, ompi_status_public_t *statuses)
{
	begin();
	return end(request.req_test_all(n, all, done, statuses));
}

static int test_some(size_t n, ompi_request_t **all, int *ndone, int *which, ompi_status_public_t *statuses)
{
	begin();
	return end(request.req_test_some(n, all, ndone, which, statuses));
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

/* A table that is another one's by now, as at the end of pml/monitoring, stays as it is.  Nobody has kept what was here: all who wrap came before. */
void qnix_poll_leave(enum qnix_component who)
{
	users &= ~(1u << who);
	if (users || !nic)
		return;
	if (mca_pml.pml_iprobe == iprobe) {
		mca_pml.pml_iprobe = pml.pml_iprobe;
		mca_pml.pml_improbe = pml.pml_improbe;
	}
	if (ompi_request_functions.req_test == test) {
		ompi_request_functions.req_test = request.req_test;
		ompi_request_functions.req_test_any = request.req_test_any;
		ompi_request_functions.req_test_all = request.req_test_all;
		ompi_request_functions.req_test_some = request.req_test_some;
	}
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
