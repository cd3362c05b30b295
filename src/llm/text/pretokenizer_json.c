/* SPDX-License-Identifier: Apache-2.0 */
/* The "pre_tokenizer" of tokenizer.json -> a list of splits. */
#include <string.h>

#include "llm/text/tokenizer_internal.h"

/* What ByteLevel splits by when it is asked to. */
static const char words_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+"
                                    "| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static const char scope[] = "pre_tokenizer.";

static fm_status add_literal(fm__splits *s, const char *literal, fm__split_keep keep,
                             const char *file)
{
    fm_str quoted = {0};
    fm__pattern_quote(literal, &quoted);
    const fm_status rc = fm__splits_add(s, quoted.text ? quoted.text : "", keep, file);
    fm_str_fini(&quoted);
    return rc;
}

static fm_status read_behavior(fm__split_keep *out, const json_t *v, fm_json_at at)
{
    const char *behavior;
    int         invert = 0;
    FM_TRY(fm_json_string(&behavior, v, "behavior", at));
    FM_TRY(fm_json_opt_bool(&invert, v, "invert", at));
    if (strcmp(behavior, "Isolated") == 0) *out = FM__KEEP_ALL;
    else if (strcmp(behavior, "Removed") == 0) *out = invert ? FM__KEEP_MATCHES : FM__KEEP_GAPS;
    else
        return fm_fail(FM_E_NOSUP, "%s: %sbehavior \"%.40s\" is not supported", at.file, at.scope,
                       behavior);
    return FM_OK;
}

static fm_status read_split(fm__splits *s, const json_t *v, fm_json_at at)
{
    const json_t  *pattern = json_object_get(v, "pattern");
    const json_t  *regex   = json_object_get(pattern, "Regex");
    const json_t  *text    = regex ? regex : json_object_get(pattern, "String");
    fm__split_keep keep    = FM__KEEP_ALL;
    FM_TRY(read_behavior(&keep, v, at));
    if (!json_is_string(text) || json_string_length(text) != strlen(json_string_value(text)))
        return fm_fail(FM_E_FORMAT, "%s: %spattern: expected a Regex or a String", at.file,
                       at.scope);
    return regex ? fm__splits_add(s, json_string_value(text), keep, at.file)
                 : add_literal(s, json_string_value(text), keep, at.file);
}

static fm_status read_digits(fm__splits *s, const json_t *v, fm_json_at at)
{
    int individual = 0;
    FM_TRY(fm_json_opt_bool(&individual, v, "individual_digits", at));
    return fm__splits_add(s, individual ? "\\p{N}" : "\\p{N}+", FM__KEEP_ALL, at.file);
}

static fm_status read_byte_level(fm__splits *s, const json_t *v, fm_json_at at)
{
    int prefix_space = 1, use_regex = 1;
    FM_TRY(fm_json_opt_bool(&prefix_space, v, "add_prefix_space", at));
    FM_TRY(fm_json_opt_bool(&use_regex, v, "use_regex", at));
    if (prefix_space)
        return fm_fail(FM_E_NOSUP, "%s: %sadd_prefix_space is not supported", at.file, at.scope);
    return use_regex ? fm__splits_add(s, words_pattern, FM__KEEP_ALL, at.file) : FM_OK;
}

/* *byte_level counts the ByteLevel steps; nothing may follow one. */
static fm_status read_step(fm__splits *s, const json_t *v, int *byte_level, fm_json_at at)
{
    const char *type;
    FM_TRY(fm_json_string(&type, v, "type", at));
    if (*byte_level)
        return fm_fail(FM_E_NOSUP, "%s: %stype \"%.40s\" after ByteLevel is not supported", at.file,
                       at.scope, type);
    if (strcmp(type, "Split") == 0) return read_split(s, v, at);
    if (strcmp(type, "Digits") == 0) return read_digits(s, v, at);
    if (strcmp(type, "ByteLevel") == 0) {
        *byte_level = 1;
        return read_byte_level(s, v, at);
    }
    return fm_fail(FM_E_NOSUP, "%s: %stype \"%.40s\" is not supported", at.file, at.scope, type);
}

fm_status fm__splits_read_json(fm__splits *s, const json_t *pre_tokenizer, const char *file)
{
    const fm_json_at at         = {file, scope};
    const char      *type       = NULL;
    int              byte_level = 0;
    if (!json_is_object(pre_tokenizer))
        return fm_fail(FM_E_FORMAT, "%s: pre_tokenizer: expected an object, found %s", file,
                       fm_json_kind(pre_tokenizer));
    FM_TRY(fm_json_string(&type, pre_tokenizer, "type", at));
    if (strcmp(type, "Sequence") != 0) {
        FM_TRY(read_step(s, pre_tokenizer, &byte_level, at));
    } else {
        const json_t *steps = json_object_get(pre_tokenizer, "pretokenizers");
        for (size_t i = 0; i < json_array_size(steps); i++)
            FM_TRY(read_step(s, json_array_get(steps, i), &byte_level, at));
    }
    if (!byte_level)
        return fm_fail(FM_E_NOSUP, "%s: pre_tokenizer has no ByteLevel; only byte-level BPE is "
                                   "supported", file);
    return FM_OK;
}
