# SPDX-License-Identifier: BSD-3-Clause
#
# The MTL: a part of the components' shared object, see btl_qnix/local.mk.

MTL_FILES = \
	mtl_qnix/component.c \
	mtl_qnix/mtl_qnix.h \
	mtl_qnix/recv.c \
	mtl_qnix/send.c

if HAVE_MTL
btl_qnix_mca_btl_qnix_la_SOURCES += $(MTL_FILES)
btl_qnix_mca_btl_qnix_la_CPPFLAGS += -DQNIX_HAVE_MTL=1
btl_qnix_mca_btl_qnix_la_LIBADD += $(OMPI_MTL_LIBS)
MTL_NAMES = mca_mtl_qnix.so
else
EXTRA_DIST += $(MTL_FILES)
MTL_NAMES =
endif
