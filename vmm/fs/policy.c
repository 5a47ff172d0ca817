/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/policy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/policy_component.h"
#include "vmm/fs/policy_path.h"
#include "vmm/fs/policy_rules.h"
#include "vmm/fs/policy_state.h"

struct rule {
	enum policy_list list;
	unsigned int flags;
	bool anchored; /* begins at the share's root, else anywhere */
	char *text;
	unsigned int count;
	struct component *components;
};

/* A bit for each rule. */
struct rule_set {
	uint64_t words[LIMIT_POLICY_RULES / 64];
};
static_assert(LIMIT_POLICY_RULES % 64 == 0, "a set of rules is whole words");

struct policy {
	unsigned int rule_count;
	unsigned int bit_count;
	struct rule rules[LIMIT_POLICY_RULES];
	/* Rules whose first component may match names that begin, or end, with a character; and
	 * those that go on after it. Most names are begun by none: this is asked of each name in
	 * each directory that is listed. */
	struct rule_set begun_by[UCHAR_MAX + 1], ended_by[UCHAR_MAX + 1], longer;
	struct policy_paths paths;
	struct policy_states states;
};

static bool bits_have(const uint64_t *bits, unsigned int bit)
{
	return bits[bit / 64] >> (bit % 64) & 1;
}

static void bits_set(uint64_t *bits, unsigned int bit)
{
	bits[bit / 64] |= 1ULL << (bit % 64);
}

/* All components before number @index have been matched. "**" also matches nothing. */
static void rule_reach(const struct rule *rule, unsigned int index, uint64_t *bits)
{
	bits_set(bits, rule->components[index].bit);
	if (rule->components[index].any && index + 1 < rule->count)
		bits_set(bits, rule->components[index + 1].bit);
}

/* Moves one rule on by one name; whether the name completes it. */
static bool rule_step(const struct rule *rule, const struct policy_state *state,
		      const struct folded_name *name, struct policy_verdict *verdict)
{
	uint64_t *next = verdict->state.matched, *next_if_new = verdict->matched_if_new;
	bool lenient = rule->flags & RULE_OLD_PLACES;
	bool complete = false;

	for (unsigned int i = 0; i < rule->count; i++) {
		const struct component *component = &rule->components[i];
		bool begins = i == 0 && (!rule->anchored || state->root);

		if (!begins && (i == 0 || !bits_have(state->matched, component->bit)))
			continue;
		if (component->any) {
			complete |= i + 1 == rule->count;
			if (i > 0)
				rule_reach(rule, i, next);
			if (i > 0 && !lenient)
				rule_reach(rule, i, next_if_new);
		} else if (component_matches(component, name)) {
			if (i + 1 == rule->count) {
				complete = true;
				continue;
			}
			rule_reach(rule, i + 1, next);
			if (component->literal || !lenient)
				rule_reach(rule, i + 1, next_if_new);
		}
	}
	return complete;
}

bool policy_state_has_begun(const struct policy_state *state)
{
	for (unsigned int i = 0; i < POLICY_STATE_WORDS; i++)
		if (state->matched[i])
			return true;
	return state->path_node != 0;
}

uint16_t policy_begun_rule(const struct policy *policy, const struct policy_state *state)
{
	if (state->path_node)
		return policy->paths.nodes[state->path_node].rule;
	for (uint16_t i = 0; i < policy->rule_count; i++) {
		const struct rule *rule = &policy->rules[i];

		for (unsigned int j = 1; j < rule->count; j++)
			if (bits_have(state->matched, rule->components[j].bit))
				return i;
	}
	return 0;
}

/* What the single paths say. Whether one ends here, and protects. */
static bool policy_follow_paths(const struct policy *policy, const struct policy_state *state,
				const struct folded_name *name, struct policy_verdict *verdict)
{
	uint32_t found = policy_paths_find(
		&policy->paths, state->root ? POLICY_PATH_ROOT : state->path_node, name->text);
	const struct policy_path_node *node = &policy->paths.nodes[found];

	if (!found)
		return false;
	verdict->state.path_node = node->first ? found : 0;
	if (node->hidden || node->protected)
		verdict->rule = node->rule;
	for (unsigned int i = 0; node->merged && i < POLICY_STATE_WORDS; i++)
		verdict->state.matched[i] |= node->merged->matched[i];
	for (unsigned int i = 0; node->merged && i < POLICY_STATE_WORDS; i++)
		verdict->matched_if_new[i] |= node->merged->matched[i];
	verdict->hidden = node->hidden;
	return node->protected;
}

/* Those that the name can begin or carry on; all others leave the state as it is. */
static struct rule_set policy_rules_for(const struct policy *policy,
					const struct policy_state *state,
					const struct folded_name *name)
{
	const struct rule_set *first = &policy->begun_by[(unsigned char)name->text[0]];
	const struct rule_set *last = &policy->ended_by[(unsigned char)name->last];
	bool goes_on = false;
	struct rule_set rules;

	for (unsigned int i = 0; i < POLICY_STATE_WORDS; i++)
		goes_on |= state->matched[i] != 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(rules.words); i++)
		rules.words[i] = (first->words[i] & last->words[i]) |
				 (goes_on ? policy->longer.words[i] : 0);
	return rules;
}

/* Takes the first out of a set. False: it is empty. */
static bool rule_set_take(struct rule_set *set, uint16_t *rule)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(set->words); i++) {
		if (!set->words[i])
			continue;
		*rule = (uint16_t)(64 * i + (unsigned int)__builtin_ctzll(set->words[i]));
		set->words[i] &= set->words[i] - 1;
		return true;
	}
	return false;
}

void policy_examine(const struct policy *policy, const struct policy_state *state, const char *name,
		    struct policy_verdict *verdict)
{
	bool complete[POLICY_LIST_COUNT] = {false};
	struct policy_state *next = &verdict->state;
	const struct folded_name folded = policy_fold(name, strlen(name));
	struct rule_set rules;
	bool old_only = true;

	*verdict = (struct policy_verdict){.rule = state->rule};
	next->protected_below = state->protected_below;
	next->unprotected_below = state->unprotected_below;
	next->packages_below = state->packages_below;
	next->shown_below = state->shown_below;
	rules = policy_rules_for(policy, state, &folded);
	for (uint16_t i; rule_set_take(&rules, &i);) {
		const struct rule *rule = &policy->rules[i];

		if (!rule_step(rule, state, &folded, verdict))
			continue;
		if (rule->flags & RULE_PACKAGES)
			next->packages_below = true;
		else
			complete[rule->list] = true;
		if (rule->list == POLICY_HIDE || rule->list == POLICY_PROTECT)
			verdict->rule = i;
		if (rule->list == POLICY_PROTECT && !(rule->flags & RULE_OLD_FILES))
			old_only = false;
	}
	if (policy->paths.count && policy_follow_paths(policy, state, &folded, verdict)) {
		complete[POLICY_PROTECT] = true;
		old_only = false;
	}
	complete[POLICY_HIDE] |= verdict->hidden;
	next->shown_below |= complete[POLICY_SHOW];
	next->unprotected_below |= complete[POLICY_UNPROTECT];
	verdict->hidden = complete[POLICY_HIDE] && !next->shown_below;
	if (next->unprotected_below || next->packages_below)
		next->protected_below = false;
	else if (complete[POLICY_PROTECT] && old_only && !next->protected_below)
		verdict->protected_if_old = true;
	else if (complete[POLICY_PROTECT])
		next->protected_below = true;
	verdict->protected = next->protected_below;
	next->rule = verdict->rule;
}

void policy_examine_path(const struct policy *policy, const char *path,
			 struct policy_verdict *verdict)
{
	struct policy_state state = policy_root_state();
	char name[LIMIT_FS_NAME_BYTES + 1];
	bool hidden = false;

	*verdict = (struct policy_verdict){.state = state};
	while (*path) {
		size_t length = strcspn(path, "/");

		if (length > 0 && length < sizeof(name)) {
			memcpy(name, path, length);
			name[length] = '\0';
			policy_examine(policy, &state, name, verdict);
			hidden |= verdict->hidden;
			state = verdict->state;
		}
		path += length;
		path += *path == '/';
	}
	verdict->hidden = hidden;
}

const struct policy_state *policy_keep_state(struct policy *policy,
					     const struct policy_state *state)
{
	return policy_states_keep(&policy->states, state);
}

void policy_enter_repository(const struct policy *policy, struct policy_state *state)
{
	const struct policy_state anywhere = {0};
	struct policy_verdict verdict;

	policy_examine(policy, &anywhere, "repository.git", &verdict);
	for (unsigned int i = 0; i < POLICY_STATE_WORDS; i++)
		state->matched[i] |= verdict.state.matched[i];
}

struct policy_state policy_root_state(void)
{
	return (struct policy_state){.root = true};
}

struct policy *policy_create(void)
{
	return calloc(1, sizeof(struct policy));
}

static void rule_destroy(struct rule *rule)
{
	for (unsigned int i = 0; i < rule->count; i++)
		free(rule->components[i].text);
	free(rule->components);
	free(rule->text);
}

void policy_destroy(struct policy *policy)
{
	if (!policy)
		return;
	for (unsigned int i = 0; i < policy->rule_count; i++)
		rule_destroy(&policy->rules[i]);
	policy_paths_destroy(&policy->paths);
	policy_states_destroy(&policy->states);
	free(policy);
}

const char *policy_rule(const struct policy *policy, uint16_t rule)
{
	if (rule == POLICY_RULE_CASE)
		return "names that differ in case";
	if (rule == POLICY_RULE_HOOK)
		return "hooks of repositories";
	if (rule >= LIMIT_POLICY_RULES && rule < LIMIT_POLICY_RULES + policy->paths.text_count)
		return policy->paths.texts[rule - LIMIT_POLICY_RULES];
	return rule < policy->rule_count ? policy->rules[rule].text : "";
}

/* Fills the rule's components from @path. The first needs no bit: where it begins is known. */
static int rule_parse(struct policy *policy, struct rule *rule, const char *path)
{
	rule->components = calloc(LIMIT_POLICY_COMPONENTS, sizeof(*rule->components));
	if (!rule->components)
		return -ENOMEM;
	while (*path) {
		size_t length = strcspn(path, "/");
		int error;

		if (rule->count == LIMIT_POLICY_COMPONENTS)
			return -E2BIG;
		if (policy->bit_count == LIMIT_POLICY_POSITIONS)
			return -E2BIG;
		error = component_create(&rule->components[rule->count], path, length);
		if (error)
			return error;
		rule->components[rule->count].bit = (uint16_t)policy->bit_count;
		policy->bit_count += rule->count > 0;
		rule->count++;
		path += length;
		path += *path == '/';
	}
	return rule->count ? 0 : -EINVAL;
}

/* Enters the last rule into the sets. */
static void policy_index_rule(struct policy *policy)
{
	const unsigned int index = policy->rule_count - 1;
	const struct rule *rule = &policy->rules[index];
	const uint64_t bit = 1ULL << index % 64;
	const struct component *component = &rule->components[0];

	for (unsigned int i = 0; i <= UCHAR_MAX; i++) {
		if (!component->first || (unsigned char)component->first == i)
			policy->begun_by[i].words[index / 64] |= bit;
		if (!component->last || (unsigned char)component->last == i)
			policy->ended_by[i].words[index / 64] |= bit;
	}
	if (rule->count > 1)
		policy->longer.words[index / 64] |= bit;
}

int policy_add_rule(struct policy *policy, enum policy_list list, const char *pattern,
		    unsigned int flags)
{
	struct rule rule = {.list = list, .flags = flags};
	unsigned int bit_count = policy->bit_count;
	const char *slash = strchr(pattern, '/');
	const char *path = pattern;
	int error;

	if (policy->rule_count == LIMIT_POLICY_RULES)
		return -E2BIG;
	if (strncmp(path, "./", 2) == 0)
		path += 2;
	rule.anchored = slash && slash[1];
	while (strncmp(path, "**/", 3) == 0) {
		rule.anchored = false;
		path += 3;
	}
	path += *path == '/';
	rule.text = strdup(pattern); /* freed with the rule */
	error = rule.text ? rule_parse(policy, &rule, path) : -ENOMEM;
	if (error) {
		rule_destroy(&rule);
		policy->bit_count = bit_count;
		return error;
	}
	policy->rules[policy->rule_count++] = rule;
	policy_index_rule(policy);
	return 0;
}

int policy_add(struct policy *policy, enum policy_list list, const char *pattern)
{
	return policy_add_rule(policy, list, pattern, 0);
}

/* The node of a whole path, made if need be; 0: no room. */
static uint32_t policy_make_node(struct policy *policy, const char *path, uint16_t rule)
{
	uint32_t node = POLICY_PATH_ROOT;

	while (node && *path) {
		size_t length = strcspn(path, "/");
		const struct folded_name folded = policy_fold(path, length);

		node = policy_paths_add(&policy->paths, node, folded.text, rule);
		path += length;
		path += *path == '/';
	}
	return node;
}

int policy_add_path(struct policy *policy, const char *path, const char *link,
		    const struct policy_verdict *verdict)
{
	struct policy_path_node *node;
	uint32_t number;
	int text = policy_paths_add_text(&policy->paths, link);

	if (text < 0)
		return text;
	/* The tree is grown with the first. */
	if (policy->paths.count == 0 && !policy_paths_prepare(&policy->paths))
		return -ENOMEM;
	number = policy_make_node(policy, path, (uint16_t)(LIMIT_POLICY_RULES + text));
	if (!number)
		return -E2BIG;
	node = &policy->paths.nodes[number];
	node->rule = (uint16_t)(LIMIT_POLICY_RULES + text);
	node->hidden |= verdict->hidden;
	node->protected |= verdict->protected || verdict->protected_if_old;
	if (!node->merged)
		node->merged = calloc(1, sizeof(*node->merged));
	if (!node->merged)
		return -ENOMEM;
	for (unsigned int i = 0; i < POLICY_STATE_WORDS; i++)
		node->merged->matched[i] |= verdict->state.matched[i];
	return 0;
}
