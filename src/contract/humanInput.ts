// Forms that a person answers, and their results (protocol/run-control.md 11, protocol/sdk.md 1.3): part of the
// program-to-host protocol here, of gates and of the local control plane later. Checks shapes only; whether an answer
// suits its form is the server's to say.

import { z } from 'zod';

const text = z.string();
const options = z.array(text).min(1);
const other = { allowOther: z.boolean().optional(), otherLabel: text.optional() };

const humanFormSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('text'),
    multiline: z.boolean().optional(),
    placeholder: text.optional(),
    required: z.boolean().optional(),
  }),
  z.strictObject({ kind: z.literal('choice'), options, ...other }),
  z.strictObject({
    kind: z.literal('multiselect'),
    options,
    ...other,
    min: z.number().optional(),
    max: z.number().optional(),
  }),
]);

/** In the order in which a result is told apart. */
export const humanInputResultSchema = z.union([
  z.strictObject({ values: z.array(text), other: text.optional() }),
  z.strictObject({ value: text, isOther: z.boolean() }),
  z.strictObject({ value: text }),
]);

export const humanInputOptionsSchema = z.strictObject({
  key: text.optional(),
  prompt: text,
  input: humanFormSchema,
  assignees: z.array(text).optional(),
  timeout: text.optional(),
  onTimeout: z.union([z.literal('fail'), z.strictObject({ value: humanInputResultSchema })]).optional(),
});
