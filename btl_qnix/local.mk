# SPDX-License-Identifier: BSD-3-Clause
#
# The components. Open MPI opens them so that their symbols are global: the shared
# object holds the whole stack, and exports only what Open MPI looks up.
#
# There is one object for all components, and a name for each (links): whichever
# names Open MPI opens, the loader maps it once, so the components share one NIC.

BTL_HELP = btl_qnix/help-mpi-btl-qnix.txt
EXTRA_DIST += $(BTL_HELP)

# For packages of Open MPI 5.0 that lack them; configure decides.
EXTRA_DIST += \
	btl_qnix/lacking/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
	btl_qnix/lacking/opal/mca/threads/pthreads/threads_pthreads_threads.h

if HAVE_OMPI

component_LTLIBRARIES = btl_qnix/mca_btl_qnix.la
btl_qnix_mca_btl_qnix_la_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
btl_qnix_mca_btl_qnix_la_LIBADD = cmpi/libcmpi.la vipl/libviplcore.la nicemu/libnicemu.la $(OMPI_LIBS)
btl_qnix_mca_btl_qnix_la_LDFLAGS = $(AM_LDFLAGS) $(WHOLE_LDFLAGS) -module -avoid-version \
	-export-symbols-regex '^mca_(btl|mtl|pml|coll)_qnix_component$$'
btl_qnix_mca_btl_qnix_la_SOURCES = \
	btl_qnix/atomic.c \
	btl_qnix/btl_qnix.h \
	btl_qnix/common.h \
	btl_qnix/compat.h \
	btl_qnix/component.c \
	btl_qnix/frag.c \
	btl_qnix/loop.c \
	btl_qnix/matched.c \
	btl_qnix/matched.h \
	btl_qnix/module.c \
	btl_qnix/mpool.c \
	btl_qnix/nic.c \
	btl_qnix/param.c \
	btl_qnix/poll.c \
	btl_qnix/pvar.c \
	btl_qnix/rdma.c \
	btl_qnix/recv.c \
	btl_qnix/send.c \
	btl_qnix/tell.c

include mtl_qnix/local.mk
include pml_qnix/local.mk
include coll_qnix/local.mk

ompidatadir = $(datadir)/openmpi
ompidata_DATA = $(BTL_HELP)

# ---- where the build and the user look for components: each beside its texts

COMPONENT_NAMES = mca_btl_qnix.so $(MTL_NAMES) $(PML_NAMES) $(COLL_NAMES)
COMPONENT_FILES = $(COMPONENT_NAMES:%=components/%) components/help-mpi-btl-qnix.txt

all-local: $(COMPONENT_FILES)

# Links, so their age says nothing: they only have to be there.
$(COMPONENT_NAMES:%=components/%): | btl_qnix/mca_btl_qnix.la
	$(AM_V_GEN)$(MKDIR_P) components && ln -sf ../btl_qnix/$(objdir)/mca_btl_qnix.so $@

# Behind the data, which the component counts as.
install-data-hook:
	cd '$(DESTDIR)$(componentdir)' && for name in $(MTL_NAMES) $(PML_NAMES) $(COLL_NAMES); do rm -f $$name && $(LN_S) mca_btl_qnix.so $$name; done

uninstall-hook:
	cd '$(DESTDIR)$(componentdir)' && rm -f $(MTL_NAMES) $(PML_NAMES) $(COLL_NAMES)

components/help-mpi-btl-qnix.txt: $(BTL_HELP)
	$(AM_V_GEN)$(MKDIR_P) components && cp $(top_srcdir)/$(BTL_HELP) $@ && chmod u+w $@

CLEANFILES += $(COMPONENT_FILES)

# Open MPI searches this directory without being told, so this needs no root.
USER_COMPONENT_DIR = $(HOME)/.openmpi/components

install-user-component: btl_qnix/mca_btl_qnix.la $(COMPONENT_FILES)
	$(MKDIR_P) '$(DESTDIR)$(USER_COMPONENT_DIR)'
	$(INSTALL) components/mca_btl_qnix.so '$(DESTDIR)$(USER_COMPONENT_DIR)'
	cd '$(DESTDIR)$(USER_COMPONENT_DIR)' && for name in $(MTL_NAMES) $(PML_NAMES) $(COLL_NAMES); do rm -f $$name && $(LN_S) mca_btl_qnix.so $$name; done
	$(INSTALL_DATA) components/help-mpi-btl-qnix.txt '$(DESTDIR)$(USER_COMPONENT_DIR)'
	@echo 'Now: mpirun --mca btl qnix,self -np 2 PROGRAM'

uninstall-user-component:
	cd '$(DESTDIR)$(USER_COMPONENT_DIR)' && rm -f $(COMPONENT_NAMES) help-mpi-btl-qnix.txt

else

install-user-component uninstall-user-component:
	@echo 'This build has no Open MPI component: configure ran with --without-ompi.'; exit 1

endif

.PHONY: install-user-component uninstall-user-component
