# SPDX-License-Identifier: BSD-3-Clause
#
# libfabric: the link between hosts. Nothing uses it yet, so nothing is looked
# for; the option exists so that scripts that pass it keep working.

AC_DEFUN([QNIX_WITH_LIBFABRIC], [
  AC_ARG_WITH([libfabric],
    [AS_HELP_STRING([--with-libfabric=DIR],
      [reserved: joins with the link between hosts; not used by this version])],
    [], [with_libfabric=no])
  AS_IF([test "x$with_libfabric" != xno],
    [AC_MSG_NOTICE([--with-libfabric joins with the link between hosts; this version does not use it])])
])
