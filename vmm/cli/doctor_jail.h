/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of the jail, as `mvagent doctor` tells of them. */
#ifndef MVAGENT_CLI_DOCTOR_JAIL_H
#define MVAGENT_CLI_DOCTOR_JAIL_H

#include "vmm/cli/diagnosis.h"

/* Adds a check for each layer. One that cannot be had is needed when no other does its work. */
void doctor_check_jail(struct diagnosis *diagnosis);

#endif
