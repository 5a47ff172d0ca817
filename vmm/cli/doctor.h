/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_CLI_DOCTOR_H
#define MVAGENT_CLI_DOCTOR_H

/* `mvagent doctor`: whether this machine can run mvagent, and how well. Exit status 0 when it can.
 */
int doctor_command(int argc, char **argv);

#endif
