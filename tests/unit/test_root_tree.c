/* SPDX-License-Identifier: Apache-2.0 */
/* What of a host enters the guest's root, and what must not. */
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>

#include <cmocka.h>

#include "tests/unit/erofs_image.h"
#include "tests/unit/host_fixture.h"
#include "vmm/base/clock.h"

static const char plain_host[] =
	"mkdir -p usr/bin usr/lib/python3 usr/local/bin usr/share opt/tool etc/alternatives "
	"etc/ssl/certs etc/ssl/private root home/ada/.ssh var/lib/dpkg/info var/log proc/1 "
	"&& ln -s usr/bin bin && ln -s usr/lib lib "
	"&& printf program >usr/bin/tool && chmod 4755 usr/bin/tool "
	"&& printf group >usr/bin/write && chmod 2755 usr/bin/write "
	"&& printf import >usr/lib/python3/os.py && : >usr/lib/empty "
	"&& ln usr/bin/tool usr/bin/tool2 && ln -s ../bin/tool usr/share/link "
	"&& ln -s /etc/shadow usr/share/leak && printf cert >etc/ssl/certs/a.pem "
	"&& ln -s /usr/bin/tool etc/alternatives/editor && printf status >var/lib/dpkg/status "
	"&& printf '127.0.0.1 intranet' >etc/hosts && printf services >etc/services "
	"&& printf x >opt/tool/x";

static void what_is_listed_enters(void **state)
{
	struct host host;

	(void)state;
	host_start(&host, plain_host);
	host_build(&host);
	assert_int_equal(host_node(&host, "bin")->kind, TREE_SYMLINK);
	assert_string_equal(host.image.tree.pool + host_node(&host, "bin")->text, "usr/bin");
	assert_int_equal(host_node(&host, "usr/bin/tool")->size, 7);
	assert_int_equal(host_node(&host, "usr/lib/empty")->size, 0);
	assert_int_equal(host_node(&host, "opt/tool/x")->kind, TREE_FILE);
	assert_int_equal(host_node(&host, "etc/alternatives/editor")->kind, TREE_SYMLINK);
	assert_int_equal(host_node(&host, "etc/ssl/certs/a.pem")->kind, TREE_FILE);
	assert_int_equal(host_node(&host, "etc/services")->kind, TREE_FILE);
	assert_int_equal(host_node(&host, "var/lib/dpkg/status")->kind, TREE_FILE);
	/* What the guest mounts over, and what is made for it. */
	for (unsigned int i = 0; i < host_list_count; i++) {
		if (host_list[i].kind == PLAN_DIRECTORY)
			assert_int_equal(host_node(&host, host_list[i].path + 1)->kind,
					 TREE_DIRECTORY);
		if (host_list[i].kind == PLAN_FILE)
			assert_int_equal(host_node(&host, host_list[i].path + 1)->kind, TREE_MADE);
	}
	assert_int_equal(host_node(&host, "tmp")->mode, 01777);
	assert_int_equal(host_node(&host, "proc")->child_count, 0);
	assert_false(host_device_has(&host, "intranet"));
	assert_true(host_device_has(&host, "import"));
	host_stop(&host);
}

static void set_id_bits_are_dropped(void **state)
{
	struct host host;

	(void)state;
	host_start(&host, plain_host);
	host_run(&host, "mkdir -p usr/share/sticky && chmod 1777 usr/share/sticky && "
			"mkdir usr/share/setgid && chmod 2755 usr/share/setgid");
	host_build(&host);
	for (uint32_t i = 0; i < host.image.tree.node_count; i++)
		assert_int_equal(host.image.tree.nodes[i].mode & (S_ISUID | S_ISGID), 0);
	assert_int_equal(host_node(&host, "usr/bin/tool")->mode, 0755);
	assert_int_equal(host_node(&host, "usr/share/sticky")->mode, 01777);
	host_stop(&host);
}

/* Each planted where a host has secrets, and in the forms of files that it must not pass. */
static void secrets_stay_outside(void **state)
{
	static const char plant[] =
		"printf SECRET >etc/shadow && chmod 640 etc/shadow && printf SECRET "
		">etc/secret.conf "
		"&& printf SECRET >etc/npmrc && printf SECRET >etc/environment "
		"&& mkdir etc/profile.d && printf SECRET >etc/profile.d/proxy.sh "
		"&& printf SECRET >etc/profile && printf SECRET >etc/bash.bashrc "
		"&& printf SECRET >etc/passwd && printf SECRET >etc/ssl/private/key "
		"&& printf SECRET >etc/ssl/other && mkdir etc/apt && printf SECRET "
		">etc/apt/auth.conf "
		"&& printf SECRET >root/file && printf SECRET >home/ada/.ssh/id "
		"&& printf SECRET >home/ada/file && printf SECRET >var/log/syslog "
		"&& printf SECRET >var/lib/other && printf SECRET >proc/1/environ "
		"&& printf SECRET >usr/local/key && chmod 600 usr/local/key "
		"&& printf SECRET >usr/local/group && chmod 640 usr/local/group "
		"&& printf SECRET >opt/tool/key && chmod 600 opt/tool/key "
		"&& mkdir -p opt/private/deep && printf SECRET >opt/private/deep/f "
		"&& chmod 700 opt/private "
		"&& mkdir usr/local/list && printf SECRET >usr/local/list/f && chmod 711 "
		"usr/local/list "
		"&& mkdir usr/local/search && printf SECRET >usr/local/search/f "
		"&& chmod 754 usr/local/search && ln -s /etc/shadow opt/tool/shadow "
		"&& printf SECRET >swapfile && mkdir boot && printf SECRET >boot/f";
	struct host host;

	(void)state;
	host_start(&host, plain_host);
	host_run(&host, plant);
	host_build(&host);
	assert_false(host_device_has(&host, "SECRET"));
	assert_int_equal(host_find(&host, "usr/local/key"), 0);
	assert_int_equal(host_find(&host, "opt/private"), 0);
	assert_int_equal(host_find(&host, "usr/local/list"), 0);
	assert_int_equal(host_find(&host, "usr/local/search"), 0);
	assert_int_equal(host_node(&host, "opt/tool/shadow")->kind, TREE_SYMLINK);
	assert_int_equal(host.image.counts.unreadable, 6);
	host_stop(&host);
}

/* Also where root itself could look. */
static void a_listed_directory_must_be_open_to_everybody(void **state)
{
	static const char *const closes[] = {"chmod 700 opt", "chmod 750 opt", "chmod 711 opt",
					     "chmod 754 opt"};
	struct host host;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(closes); i++) {
		host_start(&host,
			   "mkdir -p usr opt/tool var/lib/dpkg && printf SECRET >opt/tool/f && "
			   "printf SECRET >var/lib/dpkg/status && chmod 700 var");
		host_plan_destroy(&host.plan);
		host_run(&host, closes[i]);
		assert_int_equal(host_plan_create(&host.plan, host.path), 0);
		host_build(&host);
		assert_int_equal(host_find(&host, "opt"), 0);
		assert_int_equal(host_find(&host, "var/lib/dpkg"), 0);
		assert_false(host_device_has(&host, "SECRET"));
		host_stop(&host);
	}
}

static void only_files_directories_and_links_enter(void **state)
{
	struct host host;

	(void)state;
	host_start(&host, plain_host);
	host_run(&host,
		 "mkfifo usr/share/fifo && chmod 666 usr/share/fifo && "
		 "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"usr/share/s\")'");
	if (getuid() == 0)
		host_run(&host, "mknod usr/share/null c 1 3 && chmod 666 usr/share/null && "
				"mknod usr/share/disk b 7 0 && chmod 666 usr/share/disk");
	host_build(&host);
	assert_int_equal(host_find(&host, "usr/share/fifo"), 0);
	assert_int_equal(host_find(&host, "usr/share/s"), 0);
	assert_int_equal(host_find(&host, "usr/share/null"), 0);
	assert_int_equal(host.image.counts.special, getuid() == 0 ? 4 : 2);
	host_stop(&host);
}

static void hard_links_are_found(void **state)
{
	struct host host;

	(void)state;
	host_start(&host, plain_host);
	host_run(&host, "ln usr/bin/tool usr/lib/tool && ln usr/bin/tool home/tool");
	host_build(&host);
	assert_int_equal(host_node(&host, "usr/bin/tool2")->same_as,
			 host_find(&host, "usr/bin/tool"));
	assert_int_equal(host_node(&host, "usr/lib/tool")->same_as,
			 host_find(&host, "usr/bin/tool"));
	assert_int_equal(host_node(&host, "usr/bin/tool")->link_count, 3);
	host_stop(&host);
}

static void directories_are_added_by_name(void **state)
{
	struct host host;

	(void)state;
	host_start(&host, plain_host);
	host_run(&host,
		 "mkdir -p home/ada/.nvm/bin home/ada/.nvm/.ssh opt/a/b && "
		 "printf node >home/ada/.nvm/bin/node && printf SECRET >home/ada/.nvm/.npmrc && "
		 "printf SECRET >home/ada/.nvm/.ssh/key && printf SECRET >home/ada/.nvm/id_rsa && "
		 "printf b >opt/a/b/f && printf a >opt/a/f && chmod 700 home/ada && "
		 "mkdir home/ada/closed && chmod 750 home/ada/closed && ln -s ada home/link");
	assert_int_equal(host_plan_add_directory(&host.plan, "/home/ada/.nvm"), 0);
	assert_int_equal(host_plan_add_directory(&host.plan, "/home/link/.nvm"), 0);
	assert_int_equal(host_plan_add_directory(&host.plan, "/opt/a/b"), 0);
	assert_int_equal(host_plan_add_directory(&host.plan, "/home/ada/none"), -ENOENT);
	assert_int_equal(host_plan_add_directory(&host.plan, "/home/ada/.nvm/bin/node"), -ENOTDIR);
	assert_int_equal(host_plan_add_directory(&host.plan, "/home/ada/closed"), -EACCES);
	assert_int_equal(host_plan_add_directory(&host.plan, "/etc"), -EINVAL);
	assert_int_equal(host_plan_add_directory(&host.plan, "/proc/1"), -EINVAL);
	assert_int_equal(host_plan_add_directory(&host.plan, "/"), -EINVAL);
	assert_int_equal(host_plan_add_directory(&host.plan, "home"), -EINVAL);
	assert_int_equal(host_plan_add_directory(&host.plan, "/home/../root"), -EINVAL);
	assert_int_equal(host_plan_add_directory(&host.plan, "/bin/x"), -ENOENT);
	host_build(&host);
	assert_int_equal(host_node(&host, "home/ada/.nvm/bin/node")->size, 4);
	assert_int_equal(host_node(&host, "home/link/.nvm/bin/node")->size, 4);
	assert_int_equal(host_node(&host, "home/ada")->mode, 0755);
	assert_int_equal(host_node(&host, "home/ada")->child_count, 1);
	assert_int_equal(host_node(&host, "opt/a/b/f")->size, 1);
	/* What lies beside an added directory, in one that enters anyway, stays there. */
	assert_int_equal(host_node(&host, "opt/a/f")->size, 1);
	assert_int_equal(host_node(&host, "opt/tool/x")->size, 1);
	assert_false(host_device_has(&host, "SECRET"));
	assert_int_equal(host.image.counts.hidden, 6);
	host_stop(&host);
}

static void names_and_paths_are_hidden(void **state)
{
	struct host host;

	(void)state;
	host_start(&host, plain_host);
	assert_int_equal(host_plan_hide(&host.plan, "/opt"), 0);
	assert_int_equal(host_plan_hide(&host.plan, "*.py"), 0);
	assert_int_equal(host_plan_hide(&host.plan, "/usr/*/link"), 0);
	assert_int_equal(host_plan_hide(&host.plan, "a/b"), -EINVAL);
	assert_int_equal(host_plan_hide(&host.plan, ""), -EINVAL);
	host_build(&host);
	assert_int_equal(host_find(&host, "opt"), 0);
	assert_int_equal(host_find(&host, "usr/lib/python3/os.py"), 0);
	assert_int_equal(host_find(&host, "usr/share/link"), 0);
	assert_int_equal(host_node(&host, "usr/lib/python3")->child_count, 0);
	assert_int_equal(host_node(&host, "usr/bin/tool")->size, 7);
	assert_int_equal(host.image.counts.hidden, 3);
	host_stop(&host);
}

/* In a mount namespace of this test. */
static void other_mounts_stay_outside(void **state)
{
	struct host host;
	char path[64];

	(void)state;
	if (getuid() != 0 || unshare(CLONE_NEWNS) < 0)
		skip();
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	host_start(&host, plain_host);
	snprintf(path, sizeof(path), "%s/usr/local", host.path);
	assert_int_equal(mount("tmpfs", path, "tmpfs", 0, "mode=0755"), 0);
	host_run(&host, "printf OTHER >usr/local/f && : >usr/lib/bound && : >usr/lib/real");
	snprintf(path, sizeof(path), "%s/usr/lib/bound", host.path);
	assert_int_equal(mount("/etc/hostname", path, NULL, MS_BIND, NULL), 0);
	host_build(&host);
	assert_int_equal(host_find(&host, "usr/local"), 0);
	assert_int_equal(host_find(&host, "usr/lib/bound"), 0);
	assert_int_equal(host.image.counts.mounts, 2);
	assert_false(host_device_has(&host, "OTHER"));
	host_forget(&host);
	/* Named, it enters. */
	assert_int_equal(host_plan_add_directory(&host.plan, "/usr/local"), 0);
	host_build(&host);
	assert_true(host_device_has(&host, "OTHER"));
	host_forget(&host);
	host_plan_destroy(&host.plan);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	snprintf(path, sizeof(path), "%s/usr/local", host.path);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	assert_int_equal(shell(NULL, "rm -rf %s", host.path), 0);
}

/* The device as a file, read by erofs-utils, is the same tree as the host's. */
static void the_device_is_the_host(void **state)
{
	struct host host;
	uint8_t *bytes;
	int fd;

	(void)state;
	host_start(&host, plain_host);
	host_run(&host,
		 "mkdir -p usr/lib/deep/$(printf %0255d 7) && cd usr/lib && "
		 "head -c 4095 /dev/urandom >r4095 && head -c 4096 /dev/urandom >r4096 && "
		 "head -c 4097 /dev/urandom >r4097 && head -c 300000 /dev/urandom >r300000 && "
		 "truncate -s 3M sparse && printf end >>sparse && "
		 "printf '\\303\\204' >\"$(printf '\\303\\204 \\377')\" && "
		 "for i in $(seq 700); do printf $i >deep/file-$i; done");
	host_build(&host);
	bytes = host_read_device(&host);
	fd = open("/tmp/mvagent-host.image", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, bytes, host_device_bytes(&host)), 0);
	close(fd);
	free(bytes);
	assert_int_equal(shell(NULL, "fsck.erofs /tmp/mvagent-host.image 2>&1 | grep '<[EW]>'"), 1);
	host_run(&host,
		 "rm -rf ../mvagent-host.out && mkdir ../mvagent-host.out && "
		 "fsck.erofs --extract=../mvagent-host.out --force ../mvagent-host.image >&2");
	host_run(&host, "diff -r --no-dereference usr ../mvagent-host.out/usr >&2 && "
			"diff -r opt ../mvagent-host.out/opt >&2");
	host_run(&host, "rm -rf ../mvagent-host.out ../mvagent-host.image");
	host_stop(&host);
}

struct shown {
	unsigned int times;
	uint32_t names;
};

static void on_show(void *context, uint32_t names)
{
	struct shown *shown = context;

	assert_true(names >= shown->names);
	shown->names = names;
	shown->times++;
}

/* As many as an ordinary system has; the time is ten times what it takes on a quiet machine. */
static void two_hundred_thousand_files_take_seconds(void **state)
{
	struct shown shown = {0};
	const struct host_progress progress = {.show = on_show, .context = &shown};
	uint64_t begin, taken;
	struct host host;

	(void)state;
	host_start(&host, "mkdir -p usr/share && for i in $(seq 400); do mkdir usr/share/$i && "
			  "(cd usr/share/$i && seq 500 | xargs touch); done");
	begin = clock_monotonic_ns();
	assert_int_equal(host_image_build(&host.image, &host.plan, &progress), 0);
	taken = clock_monotonic_ns() - begin;
	print_message("%llu files in %llu ms, shown %u times\n",
		      (unsigned long long)host.image.counts.files,
		      (unsigned long long)taken / 1000000, shown.times);
	assert_in_range(host.image.counts.files, 200000, 200020); /* and what is made */
	assert_true(taken < 10000000000ULL);
	assert_true(shown.times > 100 && shown.names > 200000);
	host_stop(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_listed_enters),
		cmocka_unit_test(set_id_bits_are_dropped),
		cmocka_unit_test(secrets_stay_outside),
		cmocka_unit_test(a_listed_directory_must_be_open_to_everybody),
		cmocka_unit_test(only_files_directories_and_links_enter),
		cmocka_unit_test(hard_links_are_found),
		cmocka_unit_test(directories_are_added_by_name),
		cmocka_unit_test(names_and_paths_are_hidden),
		cmocka_unit_test(other_mounts_stay_outside),
		cmocka_unit_test(the_device_is_the_host),
		cmocka_unit_test(two_hundred_thousand_files_take_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
