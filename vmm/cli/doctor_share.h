/* SPDX-License-Identifier: Apache-2.0 */
/* What shares can be on this host, for `mvagent doctor`. */
#ifndef MVAGENT_CLI_DOCTOR_SHARE_H
#define MVAGENT_CLI_DOCTOR_SHARE_H

#include "vmm/cli/diagnosis.h"

void doctor_check_share(struct diagnosis *diagnosis);

#endif
