// The kinds of run events and the channels that viewers subscribe to (protocol/events.md 3), as plain data: the
// runtime needs them before it can afford to load the schemas of `events.ts`.

export const CHANNELS = ['lifecycle', 'phase', 'output', 'log', 'agent'] as const;

export type Channel = (typeof CHANNELS)[number];

/** What a viewer gets who asks for nothing else; "verbose" is all of them. */
export const DEFAULT_CHANNELS: readonly Channel[] = ['lifecycle', 'phase', 'output'];

const CHANNEL_OF = {
  run_status: 'lifecycle',
  suspended: 'lifecycle',
  resumed: 'lifecycle',
  human_input_requested: 'lifecycle',
  human_input_resolved: 'lifecycle',
  phase: 'phase',
  output: 'output',
  program_output: 'log',
  egress_denied: 'log',
  workspace_persist_skipped: 'log',
  turn_started: 'agent',
  turn_ended: 'agent',
  reasoning_delta: 'agent',
  text_start: 'agent',
  text_delta: 'agent',
  text_end: 'agent',
  turn_reset: 'agent',
  tool_call_start: 'agent',
  tool_call_input_delta: 'agent',
  tool_call_input_complete: 'agent',
  tool_call_executing: 'agent',
  tool_output_delta: 'agent',
  tool_call_result: 'agent',
  tool_call_error: 'agent',
  compaction_started: 'agent',
  compaction_ended: 'agent',
} as const satisfies Record<string, Channel>;

export type EventKind = keyof typeof CHANNEL_OF;

export function isEventKind(kind: string): kind is EventKind {
  return Object.hasOwn(CHANNEL_OF, kind);
}

export function channelOf(kind: EventKind): Channel {
  return CHANNEL_OF[kind];
}
