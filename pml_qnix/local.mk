# SPDX-License-Identifier: BSD-3-Clause
#
# The PML: a part of the components' shared object, see btl_qnix/local.mk. It wants what the MTL wants.

PML_FILES = \
	pml_qnix/component.c \
	pml_qnix/pml_qnix.h \
	pml_qnix/recv.c \
	pml_qnix/request.c \
	pml_qnix/send.c

if HAVE_MTL
btl_qnix_mca_btl_qnix_la_SOURCES += $(PML_FILES)
PML_NAMES = mca_pml_qnix.so
else
EXTRA_DIST += $(PML_FILES)
PML_NAMES =
endif
