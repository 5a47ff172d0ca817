/* SPDX-License-Identifier: Apache-2.0 */
/* Where distributions have the certificates that programs trust, all in one file. */
#ifndef MVAGENT_BASE_CERTIFICATES_H
#define MVAGENT_BASE_CERTIFICATES_H

static const char *const certificate_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Gentoo, Alpine */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
	"/etc/ssl/ca-bundle.pem",             /* openSUSE */
	"/etc/ssl/cert.pem",                  /* others */
};

#endif
