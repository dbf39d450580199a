// How hard a model may be asked to think (protocol/sdk.md 1.4). Apart from the schema of an agent's options, because the
// SDK in a program needs the list too, and loads no validation library.

export const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const;
export type ReasoningEffort = (typeof REASONING_EFFORTS)[number];
