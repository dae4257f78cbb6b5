/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names: of devices as programs of other providers spell them, of hosts, of parameters; and what VipQueryNic says.
 */
#include "tests/unit/vipl/one.h"

static void device_names(void)
{
	static const char *const default_names[] = { "", "/dev/via_lo", "/dev/via_eth0", "/etc/via_lo", "/dev/clanvi0" };
	VIP_NIC_HANDLE nic, other;
	VIP_NIC_ATTRIBUTES attr;
	VIP_UINT64 card, same, elsewhere;
	char longest[200];

	one_device();
	VIP(VIP_SUCCESS, VipxParameterSet("device", "unit-names", "test"));
	VIP(VIP_SUCCESS, VipOpenNic(NULL, &nic));
	VIP(VIP_SUCCESS, VipQueryNic(nic, &attr));
	CHECK_STR(attr.Name, "unit-names");
	VIP(VIP_SUCCESS, VipxCardId(nic, &card));
	for (size_t i = 0; i < sizeof default_names / sizeof *default_names; i++) {
		VIP(VIP_SUCCESS, VipOpenNic(default_names[i], &other));
		VIP(VIP_SUCCESS, VipxCardId(other, &same));
		CHECK(card == same);
		VIP(VIP_SUCCESS, VipCloseNic(other));
	}
	VIP(VIP_SUCCESS, VipOpenNic("unit-names", &other));
	VIP(VIP_SUCCESS, VipxCardId(other, &same));
	CHECK(card == same);
	VIP(VIP_SUCCESS, VipCloseNic(other));
	VIP(VIP_SUCCESS, VipOpenNic("unit-other", &other));
	VIP(VIP_SUCCESS, VipxCardId(other, &elsewhere));
	CHECK(card != elsewhere);
	VIP(VIP_SUCCESS, VipCloseNic(other));
	VIP(VIP_SUCCESS, VipCloseNic(nic));
	memset(longest, 'x', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	other = &attr;
	CHECK(VipOpenNic(longest, &other) != VIP_SUCCESS);
	CHECK(other == &attr && VipxLastError()[0]);
}

static void attributes(void)
{
	struct one o;
	VIP_NIC_ATTRIBUTES again;

	one_open(&o);
	CHECK_EQ(o.attr.NicAddressLen, 6);
	CHECK(o.attr.ThreadSafe);
	CHECK(o.attr.MaxTransferSize >= 65472);
	CHECK(o.attr.MaxSegmentsPerDesc >= 252);
	CHECK(o.attr.MaxDescriptorsPerQueue >= 1024);
	CHECK(o.attr.MaxVI >= 1024);
	CHECK(o.attr.MaxCQ >= 1024);
	CHECK(o.attr.MaxCQEntries >= 1024);
	CHECK(o.attr.MaxRegisterRegions >= 1024);
	CHECK(o.attr.MaxRegisterBytes >= 1ul << 32 && o.attr.MaxRegisterBlockBytes >= 1ul << 32);
	CHECK(o.attr.MaxPtags >= 1000);
	CHECK(o.attr.MaxDiscriminatorLen >= 16);
	CHECK(o.attr.NativeMTU > 0);
	CHECK_EQ(o.attr.ReliabilityLevelSupport,
	         VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION);
	CHECK_EQ(o.attr.RDMAReadSupport & ~o.attr.ReliabilityLevelSupport, 0);
	VIP(VIP_SUCCESS, VipQueryNic(o.nic, &again));
	CHECK(!memcmp(&again, &o.attr, sizeof again)); /* static from VipOpenNic on */
	one_close(&o);
}

static void management(void)
{
	struct one o;
	union address place;
	VIP_NET_ADDRESS *places[1] = { &place.a };
	VIP_AUTODISCOVERY_LIST list = { 0, places, 1 };

	one_open(&o);
	VIP(VIP_SUCCESS, VipQuerySystemManagementInfo(o.nic, VIP_SMI_AUTODISCOVERY, &list));
	CHECK_EQ(list.NumAdAddrs, 1);
	CHECK(place.a.HostAddressLen == 6 && !memcmp(place.room + 4, o.attr.LocalNicAddress, 6));
	list.NumAdAddrs = 0;
	VIP(VIP_ERROR_RESOURCE, VipQuerySystemManagementInfo(o.nic, VIP_SMI_AUTODISCOVERY, &list));
	CHECK_EQ(list.NumAdAddrs, 1);
	list.ADAddrArray = NULL;
	VIP(VIP_ERROR_RESOURCE, VipQuerySystemManagementInfo(o.nic, VIP_SMI_AUTODISCOVERY, &list));
	VIP(VIP_INVALID_PARAMETER, VipQuerySystemManagementInfo(o.nic, VIP_SMI_AUTODISCOVERY, NULL));
	VIP(VIP_ERROR_NOT_SUPPORTED, VipQuerySystemManagementInfo(o.nic, 99, &list));
	one_close(&o);
}

static void check_name(struct one *o, const char *name, bool known)
{
	unsigned char raw[80];
	VIP_NET_ADDRESS *address = (VIP_NET_ADDRESS *)(void *)(raw + 1); /* a char array, at any address */

	memset(raw, 0xEE, sizeof raw);
	memset(raw + 1, 0, 4); /* one client passes zero lengths */
	if (!known) {
		VIP(VIP_ERROR_NAMESERVICE, VipNSGetHostByName(o->nic, (char *)(uintptr_t)name, address, 0));
		return;
	}
	VIP(VIP_SUCCESS, VipNSGetHostByName(o->nic, (char *)(uintptr_t)name, address, 0));
	CHECK(!memcmp(raw + 5, o->attr.LocalNicAddress, 6));
	CHECK_EQ(raw[0], 0xEE);
	CHECK_EQ(raw[11], 0xEE); /* exactly NicAddressLen bytes */
	memset(raw + 1, 0xFF, 4); /* whatever the lengths were */
	VIP(VIP_SUCCESS, VipNSGetHostByName(o->nic, (char *)(uintptr_t)name, address, 0));
	CHECK(!memcmp(raw + 5, o->attr.LocalNicAddress, 6));
	CHECK_EQ(raw[11], 0xEE);
	VIP(VIP_ERROR_NAMESERVICE, VipNSGetHostByName(o->nic, (char *)(uintptr_t)name, address, 1));
}

static void host_names(void)
{
	struct one o;
	char host[256] = "", name[256] = "", upper[256];
	union address address;
	VIP_ULONG length;

	gethostname(host, sizeof host - 1);
	one_open(&o);
	one_address(&o, "", &address);
	length = sizeof name;
	VIP(VIP_ERROR_NAMESERVICE, VipNSGetHostByName(o.nic, host, &address.a, 0)); /* before VipNSInit */
	VIP(VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(o.nic, &address.a, name, &length));
	VIP(VIP_ERROR_NAMESERVICE, VipNSShutdown(o.nic));
	VIP(VIP_SUCCESS, VipNSInit(o.nic, NULL));
	check_name(&o, host, true);
	check_name(&o, "localhost", true);
	check_name(&o, "no-such-host.example", false);
	check_name(&o, "", false);
	for (size_t i = 0; i <= strlen(host); i++)
		upper[i] = (char)(host[i] >= 'a' && host[i] <= 'z' ? host[i] - 32 : host[i]);
	check_name(&o, upper, true);
	host[strcspn(host, ".")] = '\0';
	check_name(&o, host, true);
	VIP(VIP_INVALID_PARAMETER, VipNSGetHostByName(o.nic, NULL, &address.a, 0));
	VIP(VIP_INVALID_PARAMETER, VipNSGetHostByName(o.nic, host, NULL, 0));

	gethostname(host, sizeof host - 1);
	VIP(VIP_SUCCESS, VipNSGetHostByAddr(o.nic, &address.a, name, &length));
	CHECK_STR(name, host);
	CHECK_EQ(length, strlen(host) + 1);
	length = 2;
	VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(o.nic, &address.a, name, &length));
	CHECK_EQ(length, strlen(host) + 1); /* what is needed */
	VIP(VIP_SUCCESS, VipNSGetHostByAddr(o.nic, &address.a, name, &length));
	address.a.HostAddress[0] ^= 1;
	VIP(VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(o.nic, &address.a, name, &length));
	address.a.HostAddressLen = 4;
	VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(o.nic, &address.a, name, &length));
	VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(o.nic, NULL, name, &length));
	VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(o.nic, &address.a, NULL, &length));
	VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(o.nic, &address.a, name, NULL));
	VIP(VIP_SUCCESS, VipNSShutdown(o.nic));
	check_name(&o, "localhost", false);
	one_close(&o);
}

static void parameters(void)
{
	const struct vipx_parameter *p, *found;
	VIP_ULONG n = 0;

	for (; (p = VipxParameterAt(n)); n++) {
		CHECK(p->name[0] && p->help[0] && p->type[0] && p->fits[0] && p->value && p->source[0]);
		CHECK(p->level >= 1 && p->level <= 9);
		found = VipxParameterFind(p->name);
		CHECK(found && !strcmp(found->name, p->name));
		CHECK_STR(VipxParameterString(p->name), p->value);
	}
	CHECK(n > 5);
	CHECK(!VipxParameterAt(~(VIP_ULONG)0));
	CHECK(!VipxParameterFind("no_such") && !VipxParameterFind(NULL));
	CHECK_EQ(VipxParameterInt("no_such"), 0);
	CHECK_STR(VipxParameterString("no_such"), "");
	CHECK_STR(VipxParameterString(NULL), "");
	VIP(VIP_NO_MATCH, VipxParameterSet("no_such", "1", "test"));
	VIP(VIP_INVALID_PARAMETER, VipxParameterSet("vipl_strict", "perhaps", "test"));
	VIP(VIP_INVALID_PARAMETER, VipxParameterSet("vipl_strict", NULL, "test"));
	VIP(VIP_INVALID_PARAMETER, VipxParameterSet(NULL, "1", "test"));
	VIP(VIP_SUCCESS, VipxParameterSet("vipl_strict", "true", "a test"));
	CHECK_EQ(VipxParameterInt("vipl_strict"), 1);
	CHECK_STR(VipxParameterFind("vipl_strict")->source, "a test");
	VIP(VIP_SUCCESS, VipxParameterSet("vipl_strict", "false", NULL));
	CHECK_EQ(VipxParameterInt("vipl_strict"), 0);
}

int main(void)
{
	CASE(device_names);
	CASE(attributes);
	CASE(management);
	CASE(host_names);
	CASE(parameters);
	return check_done();
}
