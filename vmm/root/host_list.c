/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of what enters the guest's root with --root host. docs/root.md explains it. Whatever is
 * listed here, only what everybody on the host may read does enter.
 */
#include "vmm/root/host_plan.h"

#include <stddef.h>

#include "vmm/base/bytes.h"

/*
 * Of /etc: what programs need to run, build and find their like. Not in it is what may hold a
 * password or a token in a readable file: settings of mail, databases, VPNs and network drives,
 * git, npm, pip, wget and apt (URLs with passwords in them), what shells and the session set in the
 * environment (tokens, proxies), sudo, cron, ssh, PAM, everything about networks and services.
 */
static const char *const etc_names[] = {
	"alternatives", /* links of /usr/bin lead through it */
	"ca-certificates",
	"ca-certificates.conf",
	"crypto-policies",
	"debian_version",
	"dpkg",
	"fedora-release",
	"fonts",
	"fpc*.cfg",
	"gai.conf",
	"gdb",
	"gnucobol",
	"groff",
	"host.conf",
	"inputrc",
	"issue",
	"java*",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"locale.alias",
	"locale.conf",
	"locale.gen",
	"localtime",
	"login.defs",
	"lsb-release",
	"magic",
	"magic.mime",
	"mailcap",
	"manpath.config",
	"mime.types",
	"mke2fs.conf",
	"mtab",
	"netconfig",
	"networks",
	"os-release",
	"papersize",
	"perl/XML",
	"perl/sitecustomize.pl",
	"php/*/cli/conf.d",
	"php/*/mods-available",
	"pkcs11/pkcs11.conf",
	"pki/ca-trust",
	"pki/java",
	"pki/tls/cert.pem",
	"pki/tls/certs",
	"pki/tls/openssl.cnf",
	"protocols",
	"python*",
	"R/Makeconf",
	"R/ldpaths",
	"redhat-release",
	"rpc",
	"rpm",
	"services",
	"sgml",
	"shells",
	"skel/.bash_logout",
	"skel/.bashrc",
	"skel/.profile",
	"ssl/certs",
	"ssl/ct_log_list.cnf",
	"ssl/openssl.cnf",
	"system-release",
	"terminfo",
	"texmf",
	"timezone",
	"ucf.conf",
	"vim",
	"xattr.conf",
	"xml",
	NULL,
};

/* The accounts that Debian and its like have from the start, all without a password. The guest's
 * init adds the user who runs the command. */
static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
			     "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
			     "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
			     "sync:x:4:65534:sync:/bin:/bin/sync\n"
			     "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
			     "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
			     "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
			     "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
			     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char shadow[] = "root:*:19723:0:99999:7:::\n"
			     "daemon:*:19723:0:99999:7:::\n"
			     "bin:*:19723:0:99999:7:::\n"
			     "sys:*:19723:0:99999:7:::\n"
			     "sync:*:19723:0:99999:7:::\n"
			     "man:*:19723:0:99999:7:::\n"
			     "mail:*:19723:0:99999:7:::\n"
			     "www-data:*:19723:0:99999:7:::\n"
			     "_apt:*:19723:0:99999:7:::\n"
			     "nobody:*:19723:0:99999:7:::\n";
static const char group[] = "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\n"
			    "disk:x:6:\nmail:x:8:\nman:x:12:\nkmem:x:15:\ndialout:x:20:\n"
			    "cdrom:x:24:\nsudo:x:27:\naudio:x:29:\nwww-data:x:33:\nutmp:x:43:\n"
			    "shadow:x:42:\nvideo:x:44:\nplugdev:x:46:\nstaff:x:50:\ngames:x:60:\n"
			    "users:x:100:\nnogroup:x:65534:\n";
static const char profile[] = "PS1='\\u@\\h:\\w\\$ '\n"
			      "if [ -n \"${BASH-}\" ] && [ -r /etc/bash.bashrc ]; then\n"
			      "\t. /etc/bash.bashrc\n"
			      "fi\n";
static const char bashrc[] = "[ -z \"$PS1\" ] || PS1='\\u@\\h:\\w\\$ '\n";
static const char nsswitch[] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			       "networks: files\nprotocols: files\nservices: files\nethers: files\n"
			       "rpc: files\n";
static const char hosts[] = "127.0.0.1\tlocalhost mvagent\n::1\tlocalhost ip6-localhost mvagent\n";

const struct listed_path host_list[] = {
	{"/usr", PLAN_SOURCE, 0, NULL, NULL},
	{"/opt", PLAN_SOURCE, 0, NULL, NULL},
	/* Of their own, or links into /usr. */
	{"/bin", PLAN_SOURCE, 0, NULL, NULL},
	{"/sbin", PLAN_SOURCE, 0, NULL, NULL},
	{"/lib", PLAN_SOURCE, 0, NULL, NULL},
	{"/lib32", PLAN_SOURCE, 0, NULL, NULL},
	{"/lib64", PLAN_SOURCE, 0, NULL, NULL},
	{"/libx32", PLAN_SOURCE, 0, NULL, NULL},
	{"/etc", PLAN_SOURCE, 0, NULL, etc_names},
	/* What is installed: dpkg, rpm and pacman work in the guest. */
	{"/var/lib/dpkg", PLAN_SOURCE, 0, NULL, NULL},
	{"/var/lib/pacman/local", PLAN_SOURCE, 0, NULL, NULL},
	{"/var/lib/rpm", PLAN_SOURCE, 0, NULL, NULL},

	{"/etc/bash.bashrc", PLAN_FILE, 0644, bashrc, NULL},
	{"/etc/group", PLAN_FILE, 0644, group, NULL},
	{"/etc/hostname", PLAN_FILE, 0644, "mvagent\n", NULL},
	{"/etc/hosts", PLAN_FILE, 0644, hosts, NULL},
	{"/etc/machine-id", PLAN_FILE, 0444, "", NULL},
	{"/etc/nsswitch.conf", PLAN_FILE, 0644, nsswitch, NULL},
	{"/etc/passwd", PLAN_FILE, 0644, passwd, NULL},
	{"/etc/profile", PLAN_FILE, 0644, profile, NULL},
	{"/etc/resolv.conf", PLAN_FILE, 0644, "", NULL},
	{"/etc/shadow", PLAN_FILE, 0600, shadow, NULL},

	{"/dev", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/home", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/mnt", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/proc", PLAN_DIRECTORY, 0555, NULL, NULL},
	{"/root", PLAN_DIRECTORY, 0711, NULL, NULL},
	{"/run", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/srv", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/sys", PLAN_DIRECTORY, 0555, NULL, NULL},
	{"/tmp", PLAN_DIRECTORY, 01777, NULL, NULL},
	{"/var/cache/apt/archives/partial", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/var/cache/ldconfig", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/var/cache/man", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/var/lib/apt/lists/partial", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/var/lock", PLAN_SYMLINK, 0777, "/run/lock", NULL},
	{"/var/log", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/var/run", PLAN_SYMLINK, 0777, "/run", NULL},
	{"/var/spool", PLAN_DIRECTORY, 0755, NULL, NULL},
	{"/var/tmp", PLAN_DIRECTORY, 01777, NULL, NULL},
};
const unsigned int host_list_count = ARRAY_SIZE(host_list);

/* Names that stay outside in directories of --root-add, wherever they are. */
const char *const host_list_credentials[] = {
	".aws",        ".azure",
	".config",     ".credentials.json",
	".docker",     ".env",
	".git",        ".git-credentials",
	".gnupg",      ".kube",
	".netrc",      ".npmrc",
	".pgpass",     ".pypirc",
	".ssh",        ".vault-token",
	".yarnrc.yml", "credentials.toml",
	"id_ecdsa",    "id_ed25519",
	"id_rsa",      NULL,
};
