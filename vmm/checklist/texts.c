/* SPDX-License-Identifier: Apache-2.0 */
/* The lines themselves. Mechanisms are named as docs/threat-model.md names them. */
#include "vmm/checklist/checklist.h"

#define FILES       "Filesystem"
#define NETWORK     "Network"
#define CREDENTIALS "Credentials"
#define BOUNDARY    "Boundary"
#define RESPONSE    "Response"

const struct checklist_text checklist_texts[LINE_COUNT] = {
	[LINE_ROOT] = {"root", FILES, "What is its root directory, and what enforces that?",
		       "KVM; openat2 BENEATH: vmm/fs/path.c; Landlock, namespaces: jail_enter",
		       "A fault of KVM or of the processor"},
	[LINE_ABOVE] = {"above", FILES, "Can it read a file two directories up?",
			"openat2 BENEATH, NO_SYMLINKS: vmm/fs/path.c; mount namespace: jail_enter",
			"Raw FUSE requests: 'mvagent selftest' sends those"},
	[LINE_ROUTES] = {"routes", FILES, "Can it get out by links, /proc or devices?",
			 "Links are opened by the guest alone: vmm/fs/inode.c; read-only disk: "
			 "vmm/root/blk.c",
			 "Links that the guest makes are for you to follow"},
	[LINE_KEYS] = {"keys", FILES, "Are credentials on disk inside the reachable tree?",
		       "Only shares exist; hidden names: policy_examine, vmm/fs/guard.c",
		       "Credentials in files of other names in a share"},
	[LINE_PROJECTS] = {"projects", FILES, "Can it read your other repositories?",
			   "Only shares exist in the guest: shares_mount, vmm/fs/path.c",
			   "What a share itself contains"},
	[LINE_CHANGES] = {"changes", FILES, "What can it change that this host would run?",
			  "Modes and protected names in the server: vmm/fs/guard.c, policy.c",
			  "Sources, Makefiles, scripts in a rw share: review them"},
	[LINE_OUTSIDE] = {"outside", NETWORK, "Can it make outbound requests, and to whom?",
			  "No route; mvagent-relay by name: route_policy_decide; seccomp: "
			  "jail_deny_network",
			  "What an allowed host does with what it gets"},
	[LINE_LOG] = {"log", NETWORK, "Is egress logged where you would look?",
		      "Hash chain and Ed25519 outside the guest: record_event, record_finish",
		      "Contents of connections are not kept"},
	[LINE_INSIDE] = {"inside", NETWORK, "Can it reach this host or internal addresses?",
			 "No route; relay refuses private addresses: route_policy_objection",
			 "Internal hosts behind an allowed proxy"},
	[LINE_RAW] = {"raw", NETWORK, "Raw frames, UDP, ICMP, IPv6, other sockets?",
		      "Card without a host end: vmm/virtio/net.c; vsock ports by list: "
		      "vsock_connection.c",
		      "Timing and load can be observed (side channels)"},
	[LINE_ENVIRONMENT] = {"environment", CREDENTIALS, "What is in its environment?",
			      "Built from nothing: guest_identity_create",
			      "What you give with --env is in the guest, whole"},
	[LINE_SOCKETS] = {"sockets", CREDENTIALS, "ssh-agent, Docker, keyring, desktop?",
			  "Another kernel: sockets do not cross virtio-fs (vmm/fs/inode.c)",
			  "Sockets that you forward yourself"},
	[LINE_CLOUD] = {"cloud", CREDENTIALS, "Does it run under a cloud role?",
			"No route to metadata services; link-local refused: route_policy_objection",
			"Roles of an allowed host"},
	[LINE_SECRETS] = {"secrets", CREDENTIALS, "Can it read secrets it may use?",
			  "Placeholders; mvagent-secret puts the value in: vmm/secret/http_head.c",
			  "What it asks the host of a secret to do"},
	[LINE_AFTER] = {"after", CREDENTIALS, "Are credentials still valid afterwards?",
			"Nothing is given; the machine's memory goes with it",
			"Revoking what --env gave is yours to do"},
	[LINE_WALLS] = {"walls", BOUNDARY, "Which walls stand around each process?",
			"Namespaces, Landlock, seccomp, no_new_privs: jail_enter, jail_seal",
			"The host kernel is trusted"},
	[LINE_MACHINE] = {"machine", BOUNDARY, "Is it another kernel than this host's?",
			  "KVM hardware virtualization: vm_create, vcpu_handle_exit",
			  "Side channels of the processor"},
	[LINE_TERMINAL] = {"terminal", BOUNDARY, "Can its output act on your terminal?",
			   "List of escape sequences: escape_filter_run",
			   "Output that is piped elsewhere is not filtered"},
	[LINE_OWNER] = {"owner", RESPONSE, "Who owns the patch of an escape?",
			"--owner, or review.conf", "Not checked: your word"},
	[LINE_CLOCK] = {"clock", RESPONSE, "On what clock?", "--clock, or review.conf",
			"Not checked: your word"},
	[LINE_KIND] = {"kind", RESPONSE, "Is that the auth-bug clock?",
		       "--clock against --auth-clock", "Not checked: your word"},
};

/* AWS (also of containers), by both protocols; Alibaba; Google. */
const char *const checklist_metadata[] = {"169.254.169.254",
					  "169.254.170.2",
					  "fd00:ec2::254",
					  "100.100.100.200",
					  "metadata.google.internal",
					  NULL};
