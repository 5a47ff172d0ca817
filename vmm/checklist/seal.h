/* SPDX-License-Identifier: Apache-2.0 */
/* Where the signed object is in a page of HTML: in a comment, in hexadecimal digits. */
#ifndef MVAGENT_CHECKLIST_SEAL_H
#define MVAGENT_CHECKLIST_SEAL_H

#define SEAL_BEGIN "<!-- mvagent review 1 "
#define SEAL_END   " -->"

#endif
