/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_BASE_VERSION_H
#define MVAGENT_BASE_VERSION_H

#define MVAGENT_VERSION "0.1.0"

#endif
