# SPDX-License-Identifier: BSD-3-Clause
#
# What is missing is collected, so that one run of configure names all of it.

# QNIX_MISSING(WHAT, DEBIAN-PACKAGES, WHAT ELSE HELPS)
AC_DEFUN([QNIX_MISSING], [
  qnix_missing="$qnix_missing
  * $1
    Debian and Ubuntu: apt-get install $2
    or: $3"
  qnix_missing_packages="$qnix_missing_packages $2"
])

# QNIX_REPORT_MISSING: ends configure if anything was missing.
AC_DEFUN([QNIX_REPORT_MISSING], [
  AS_IF([test -n "$qnix_missing"],
    [AC_MSG_ERROR([qnix cannot be built yet. Missing:
$qnix_missing

All at once: apt-get install$qnix_missing_packages
(dev/setup does this and the rest.)])])
])
