/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the user is told.  Every message is one line that stands alone; the ones that matter are shown with the
 * explanation of help-mpi-btl-qnix.txt around them.  That file lies beside the component, or where `make install` puts
 * it, or is missing (a component copied by hand): then the line alone must do.
 */
#include "btl_qnix/btl_qnix.h"
#ifdef QNIX_HAVE_MTL
#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/pml/base/base.h"
#endif
#ifdef QNIX_HAVE_COLL
#include "ompi/mca/coll/base/base.h"
#endif

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opal/mca/installdirs/installdirs.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"

#define HELP_FILE "help-mpi-btl-qnix.txt"

enum { TELL_MS = 1000 }; /* for mpirun to read a line before this process ends, at most */

static bool have_help;

static bool help_in(const char *format, const char *dir)
{
	char path[PATH_MAX];
	size_t len = snprintf(path, sizeof(path), format, dir);

	if (len + sizeof("/" HELP_FILE) > sizeof(path))
		return false;
	memcpy(path + len, "/" HELP_FILE, sizeof("/" HELP_FILE));
	if (access(path, R_OK) != 0)
		return false;
	path[len] = 0;
	return opal_show_help_add_dir(path) == OPAL_SUCCESS;
}

/*
 * Another file of the project's in this process than the one that this code came from?  Such copies do not know of each other.  Told by one process,
 * and without an explanation around it, as in qnix_tell_loss: so early mpirun may find rubbish, too.
 */
static int is_copy(struct dl_phdr_info *object, size_t size, void *own)
{
	static const char *const files[] = { "mca_btl_qnix.so", "mca_mtl_qnix.so", "mca_pml_qnix.so", "mca_coll_qnix.so" };
	const char *slash = strrchr(object->dlpi_name, '/');
	const Dl_info *self = own;

	(void)size;
	for (int i = 0; slash && i < 4; i++)
		if (!strcmp(slash + 1, files[i]) && object->dlpi_addr != (uintptr_t)self->dli_fbase) {
			qnix_tell(QNIX_BTL, 0, NULL,
			          "%s and %s are not the same file: make one a link to the other, or each has a NIC of its own, and collectives are left to "
			          "other components",
			          object->dlpi_name, self->dli_fname);
			return 1;
		}
	return 0;
}

/* Open MPI's own data directory is searched anyway. */
void qnix_tell_init(void)
{
	static bool done;
	char path[PATH_MAX];
	char *slash;
	Dl_info info;

	if (done)
		return;
	done = true;
	if (dladdr(&mca_btl_qnix_component, &info) && info.dli_fname &&
	    snprintf(path, sizeof(path), "%s", info.dli_fname) < (int)sizeof(path) && (slash = strrchr(path, '/'))) {
		*slash = 0;
		have_help = help_in("%s", path) || help_in("%s/../../share/openmpi", path);
	}
	if (!have_help && opal_install_dirs.opaldatadir)
		have_help = help_in("%s", opal_install_dirs.opaldatadir);
	if (OPAL_PROC_MY_NAME.vpid == 0 && dladdr(&mca_btl_qnix_component, &info) && info.dli_fname)
		dl_iterate_phdr(is_copy, &info);
}

static int stream_of(enum qnix_component who)
{
#ifdef QNIX_HAVE_MTL
	if (who == QNIX_MTL)
		return ompi_mtl_base_framework.framework_output;
	if (who == QNIX_PML)
		return ompi_pml_base_framework.framework_output;
#endif
#ifdef QNIX_HAVE_COLL
	if (who == QNIX_COLL)
		return ompi_coll_base_framework.framework_output;
#endif
	(void)who;
	return opal_btl_base_framework.framework_output;
}

static const char *const names[] = { [QNIX_BTL] = "btl:qnix", [QNIX_MTL] = "mtl:qnix", [QNIX_PML] = "pml:qnix", [QNIX_COLL] = "coll:qnix" };

void qnix_tell(enum qnix_component who, int level, const char *topic, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (level)
		opal_output_verbose(level, stream_of(who), "%s: %s", names[who], line);
	else if (have_help && topic)
		opal_show_help(HELP_FILE, topic, true, opal_process_info.nodename, line);
	else
		opal_output(0, "%s: on %s: %s", names[who], opal_process_info.nodename, line);
}

/* mpirun reads the ranks' stderr from a pipe, which it closes unread when a rank aborts. */
static void await_reader(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) != 0 || !S_ISFIFO(st.st_mode))
		return;
	for (int ms = 0, unread; ms < TELL_MS && ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0; ms++)
		poll(NULL, 0, 1);
}

/* Without an explanation around it: mpirun of Open MPI 4.1 may find rubbish in those that come while the job ends. */
void qnix_tell_loss(enum qnix_component who, const char *line)
{
	opal_output(0, "%s: on %s: %s (look for the first message of that process, or for its core file)", names[who],
	            opal_process_info.nodename, line);
	await_reader();
}
